//! Whether a session still lives, and what that says about a call that was refused on it.
//!
//! These are two questions. A session is begun anew as soon as it is presumed lost. A call counts as refused, and may be
//! sent again, only under more conditions: a tool may run for seconds while its session expires, and be refused at the
//! end. So the refusal counts only if a ping on the same session is refused alike, and if it came as promptly as servers
//! refuse what they do not execute. MCP requires a server to refuse a lost session before it processes the request; that
//! is the server's word, and nothing here can check it. And a ping counts only if the server answers pings: some do not
//! know them, and refuse them on a session that lives. That is found out while the session is new.
//!
//! A modern server has no sessions. There the question is whether it is a modern server still, and `server/discover` tells.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linetender_core::{LossReport, ServerRefusal};
use tokio::time::Instant;

use super::exchange::{self, Replied};
use super::shared::{Shared, Spoken};
use crate::frame::{self, Frame};
use crate::handshake::Era;
use crate::http::meaning::{Call, HEAD_SHOWN, Line, Purpose, Refusal};
use crate::redact::Redacted;
use crate::seen::Seen;

/// How long a session that is presumed to be gone may take to prove that it is not.
const PROOF: Duration = Duration::from_secs(5);

/// A refusal this soon after the request's last byte is prompt, however much sooner the ping was refused.
const PROMPT: Duration = Duration::from_millis(100);

/// A refusal is prompt if it took at most this many times as long as the refusal of the ping.
const SLOWER: u32 = 4;

/// What may be asked to find out whether a session lives, in this order. It changes nothing, and any server may answer it.
const CHECKS: [&str; 2] = ["ping", "tools/list"];

/// Which request shows that a session lives: one that was answered on a session of this server.
#[derive(Clone, Copy, Debug, Default)]
enum Check {
    /// Nothing was answered yet.
    #[default]
    Unknown,
    /// This was.
    By(&'static str),
}

/// Which request shows that a session of this server lives, for all generations of its line: what one of them learned, the
/// next one need not find out in a hurry.
#[derive(Clone, Debug, Default)]
pub struct Pings(Arc<Mutex<Check>>);

/// It is no part of how a server is configured.
impl PartialEq for Pings {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Pings {}

impl Pings {
    fn check(&self) -> Check {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This was answered on a session.
    pub(super) fn answered(&self, method: &str) {
        let Some(known) = CHECKS.into_iter().find(|known| *known == method) else { return };
        let mut check = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A ping is the cheaper question.
        if !matches!(*check, Check::By(better) if better == CHECKS[0]) {
            *check = Check::By(known);
        }
    }

    /// This is answered on a session that has just begun, and nothing before it in [`CHECKS`] is.
    fn learned(&self, method: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Check::By(method);
    }
}

/// What is known of a session on which a request was refused.
#[derive(Clone, Debug, Default)]
pub(super) enum Known {
    /// No ping was sent.
    #[default]
    Nothing,
    /// What a ping found, and when it was over.
    Found(Session, Instant),
}

/// What a ping says of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Session {
    /// It was refused like this.
    Refused {
        /// How.
        refusal: Refusal,
        /// How long after the ping's last byte.
        took: Duration,
    },
    /// It is gone, or has to be presumed so. That says nothing of any call.
    Gone,
    /// It was answered.
    Lives,
    /// Nothing that could be told from trouble on the way.
    Silent,
}

impl Session {
    /// A session that is over does not come back.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Gone)
    }

    /// True if the ping was refused like this call, and the call as promptly as servers refuse what they do not execute.
    /// `within` is the maximum time that any refusal may take after the request's last byte.
    fn agrees_with(&self, refusal: &Refusal, took: Duration, within: Duration) -> bool {
        let Self::Refused { refusal: pinged, took: ping } = self else { return false };
        pinged == refusal && took <= PROMPT.max(ping.saturating_mul(SLOWER)).min(within)
    }
}

impl Known {
    /// What is known, for a request that was refused at `now`: what lived may have died since.
    fn at(&self, now: Instant) -> Option<Session> {
        match self {
            Self::Found(session, over) if session.is_over() || *over >= now => Some(session.clone()),
            Self::Found(..) | Self::Nothing => None,
        }
    }
}

/// A ping on the same session tells whether it is the session that was refused. One is sent, and every call that was
/// refused meanwhile goes by its answer.
pub(super) async fn look_for(shared: &Shared, spoken: &Spoken) -> Session {
    let now = Instant::now();
    let mut known = shared.session.lock().await;
    if let Some(found) = known.at(now) {
        return found;
    }
    let check = shared.pings.check();
    let found = match (spoken.era, check) {
        (Era::Modern, _) => bounded(discover(shared, spoken)).await,
        (Era::Legacy, Check::By(method)) => bounded(ask(shared, spoken, method)).await,
        // It may be the ping that is refused.
        (Era::Legacy, Check::Unknown) => match bounded(ask(shared, spoken, CHECKS[0])).await {
            Session::Refused { .. } => Session::Gone,
            found => found,
        },
    };
    *known = Known::Found(found.clone(), Instant::now());
    found
}

/// Finds out which request shows that a session lives, while there is no doubt that this one does.
pub(super) async fn learn(shared: &Shared) {
    let spoken = shared.spoken().clone();
    if spoken.era != Era::Legacy || !spoken.has_session() {
        return;
    }
    for method in CHECKS {
        match bounded(ask(shared, &spoken, method)).await {
            Session::Lives => return shared.pings.learned(method),
            Session::Silent => return,
            // If all are refused, the session may be gone by now: nothing is known.
            Session::Refused { .. } | Session::Gone => {}
        }
    }
}

/// The answer to a ping of the tender's that was refused on a session that lives.
pub(super) fn alive(id: u64) -> Option<Frame> {
    let text = frame::error_reply(&id.to_string(), r#"{"code":-32601,"message":"refused"}"#);
    frame::parse(&text, frame::Limits { length: text.len(), depth: 8 }).ok()
}

async fn bounded(asking: impl Future<Output = Session>) -> Session {
    tokio::time::timeout(PROOF, asking).await.unwrap_or(Session::Silent)
}

/// Whether a modern server still is one.
async fn discover(shared: &Shared, spoken: &Spoken) -> Session {
    let id = shared.next_ping();
    let Some(params) = shared.discovered().clone() else { return Session::Silent };
    let frame = frame::request(id, "server/discover", Some(&params));
    match exchange::post(shared, &frame, spoken, Purpose::Discover { id }, None).await {
        Ok(Replied { meaning, .. }) => match (meaning.line, meaning.call) {
            (Line::OtherEra, _) => Session::Gone,
            (_, Call::Answer(_) | Call::Stream) => Session::Lives,
            _ => Session::Silent,
        },
        Err(_) => Session::Silent,
    }
}

async fn ask(shared: &Shared, spoken: &Spoken, method: &str) -> Session {
    let id = shared.next_ping();
    let frame = frame::request(id, method, None);
    let Ok(replied) = exchange::post(shared, &frame, spoken, Purpose::Ping { id }, None).await else {
        return Session::Silent;
    };
    let Replied { meaning, took, .. } = replied;
    match (meaning.line, meaning.call) {
        (Line::SessionDoubted { refusal: Some(refusal) }, _) => Session::Refused { refusal: *refusal, took },
        (Line::SessionDoubted { refusal: None }, _) => Session::Gone,
        (Line::Fine, Call::Answer(_) | Call::Stream | Call::Accepted) => Session::Lives,
        // A proxy's word, a full house, a challenge: not the session's.
        _ => Session::Silent,
    }
}

/// What a call and the line make of a refusal, once a ping was sent.
pub(super) fn decide(
    found: &Session,
    refusal: Option<&Refusal>,
    took: Duration,
    within: Duration,
    call: Call,
) -> (Call, Line) {
    let session_lost = refusal.is_some_and(|refusal| found.agrees_with(refusal, took, within));
    let line = match found {
        Session::Refused { .. } | Session::Gone => Line::SessionGone,
        Session::Lives => Line::Fine,
        // MCP 2025-11-25, Streamable HTTP, "Session Management": 404 means a new session, whatever a ping meets.
        Session::Silent if refusal.is_some_and(|refusal| refusal.status == 404) => Line::SessionGone,
        Session::Silent => Line::Trouble { seen: Box::new(Seen::Unusable { words: unclear(&call) }) },
    };
    match call {
        Call::Lost { words, said, .. } if session_lost => {
            (Call::Lost { report: LossReport::Refused(ServerRefusal::SessionLost), words, said }, line)
        }
        Call::Answer(said) if session_lost => {
            let words = Redacted::head("the server returned \"session not found\"", HEAD_SHOWN);
            let report = LossReport::Refused(ServerRefusal::SessionLost);
            (Call::Lost { report, words, said: Some(said) }, line)
        }
        Call::Lost { report, words, said } => {
            let after = match (found, refusal) {
                // H26: what is behind one address does not share its sessions.
                (Session::Lives, Some(Refusal { status: 404, .. })) => {
                    "a ping on the same session succeeded afterwards: behind a load balancer, check session affinity \
                     (sticky sessions)"
                }
                _ => found.words(),
            };
            let words = Redacted::head(&format!("{words}; {after}"), 2 * HEAD_SHOWN);
            (Call::Lost { report, words, said }, line)
        }
        call => (call, line),
    }
}

impl Session {
    /// What a ping made of it, for the error of a call whose outcome is unknown.
    const fn words(&self) -> &'static str {
        match self {
            Self::Refused { .. } | Self::Gone => "a ping confirmed that the session is gone",
            Self::Lives => "a ping on the same session succeeded afterwards",
            Self::Silent => "a ping afterwards got no usable response",
        }
    }
}

/// What came, and that a ping did not make it any clearer.
fn unclear(call: &Call) -> Redacted {
    let words = match call {
        Call::Lost { words, .. } => format!("{words}; a ping afterwards got no usable response"),
        _ => "the session was rejected; a ping afterwards got no usable response".to_owned(),
    };
    Redacted::head(&words, HEAD_SHOWN)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Redacted, Refusal, Session};

    fn refusal(status: u16, code: Option<i64>, body: &str) -> Refusal {
        Refusal { status, code, body: Redacted::head(body, 100) }
    }

    #[test]
    fn only_a_prompt_refusal_that_a_ping_confirms_counts_as_a_lost_session() {
        const SECOND: Duration = Duration::from_secs(1);
        let gone = || refusal(404, Some(-32001), "");
        let ms = Duration::from_millis;
        for (name, call, took, pinged, ping, within, agrees) in [
            ("alike and at once", gone(), 1, gone(), 1, SECOND, true),
            ("just prompt", gone(), 100, gone(), 1, SECOND, true),
            ("late", gone(), 101, gone(), 1, SECOND, false),
            ("a slow server", gone(), 400, gone(), 100, SECOND, true),
            ("slower than a slow server", gone(), 401, gone(), 100, SECOND, false),
            ("slower than any refusal", gone(), 1001, gone(), 900, SECOND, false),
            ("another limit", gone(), 60, gone(), 1, ms(50), false),
            ("another status", refusal(400, Some(-32001), ""), 1, gone(), 1, SECOND, false),
            ("another code", refusal(404, Some(-32002), ""), 1, gone(), 1, SECOND, false),
            ("no code", refusal(404, None, ""), 1, gone(), 1, SECOND, false),
            (
                "other words",
                refusal(400, None, "tool failed"),
                1,
                refusal(400, None, "no session"),
                1,
                SECOND,
                false,
            ),
            ("same words", refusal(400, None, "no"), 1, refusal(400, None, "no"), 1, SECOND, true),
        ] {
            let found = Session::Refused { refusal: pinged, took: ms(ping) };
            assert_eq!(found.agrees_with(&call, ms(took), within), agrees, "{name}");
        }
        for found in [Session::Gone, Session::Lives, Session::Silent] {
            assert!(!found.agrees_with(&gone(), ms(1), SECOND), "{found:?}");
        }
    }
}

//! One POST, and everything that comes back on it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use linetender_core::{LossReport, ServerRefusal};

use super::session::{self, Session};
use super::shared::{Shared, Spoken};
use super::stream;
use crate::frame::{Frame, Members, Message, Outcome};
use crate::handshake::{Era, VERSION_IN_META};
use crate::http::headers::{self, Ask};
use crate::http::meaning::{self, Call, Exchange, HEAD_SHOWN, Line, Meaning, Purpose};
use crate::http::pool::Begun;
use crate::http::{Broken, Endpoint, KeyRefused, Phase, Request, Response, SentKey};
use crate::lines::Item;
use crate::redact::Redacted;
use crate::room::Unfinished;
use crate::seam::{Event, Loss, Ticket};
use crate::seen::Seen;
use crate::{caught, test_hooks};

/// How much of a body that is no JSON is read, so that it can be shown.
const GLANCE: usize = 4 * HEAD_SHOWN;

/// What is seen of a connection on which replies and requests are out of step.
const OUT_OF_STEP: &str = "the response carries the id of another request";

/// What came back on an exchange.
pub(super) struct Replied {
    pub(super) meaning: Meaning,
    /// What follows, if events do.
    pub(super) response: Option<Response>,
    /// How long after the request's last byte it came.
    pub(super) took: Duration,
    /// Where it was answered, if redirects were followed to there.
    pub(super) moved: Option<Endpoint>,
    /// The key that was refused, where keys can be renewed.
    pub(super) refused: Option<Box<KeyRefused>>,
}

/// Posts a frame, and sees to it that whoever waits for it is told something, also if this code panics: it runs in the
/// caller's own task.
pub(super) async fn run(shared: Arc<Shared>, frame: Frame, id: Option<u64>, ticket: Option<Arc<dyn Ticket>>) {
    let listener = Arc::clone(&shared.listener);
    let panicked = caught(carry_out(shared, frame, id, ticket)).await.is_err();
    if let Some(id) = id.filter(|_| panicked) {
        listener.lost(id, Loss::new(LossReport::Nothing, Seen::Internal { task: "exchange" }));
    }
}

async fn carry_out(shared: Arc<Shared>, frame: Frame, id: Option<u64>, ticket: Option<Arc<dyn Ticket>>) {
    test_hooks::point("exchange");
    let spoken = speaks(&shared, &frame);
    let asked = asked(&frame, id);
    let awaited = asked.id().filter(|_| spoken.attached).map(|id| (id, shared.replies.wait_for(id)));
    let replied = post(&shared, &frame, &spoken, asked, ticket).await;
    test_hooks::point("exchange reply");
    let broken = match replied {
        Ok(replied) => {
            let unheard = unheard(asked, &replied);
            let taken = replied.meaning.call == Call::Accepted;
            judged(&shared, &frame, &spoken, asked, replied).await;
            if let Some((id, awaited)) = awaited.filter(|_| taken)
                && let Some(seen) = Box::pin(awaited.over()).await
            {
                shared.listener.lost(id, Loss::new(LossReport::Nothing, seen));
            }
            if let Some(key) = unheard {
                // On the heap: hardly an exchange needs it.
                Box::pin(say_again(&shared, &frame, &spoken, &key)).await;
            }
            return;
        }
        Err(broken) => broken,
    };
    // A caller that went away waits for nothing, and that says nothing about the server.
    if broken.phase == Phase::Withdrawn {
        return;
    }
    if let Some(id) = asked.id() {
        broke(&shared, id, &broken);
    }
    if !is_handshake(asked) && !is_stream(&frame) {
        shared.tell(Event::Trouble(broken.seen())).await;
    }
}

/// Says something again that was refused for its key, once there is another. Whoever runs a notification bounds the wait.
async fn say_again(shared: &Arc<Shared>, frame: &Frame, spoken: &Spoken, key: &SentKey) {
    let Some(slot) = shared.key.as_ref().filter(|_| shared.repeats_after_auth) else { return };
    slot.other_than(key).await;
    let method = match frame.message() {
        Message::Notification { method, .. } => method,
        Message::Request { .. } | Message::Response { .. } => "an answer to the server",
    };
    shared.listener.repeated(method);
    if let Ok(replied) = post(shared, frame, spoken, Purpose::Notification, None).await {
        judged(shared, frame, spoken, Purpose::Notification, replied).await;
    }
}

/// With which key a notification, or our answer to the server, was refused before anybody looked at it. It is said once
/// more with the next key: nobody waits for it who could.
fn unheard(asked: Purpose, replied: &Replied) -> Option<SentKey> {
    let challenged =
        matches!(replied.meaning.call, Call::Lost { report: LossReport::Refused(ServerRefusal::Auth), .. });
    let refused = replied.refused.as_ref().filter(|_| asked == Purpose::Notification && challenged);
    refused.map(|refused| refused.key.clone())
}

/// A stream that was asked for ends as streams do, and is asked for again: that says nothing about the server.
pub(super) fn is_stream(frame: &Frame) -> bool {
    matches!(frame.message(), Message::Request { method: "subscriptions/listen", .. })
}

/// DELETE: whatever the server says to that, the session is over for us.
pub(super) async fn end_session(shared: &Shared) {
    let spoken = shared.spoken().clone();
    if spoken.era == Era::Legacy && spoken.session.is_some() {
        let headers = headers::delete_headers(spoken.version.as_deref(), spoken.session.as_ref());
        let (request, _) = request(shared, Method::DELETE, headers, Bytes::new(), None);
        let _ = shared.pool.send(&request).await;
    }
}

pub(super) fn request(
    shared: &Shared,
    method: Method,
    ours: HeaderMap,
    body: Bytes,
    ticket: Option<Arc<dyn Ticket>>,
) -> (Request, Option<SentKey>) {
    let (headers, key) = shared.with_fixed(ours);
    (Request { method, headers, body, begun: Begun::of(ticket) }, key)
}

/// In which era this is said. The handshake says it itself.
fn speaks(shared: &Shared, frame: &Frame) -> Spoken {
    let spoken = shared.spoken().clone();
    match frame.message() {
        Message::Request { method: "initialize", .. } => {
            Spoken { attached: spoken.attached, ..Spoken::nothing() }
        }
        Message::Request { method: "server/discover", .. } => Spoken { era: Era::Modern, ..spoken },
        _ => spoken,
    }
}

fn asked(frame: &Frame, id: Option<u64>) -> Purpose {
    match (frame.message(), id) {
        (Message::Request { method, .. }, Some(id)) => match method {
            "initialize" => Purpose::Initialize { id },
            "server/discover" => Purpose::Discover { id },
            "ping" => Purpose::Ping { id },
            _ => Purpose::Request { id },
        },
        _ => Purpose::Notification,
    }
}

const fn is_handshake(asked: Purpose) -> bool {
    matches!(asked, Purpose::Initialize { .. } | Purpose::Discover { .. })
}

/// Sends it, and judges what comes back.
pub(super) async fn post(
    shared: &Shared,
    frame: &Frame,
    spoken: &Spoken,
    asked: Purpose,
    ticket: Option<Arc<dyn Ticket>>,
) -> Result<Replied, Broken> {
    let (method, params) = match frame.message() {
        Message::Request { method, params, .. } | Message::Notification { method, params } => {
            (method, params)
        }
        Message::Response { .. } => ("", None),
    };
    // Only a modern request says in headers what it says in its body.
    let params = params.filter(|_| spoken.era == Era::Modern).and_then(Members::of);
    let said = params.as_ref().and_then(version_said);
    let mirrors = shared.mirrors();
    let tool = params.as_ref().filter(|_| method == "tools/call" && !mirrors.is_empty());
    let ours = headers::headers(&Ask {
        era: spoken.era,
        version: said.as_deref().or(spoken.version.as_deref()),
        method,
        params: params.as_ref(),
        session: spoken.session.as_ref(),
        param_headers: tool.and_then(|params| mirrors.get(&*params.string("name")?)),
    });
    let (request, key) = request(shared, Method::POST, ours, frame.text().clone(), ticket);
    // What is redirected is sent twice, and the first place may have executed it.
    let has_effects = matches!(asked, Purpose::Request { .. } | Purpose::Notification);
    let response = if has_effects && !shared.redirects_calls {
        shared.pool.send_unfollowed(&request).await?
    } else {
        let redirected = || {
            if let Purpose::Request { id } = asked {
                shared.listener.redirected(id);
            }
        };
        shared.pool.send_and_tell(&request, redirected).await?
    };
    read(shared, spoken, asked, response, key).await
}

/// Reads as much of a response as is needed to judge it.
pub(super) async fn read(
    shared: &Shared,
    spoken: &Spoken,
    asked: Purpose,
    mut response: Response,
    key: Option<SentKey>,
) -> Result<Replied, Broken> {
    shared.begun().await;
    if let Some(key) = key.as_ref().filter(|_| response.status.is_success()) {
        key.accepted();
    }
    shared.keep_cookies(spoken.era, &response.headers);
    if spoken.attached && response.status.is_success() {
        return Ok(accepted(response).await);
    }
    let follows = response.is_event_stream() && response.status.is_success();
    let mut unfinished = Unfinished::new(&*shared.listener);
    let body = if follows {
        Bytes::new()
    } else if is_json(&response.headers) || response.is_event_stream() {
        response.body.all_in(shared.limits.length, &mut unfinished).await?
    } else {
        response.body.all_if_json(GLANCE, shared.limits.length, &mut unfinished).await?
    };
    let meaning = meaning::judge(&Exchange {
        era: spoken.era,
        session: spoken.has_session(),
        asked,
        status: response.status.as_u16(),
        headers: &response.headers,
        body: &body,
        limits: shared.limits,
    });
    if meaning.call == Call::OutOfStep {
        response.body.close();
    }
    // Whatever stands before a server that hangs may answer for it: only what reads as MCP is a sign of life. Of a stream,
    // its events are.
    if matches!(meaning.call, Call::Answer(_) | Call::Lost { said: Some(_), .. }) {
        shared.listener.heard();
    }
    let (took, moved) = (response.took, response.moved.take());
    let meaning = if moved.is_some() { meaning.after_redirect() } else { meaning };
    let refused = key.and_then(|key| refusal(key, &meaning.line));
    Ok(Replied { meaning, response: follows.then_some(response), took, moved, refused })
}

/// A message that was taken, to be answered on the event stream: whatever else was said to it is of no interest.
// MCP 2024-11-05, "HTTP with SSE".
async fn accepted(response: Response) -> Replied {
    let took = response.took;
    if response.is_event_stream() {
        drop(response);
    } else {
        response.body.forget().await;
    }
    let meaning = Meaning { call: Call::Accepted, line: Line::Fine, session: None };
    Replied { meaning, response: None, took, moved: None, refused: None }
}

/// What is told of a key that was refused.
fn refusal(key: SentKey, line: &Line) -> Option<Box<KeyRefused>> {
    let (status, challenge) = match line {
        Line::WantsAuth { status, challenge } => (*status, challenge.clone()),
        Line::WantsMore { challenge } => (403, challenge.clone()),
        _ => return None,
    };
    Some(Box::new(KeyRefused { key, status, challenge }))
}

async fn judged(shared: &Arc<Shared>, frame: &Frame, spoken: &Spoken, asked: Purpose, replied: Replied) {
    let Replied { meaning: Meaning { mut call, mut line, session }, response, took, moved, refused } =
        replied;
    if let Line::SessionDoubted { refusal } = line {
        let (found, refusal) = (Box::pin(session::look_for(shared, spoken)).await, refusal.as_deref());
        (call, line) = session::decide(&found, refusal, took, shared.refusal_within, call);
        if let Purpose::Ping { id } = asked
            && found == Session::Lives
            && let Some(answer) = session::alive(id)
        {
            (call, line) = (Call::Answer(answer), Line::Fine);
        }
    } else if spoken.session.is_some()
        && matches!((&call, &line), (Call::Answer(_), Line::Fine))
        && let Message::Request { method, .. } = frame.message()
    {
        shared.pings.answered(method);
    } else if line == Line::OtherEra && spoken.era == Era::Modern && !is_handshake(asked) {
        // One request was refused in a way that modern servers do not have. That may be the fault of the request.
        line = match Box::pin(session::look_for(shared, spoken)).await {
            Session::Lives => Line::Fine,
            Session::Refused { .. } | Session::Gone => Line::OtherEra,
            Session::Silent => Line::Trouble { seen: Box::new(Seen::Unusable { words: words_of(&call) }) },
        };
    }
    shared.granted(session);
    if !is_handshake(asked) && matches!((&call, &line), (Call::Answer(_) | Call::Stream, Line::Fine)) {
        shared.served();
    }
    if let (true, Some(moved), Call::Answer(_) | Call::Stream) = (is_handshake(asked), moved, &call) {
        shared.pool.stay_at(moved);
    }
    match (call, asked.id()) {
        (Call::Answer(answer), Some(_)) => {
            greeted(shared, frame, &answer);
            shared.listener.hear(Item::Frame(answer));
        }
        (Call::Stream, Some(id)) => {
            if let Some(response) = response {
                stream::answers(shared, frame, spoken, id, response).await;
            }
        }
        (Call::Unusable(words), Some(id)) => {
            let seen = seen(shared, &line).unwrap_or(Seen::Unusable { words });
            lose(
                shared,
                id,
                Loss { refused: refused.clone(), ..Loss::new(LossReport::Nothing, seen) },
                &line,
            );
        }
        (Call::OutOfStep, Some(id)) => {
            let words = Redacted::head(OUT_OF_STEP, HEAD_SHOWN);
            lose(shared, id, Loss::new(LossReport::Nothing, Seen::Unusable { words }), &line);
        }
        (Call::Lost { report, words, said }, Some(id)) => {
            let seen = seen(shared, &line).unwrap_or(Seen::Unusable { words });
            lose(shared, id, Loss { said, refused: refused.clone(), ..Loss::new(report, seen) }, &line);
        }
        (Call::Accepted, _) | (_, None) => {}
    }
    if is_handshake(asked) {
        return;
    }
    match refused {
        Some(refused) => shared.tell(Event::KeyRefused(refused)).await,
        None => {
            if let Some(event) = event(shared, &line) {
                shared.tell(event).await;
            }
        }
    }
}

/// What came instead of an answer.
fn words_of(call: &Call) -> Redacted {
    match call {
        Call::Unusable(words) | Call::Lost { words, .. } => words.clone(),
        _ => Redacted::default(),
    }
}

/// What was seen of a line.
fn seen(shared: &Shared, line: &Line) -> Option<Seen> {
    match line {
        Line::SessionGone => Some(shared.session_lost()),
        other => other.seen(),
    }
}

/// What the generation learns from a response that was not to a handshake.
fn event(shared: &Shared, line: &Line) -> Option<Event> {
    let seen = seen(shared, line)?;
    match line {
        Line::SessionDoubted { .. }
        | Line::SessionGone
        | Line::OtherEra
        | Line::OtherVersion { .. }
        | Line::BadSession { .. } => Some(Event::Lost(seen)),
        // A probe tells whether such credentials do for other requests.
        Line::Trouble { .. } | Line::NotMcp { .. } | Line::WantsAuth { .. } | Line::WantsMore { .. } => {
            Some(Event::Trouble(seen))
        }
        // Coming back later is what the call does.
        Line::Throttled { .. } | Line::HeaderMismatch | Line::Fine => None,
    }
}

fn lose(shared: &Shared, id: u64, loss: Loss, line: &Line) {
    let after = if let Line::Throttled { after, .. } = line { *after } else { None };
    shared.listener.lost(id, Loss { after, ..loss });
}

/// The exchange itself broke.
pub(super) fn broke(shared: &Shared, id: u64, broken: &Broken) {
    shared.listener.lost(id, Loss::new(broken.report, broken.seen()));
}

/// What a legacy handshake agreed on is sent with every request from now on.
pub(super) fn greeted(shared: &Shared, frame: &Frame, answer: &Frame) {
    let Message::Request { method, params, .. } = frame.message() else { return };
    let Message::Response { outcome: Some((Outcome::Result, result)), .. } = answer.message() else { return };
    match method {
        "initialize" => {
            #[derive(serde::Deserialize)]
            struct Agreed {
                #[serde(rename = "protocolVersion")]
                version: Option<Box<str>>,
            }
            let version = serde_json::from_str::<Agreed>(result).ok().and_then(|agreed| agreed.version);
            let mut spoken = shared.spoken();
            spoken.era = Era::Legacy;
            spoken.version = version;
        }
        "server/discover" => {
            *shared.discovered() = params.map(Into::into);
            let mut spoken = shared.spoken();
            spoken.era = Era::Modern;
            spoken.version = Some(crate::handshake::MODERN.into());
            drop(spoken);
            // That is all there is to a modern one.
            shared.greeted();
        }
        _ => {}
    }
}

/// The version that a modern request names in its own words: its header must say the same.
fn version_said<'a>(params: &Members<'a>) -> Option<Cow<'a, str>> {
    Members::of(params.get("_meta")?.get())?.string(VERSION_IN_META)
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.contains("json"))
}

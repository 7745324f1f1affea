//! The table itself: status by status.

use http::header::{HeaderMap, WWW_AUTHENTICATE};
use linetender_core::{LossReport, ServerRefusal};

use super::body::{self, Body};
use super::{CHALLENGE_LIMIT, Call, Exchange, Line, Meaning, Purpose, Refusal, retry};
use crate::handshake::Era;
use crate::http::headers::{SESSION_ID, SESSION_LIMIT, SessionId};
use crate::redact::Redacted;
use crate::seen::Seen;

// MCP 2026-07-28, "Error Codes".
const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
const METHOD_NOT_FOUND: i64 = -32601;
/// "Session not found". The C# SDK says it under the request's own id.
const SESSION_NOT_FOUND: i64 = -32001;

/// What servers in the field say when they mean that they do not know a session.
const SESSION_CODES: [i64; 4] = [-32600, 32600, -32001, -32015];

const FINE: Line = Line::Fine;
const DOUBTED: Line = Line::SessionDoubted { refusal: None };

pub(super) fn judge(exchange: &Exchange<'_>) -> Meaning {
    let said = Body::read(exchange);
    let (call, line) = match exchange.asked {
        Purpose::Stream => stream(exchange, &said),
        Purpose::Delete => delete(exchange, &said),
        _ => answered_first(exchange, &said),
    };
    match session(exchange) {
        Ok(session) => Meaning { call, line, session },
        // Without it every request would be refused, for a reason that only this response shows.
        Err(words) => {
            let call = Call::Lost { report: LossReport::Nothing, words: words.clone(), said: None };
            Meaning { call, line: Line::BadSession { words }, session: None }
        }
    }
}

/// A result under our id is the answer, whatever its status. So is an error, except for refusals that are sent before
/// anything runs: -32020 to -32022 with 400, a challenge with 401. (404 with "session not found" is an answer too, until
/// a ping confirms it.)
fn answered_first(exchange: &Exchange<'_>, said: &Body) -> (Call, Line) {
    if matches!(said, Body::Foreign) {
        // Then the status is another request's too, and proves nothing.
        return (Call::OutOfStep, FINE);
    }
    if matches!(said, Body::Garbled) {
        let words = format!("HTTP {}: the body is not JSON", exchange.status);
        return (Call::Unusable(Redacted::head(&words, super::HEAD_SHOWN)), FINE);
    }
    let (call, line) = post(exchange, said);
    match said {
        Body::Ours(answer) if answer.error.is_none() => (Call::Answer(answer.frame.clone()), FINE),
        Body::Ours(answer) if !refuses(exchange, said) => (Call::Answer(answer.frame.clone()), line),
        _ => (call, line),
    }
}

fn refuses(exchange: &Exchange<'_>, said: &Body) -> bool {
    match exchange.status {
        400 if !is_modern(exchange, said) => false,
        400 => matches!(said.code(), Some(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)),
        401 => exchange.asked.is_handshake() || challenge(exchange.headers).is_some(),
        _ => false,
    }
}

/// Whether the codes of the modern era mean what they mean there.
fn is_modern(exchange: &Exchange<'_>, said: &Body) -> bool {
    let lists = || said.code() == Some(UNSUPPORTED_VERSION) && !said.supported().is_empty();
    exchange.era == Era::Modern || exchange.asked.is_handshake() || !matches!(said, Body::Ours(_)) || lists()
}

fn post(exchange: &Exchange<'_>, said: &Body) -> (Call, Line) {
    let legacy_session = exchange.era == Era::Legacy && exchange.session;
    let refused = |refusal| lost(exchange, said, LossReport::Refused(refusal));
    let nothing = || lost(exchange, said, LossReport::Nothing);
    // MCP 2026-07-28, Streamable HTTP, "Backward Compatibility": the body decides, before the status does.
    // Before that revision these codes were each server's own: under our id they are an answer, unless the error lists the
    // versions that the server does speak.
    let code = said.code().filter(|_| is_modern(exchange, said));
    match (exchange.status, code) {
        (400, Some(HEADER_MISMATCH)) => {
            return (
                refused(ServerRefusal::HeaderMismatch),
                other_era(exchange).unwrap_or(Line::HeaderMismatch),
            );
        }
        (400, Some(MISSING_CAPABILITY)) => {
            return (refused(ServerRefusal::MissingCapability), other_era(exchange).unwrap_or(FINE));
        }
        (400, Some(UNSUPPORTED_VERSION)) => {
            let line = Line::OtherVersion { supported: said.supported() };
            return (refused(ServerRefusal::UnsupportedVersion), other_era(exchange).unwrap_or(line));
        }
        _ => {}
    }
    match exchange.status {
        200..=299 => success(exchange, said),
        400 if legacy_session => match said {
            Body::Ours(answer) if said.code() == Some(METHOD_NOT_FOUND) => {
                (Call::Answer(answer.frame.clone()), FINE)
            }
            // About this request, or about all: a server that became a modern one finds fault with every request.
            Body::Ours(answer) => (Call::Answer(answer.frame.clone()), DOUBTED),
            _ => (nothing(), doubted(exchange, said)),
        },
        // A modern server answers by the id it was asked with. One that does not may be a legacy one by now.
        400 if exchange.era == Era::Modern && matches!(said, Body::Paired(_)) => match exchange.asked {
            Purpose::Discover { .. } => (ended(exchange, said), Line::OtherEra),
            _ => (nothing(), Line::OtherEra),
        },
        401 | 403 => unauthorized(exchange, said, legacy_session),
        404 if said.code() == Some(METHOD_NOT_FOUND) && answers_a_method(exchange, said) => {
            (ended(exchange, said), probed(exchange).unwrap_or(FINE))
        }
        404 if legacy_session => match said {
            Body::Ours(_) if said.code() == Some(SESSION_NOT_FOUND) => {
                (ended(exchange, said), doubted(exchange, said))
            }
            Body::Ours(_) => (ended(exchange, said), DOUBTED),
            _ => (nothing(), doubted(exchange, said)),
        },
        405 => (refused(ServerRefusal::MethodNotAllowed), absent(exchange, said)),
        400 | 404 | 406 | 410 | 415 | 422 => (ended(exchange, said), absent(exchange, said)),
        413 => (refused(ServerRefusal::TooLarge), FINE),
        429 => (refused(ServerRefusal::RateLimited), throttled(exchange)),
        503 if retry::after(exchange.headers).is_some() => (answered(said, nothing), throttled(exchange)),
        503 if legacy_session => (answered(said, nothing), DOUBTED),
        500..=599 => (answered(said, nothing), trouble(exchange, said)),
        402 | 407..=499 => (ended(exchange, said), trouble(exchange, said)),
        _ => (nothing(), trouble(exchange, said)),
    }
}

fn success(exchange: &Exchange<'_>, said: &Body) -> (Call, Line) {
    if body::is(exchange, b"text/event-stream") && exchange.asked != Purpose::Notification {
        return (Call::Stream, FINE);
    }
    let unusable = |why: &str| {
        let words = format!("HTTP {}: {why}", exchange.status);
        Call::Unusable(Redacted::head(&words, super::HEAD_SHOWN))
    };
    match said {
        Body::Page => (unusable("a web page"), Line::NotMcp { head: body::head(exchange) }),
        _ if exchange.asked == Purpose::Notification => (Call::Accepted, FINE),
        Body::Ours(answer) | Body::Paired(answer) => {
            let presumed = exchange.era == Era::Legacy && exchange.session && is_session_code(said);
            let version = said.code() == Some(UNSUPPORTED_VERSION) && exchange.era == Era::Modern;
            let line = if presumed {
                DOUBTED
            } else if version {
                Line::OtherVersion { supported: said.supported() }
            } else {
                said.code().and_then(|_| probed(exchange)).unwrap_or(FINE)
            };
            (Call::Answer(answer.frame.clone()), line)
        }
        Body::Foreign => (Call::OutOfStep, FINE),
        Body::Garbled => (unusable("the body is not JSON"), FINE),
        Body::NoAnswer(why) => (unusable(why), not_mcp(exchange, said)),
        Body::Text => (unusable("neither JSON nor an event stream"), not_mcp(exchange, said)),
        Body::Nothing if exchange.status == 202 => (unusable("accepted without a response"), FINE),
        Body::Nothing => (unusable("an empty body"), trouble(exchange, said)),
    }
}

fn throttled(exchange: &Exchange<'_>) -> Line {
    Line::Throttled { status: exchange.status, after: retry::after(exchange.headers) }
}

/// A GET is refused by servers that have no stream of their own: that says nothing about the line.
fn stream(exchange: &Exchange<'_>, said: &Body) -> (Call, Line) {
    let gone = exchange.era == Era::Legacy && exchange.session;
    match exchange.status {
        200..=299 if body::is(exchange, b"text/event-stream") => (Call::Stream, FINE),
        200..=299 => (Call::Unusable(Redacted::head("not an event stream", super::HEAD_SHOWN)), FINE),
        401 | 403 => unauthorized(exchange, said, gone),
        // A server without a GET route says 404 too, so that alone is no proof.
        400 | 404 if gone => (lost(exchange, said, LossReport::Nothing), DOUBTED),
        405 => (lost(exchange, said, LossReport::Refused(ServerRefusal::MethodNotAllowed)), FINE),
        429 | 503 => (lost(exchange, said, LossReport::Nothing), throttled(exchange)),
        500..=599 => (lost(exchange, said, LossReport::Nothing), trouble(exchange, said)),
        _ => (lost(exchange, said, LossReport::Nothing), FINE),
    }
}

/// Whatever a server says to the end of a session, it is over for us.
fn delete(exchange: &Exchange<'_>, said: &Body) -> (Call, Line) {
    match exchange.status {
        200..=299 | 404 => (Call::Accepted, FINE),
        _ => (lost(exchange, said, LossReport::Nothing), FINE),
    }
}

fn unauthorized(exchange: &Exchange<'_>, said: &Body, legacy_session: bool) -> (Call, Line) {
    let challenge = challenge(exchange.headers);
    match (exchange.status, challenge) {
        (401, Some(challenge)) => (
            lost(exchange, said, LossReport::Refused(ServerRefusal::Auth)),
            Line::WantsAuth { status: 401, challenge },
        ),
        // Credentials that are too weak for one request may do for the others.
        (_, Some(challenge)) if !exchange.asked.is_handshake() => {
            let words = format!("HTTP {}: {challenge}", exchange.status);
            let words = Redacted::head(&words, 2 * super::HEAD_SHOWN);
            // RFC 6750, 3.1: only this code says that the request needs more than the token grants.
            let report = if challenge.contains("insufficient_scope") {
                LossReport::Refused(ServerRefusal::Auth)
            } else {
                LossReport::Nothing
            };
            (Call::Lost { report, words, said: None }, Line::WantsMore { challenge })
        }
        (status, Some(challenge)) => {
            (lost(exchange, said, LossReport::Nothing), Line::WantsAuth { status, challenge })
        }
        (401, None) if legacy_session => (ended(exchange, said), DOUBTED),
        (401, None) => {
            // An error in the body is no answer to a handshake: OAuth's errors look like JSON-RPC's from afar.
            let call = if exchange.asked.is_handshake() {
                lost(exchange, said, LossReport::Nothing)
            } else {
                ended(exchange, said)
            };
            (call, Line::WantsAuth { status: 401, challenge: Box::default() })
        }
        (_, None) => (ended(exchange, said), trouble(exchange, said)),
    }
}

/// An answer if there is one, under whatever id; else the call is lost.
fn ended(exchange: &Exchange<'_>, said: &Body) -> Call {
    match said.answer() {
        Some(answer) if exchange.asked.id().is_some() => Call::Answer(answer.frame.clone()),
        _ => lost(exchange, said, LossReport::Nothing),
    }
}

/// An answer only under our own id: behind a 5xx a proxy may speak, and it knows nothing of the call.
fn answered(said: &Body, lost: impl FnOnce() -> Call) -> Call {
    match said {
        Body::Ours(answer) => Call::Answer(answer.frame.clone()),
        _ => lost(),
    }
}

fn lost(exchange: &Exchange<'_>, said: &Body, report: LossReport) -> Call {
    let frame = said.answer().filter(|_| exchange.asked.id().is_some()).map(|answer| answer.frame.clone());
    let words = said.words(exchange);
    let words = if words.is_empty() {
        format!("HTTP {}", exchange.status)
    } else {
        format!("HTTP {}: {words}", exchange.status)
    };
    Call::Lost { report, words: Redacted::head(&words, 2 * super::HEAD_SHOWN), said: frame }
}

/// "Not here", said to a handshake, is a matter of era or address; later it is trouble.
fn absent(exchange: &Exchange<'_>, said: &Body) -> Line {
    match (exchange.asked, exchange.era) {
        (Purpose::Discover { .. }, _) => Line::OtherEra,
        (Purpose::Initialize { .. }, _) if said.answer().is_some() => other_era_by_code(said).unwrap_or(FINE),
        (Purpose::Initialize { .. }, _) => Line::NotMcp { head: shown(exchange) },
        // A modern server says what it lacks in JSON-RPC: whoever does not is another one by now.
        (_, Era::Modern) if said.answer().is_none() => Line::OtherEra,
        _ if said.answer().is_some() => FINE,
        _ => trouble(exchange, said),
    }
}

fn not_mcp(exchange: &Exchange<'_>, said: &Body) -> Line {
    if exchange.asked.is_handshake() {
        Line::NotMcp { head: shown(exchange) }
    } else {
        trouble(exchange, said)
    }
}

/// The body's beginning, or at least the status.
fn shown(exchange: &Exchange<'_>) -> Redacted {
    let head = body::head(exchange);
    if head.is_empty() { Redacted::head(&format!("HTTP {}", exchange.status), 100) } else { head }
}

/// An error to `server/discover` that is not one of the three modern ones means legacy.
fn probed(exchange: &Exchange<'_>) -> Option<Line> {
    match exchange.asked {
        Purpose::Discover { .. } => Some(Line::OtherEra),
        Purpose::Initialize { .. } if exchange.status == 404 => Some(Line::OtherEra),
        _ => None,
    }
}

/// A modern error to something legacy is from a server that only speaks modern, be it by now.
fn other_era(exchange: &Exchange<'_>) -> Option<Line> {
    let legacy = exchange.era == Era::Legacy || matches!(exchange.asked, Purpose::Initialize { .. });
    legacy.then_some(Line::OtherEra)
}

fn other_era_by_code(said: &Body) -> Option<Line> {
    (said.code() == Some(METHOD_NOT_FOUND)).then_some(Line::OtherEra)
}

/// Whether "method not found" is about the method. On a legacy session a 404 is about the session, unless it answers
/// us by our id.
fn answers_a_method(exchange: &Exchange<'_>, said: &Body) -> bool {
    exchange.era == Era::Modern || !exchange.session || matches!(said, Body::Ours(_))
}

/// A refusal of a request on a legacy session: whether it was the session that was refused, a ping tells.
fn doubted(exchange: &Exchange<'_>, said: &Body) -> Line {
    let code = said.code();
    let body = if code.is_some() { Redacted::default() } else { body::head(exchange) };
    Line::SessionDoubted { refusal: Some(Box::new(Refusal { status: exchange.status, code, body })) }
}

fn is_session_code(said: &Body) -> bool {
    said.code().is_some_and(|code| SESSION_CODES.contains(&code))
}

fn trouble(exchange: &Exchange<'_>, said: &Body) -> Line {
    Line::Trouble { seen: Box::new(Seen::Http { status: exchange.status, words: said.words(exchange) }) }
}

fn challenge(headers: &HeaderMap) -> Option<Box<str>> {
    let all: Vec<&str> =
        headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|one| one.to_str().ok()).collect();
    let whole = all.join(", ");
    (!whole.is_empty() && whole.len() <= CHALLENGE_LIMIT).then(|| whole.into())
}

/// The session that was granted, if one was; or what is wrong with its id.
fn session(exchange: &Exchange<'_>) -> Result<Option<SessionId>, Redacted> {
    let granted =
        matches!(exchange.asked, Purpose::Initialize { .. }) && (200..=299).contains(&exchange.status);
    // Some servers without sessions say so with an empty one.
    let given = exchange.headers.get(SESSION_ID).filter(|given| granted && !given.is_empty());
    let Some(given) = given else { return Ok(None) };
    SessionId::of(given).map(Some).ok_or_else(|| {
        let words = if given.len() > SESSION_LIMIT {
            format!("it has {} bytes, and at most {SESSION_LIMIT} are allowed", given.len())
        } else {
            "it has characters that are not visible ASCII".to_owned()
        };
        Redacted::head(&words, super::HEAD_SHOWN)
    })
}

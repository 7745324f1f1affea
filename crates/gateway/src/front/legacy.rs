//! The HTTP of a legacy agent: a session that begins with `initialize`, a stream per POST, and one of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::HeaderValue;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use linetender_wire::frame::{self, Frame, Message, Outcome};
use linetender_wire::handshake::LEGACIES;
use linetender_wire::http::headers::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};

use super::follow::Reads;
use super::post::{count_refused, endpoint};
use super::said::{Form, Said};
use super::session::{Filters, INVALID_REQUEST, Session, Taken};
use super::sessions::unguessable;
use super::tape::Tape;
use super::who::{principal, visitor_of_session};
use super::{Front, body, far, follow, reply, session};
use crate::failed::{Failed, Full};
use crate::listing::Endpoint;
use crate::mux::Way;
use crate::principal::Principal;

/// How long an answer may take before the response becomes a stream that can be resumed.
const QUIET: Duration = Duration::from_millis(500);

/// The longest greeting: what an agent says of itself is kept for as long as its session.
const HELLO: usize = 64 * 1024;

/// Answers a POST.
pub(super) async fn post(
    front: Arc<Front>,
    endpoint: Endpoint,
    head: &Parts,
    Said { frames, form }: Said,
) -> Response {
    if let [frame] = &*frames
        && let Message::Request { id, method: "initialize", .. } = frame.message()
    {
        let response = initialize(&front, endpoint, head, (frame, id, &form)).await;
        return count_refused(&front, head, &frames, response);
    }
    let session = match find(&front, &endpoint, &head.headers, &principal(&head.extensions)) {
        Ok(session) => session,
        Err(refused) => return count_refused(&front, head, &frames, *refused),
    };
    let id = frames.iter().find_map(|frame| match frame.message() {
        Message::Request { id, .. } => Some(id.to_owned()),
        Message::Notification { .. } | Message::Response { .. } => None,
    });
    let taken = session.take(&frames, &form).await;
    let nothing = frames.is_empty();
    drop(frames);
    match (taken, id) {
        // Nothing of it is waited for.
        (Taken::Noted, _) if !form.refusals().is_empty() => {
            let status = if nothing { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            reply::json(status, frame::array(form.refusals()))
        }
        (Taken::Noted, _) => reply::accepted(),
        (Taken::Full, id) => reply::busy(id.as_deref().unwrap_or("null"), Full::Session, &endpoint),
        (Taken::IdInUse(id), _) => in_use(&id),
        (Taken::Tape(tape), _) => answered(front, session, tape, Reads::of(&head.extensions)).await,
    }
}

// MCP, "Requests": the id MUST NOT have been previously used by the requestor within the same session.
fn in_use(id: &str) -> Response {
    let words = "a request with this id is still pending in this session";
    reply::error(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, words)
}

/// The answer alone, or all those of a batch in one, if they come first and soon; else a stream.
async fn answered(front: Arc<Front>, session: Arc<Session>, tape: Arc<Tape>, reads: Reads) -> Response {
    let _reader = tape.reader(0);
    let _ = tokio::time::timeout(QUIET, tape.begins()).await;
    match tape.whole() {
        Some(text) => {
            session.forget(&tape);
            reply::json(StatusCode::OK, text)
        }
        // Taken back before it began: there is nothing to come back for, so nothing says how to.
        None if tape.is_void() => reply::events(axum::body::Body::empty()),
        None => follow(front, session, (tape, 0), reads),
    }
}

async fn initialize(
    front: &Arc<Front>,
    endpoint: Endpoint,
    head: &Parts,
    (frame, id, form): (&Frame, &str, &Form),
) -> Response {
    if frame.text().len() > HELLO {
        let words = "initialize is longer than 64 KiB";
        return reply::error(StatusCode::PAYLOAD_TOO_LARGE, id, -32600, words);
    }
    let principal = principal(&head.extensions);
    let sealed = match &front.far {
        Some(far) => far.id(&endpoint, &principal, frame).await,
        None => None,
    };
    let begun = match begin(front, &endpoint, head, (frame, id), sealed.or_else(unguessable)).await {
        Ok(begun) => begun,
        Err(refused) => return *refused,
    };
    let mut response = reply::json(StatusCode::OK, form.sole(begun.text));
    if let Some(session) = begun.session
        && let Ok(value) = HeaderValue::from_str(&session.id)
    {
        response.headers_mut().insert(SESSION_ID, value);
    }
    response
}

/// A session that another gateway had, with the same greeting. What its agent wished for since, and its streams, are lost with that gateway.
pub(super) async fn again(front: &Arc<Front>, endpoint: &Endpoint, head: &Parts, id: &str, hello: &str) {
    let Some(frame) = session::parsed(&Bytes::from(hello.to_owned())) else { return };
    let Message::Request { id: greeting, method: "initialize", .. } = frame.message() else { return };
    let begun = begin(front, endpoint, head, (&frame, greeting), Some(id.to_owned())).await;
    let Ok(Begun { session: Some(session), .. }) = begun else { return };
    session.is_remade();
    if let Some(initialized) = session::parsed(&frame::notification("notifications/initialized", None)) {
        session.take(&[initialized], &Form::Plain).await;
    }
}

/// A session that was greeted, if it was, and with what.
struct Begun {
    session: Option<Arc<Session>>,
    text: Bytes,
}

async fn begin(
    front: &Arc<Front>,
    endpoint: &Endpoint,
    head: &Parts,
    (frame, id): (&Frame, &str),
    own: Option<String>,
) -> Result<Begun, Box<Response>> {
    let visitor = visitor_of_session(head, front.sessions.next_number());
    let berth = match endpoint {
        Endpoint::All => None,
        Endpoint::One(name) => front.berth(&visitor.principal, name),
    };
    let (agent, way) = match front.gateway.agent(endpoint, &visitor) {
        Ok(opened) => opened,
        Err(no_agent) => return Err(Box::new(reply::no_agent(id, no_agent, endpoint))),
    };
    let filters = matches!(way, Way::Straight(_))
        .then(|| Filters { listing: front.gateway.listing(), kept: front.gateway.kept_results().clone() });
    let open = |own| front.sessions.open(own, endpoint.clone(), berth, agent, filters, &visitor.principal);
    let Some(session) = own.and_then(open) else {
        return Err(Box::new(reply::busy(id, Full::Sessions, endpoint)));
    };
    let Taken::Tape(tape) = session.take(std::slice::from_ref(frame), &Form::Plain).await else {
        front.sessions.end(&session.id);
        return Err(Box::new(reply::counted(reply::busy(id, Full::Session, endpoint))));
    };
    // It ends when the server is up or has failed, which the line's policy bounds; or the agent hangs up.
    let end = session::EndUnlessKept::new(front, &session);
    let _reader = tape.reader(0);
    tape.ends().await;
    let Some(text) = tape.whole() else {
        return Err(Box::new(reply::ended(id, Failed::cut(), endpoint)));
    };
    session.forget(&tape);
    let greeted = session::parsed(&text).is_some_and(|frame| {
        matches!(frame.message(), Message::Response { outcome: Some((Outcome::Result, _)), .. })
    });
    if greeted {
        end.keep();
    }
    Ok(Begun { session: greeted.then(|| Arc::clone(&session)), text })
}

/// The session that a request belongs to.
// MCP 2025-11-25, "Session Management": 400 without one, 404 for one that is no more.
fn find(
    front: &Front,
    endpoint: &Endpoint,
    headers: &HeaderMap,
    principal: &Principal,
) -> Result<Arc<Session>, Box<Response>> {
    let refuse = |status, code, words: &str, next_try| {
        let failed = Failed::refused(code, words, next_try).of(endpoint.server());
        Err(Box::new(reply::refused(status, "null", &failed)))
    };
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if text(PROTOCOL_VERSION).is_some_and(|version| !LEGACIES.contains(&version)) {
        return refuse(StatusCode::BAD_REQUEST, -32600, "unsupported protocol version", "never");
    }
    let Some(id) = text(SESSION_ID) else {
        return refuse(
            StatusCode::BAD_REQUEST,
            -32600,
            "Mcp-Session-Id header missing: send initialize first",
            "never",
        );
    };
    match front.sessions.find(id, principal).filter(|session| session.endpoint == *endpoint) {
        Some(session) if session.is_current(front) => Ok(session),
        _ => {
            let words = "session not found or expired: send initialize to start a new one";
            refuse(StatusCode::NOT_FOUND, -32001, words, "now")
        }
    }
}

/// Answers a GET: the session's own stream, or the rest of one that was cut.
pub(super) async fn get(
    State(front): State<Arc<Front>>,
    path: Option<Path<String>>,
    request: Request,
) -> Response {
    let endpoint = match endpoint(&front, path, request.extensions()) {
        Ok(endpoint) => endpoint,
        Err(nowhere) => return *nowhere,
    };
    let (head, _) = request.into_parts();
    let headers = &head.headers;
    if headers.get(SESSION_ID).is_none() {
        return reply::not_allowed("Mcp-Session-Id header missing: a stream needs a session");
    }
    if let Some(response) = far::elsewhere(&front, &endpoint, &head, (&Bytes::new(), &[])).await {
        return response;
    }
    let session = match find(&front, &endpoint, headers, &principal(&head.extensions)) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    let reads = Reads::of(&head.extensions);
    let last = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    if let Some(last) = last {
        let Some((tape, number)) = session.resume(last) else {
            if session.was_remade() {
                let words = "the gateway that had this stream is gone";
                return reply::error(StatusCode::NOT_FOUND, "null", -32001, words);
            }
            let words = "unknown or expired Last-Event-ID";
            return reply::error(StatusCode::BAD_REQUEST, "null", -32600, words);
        };
        return follow(front, session, (tape, number), reads);
    }
    let (tape, number) = session.own_stream();
    follow(front, session, (tape, number), reads)
}

/// Answers a DELETE: the session ends.
pub(super) async fn delete(
    State(front): State<Arc<Front>>,
    path: Option<Path<String>>,
    request: Request,
) -> Response {
    let endpoint = match endpoint(&front, path, request.extensions()) {
        Ok(endpoint) => endpoint,
        Err(nowhere) => return *nowhere,
    };
    let (head, _) = request.into_parts();
    if head.headers.get(SESSION_ID).is_none() {
        return reply::not_allowed("Mcp-Session-Id header missing: no session to end");
    }
    if let Some(response) = far::elsewhere(&front, &endpoint, &head, (&Bytes::new(), &[])).await {
        return response;
    }
    match find(&front, &endpoint, &head.headers, &principal(&head.extensions)) {
        Ok(session) => {
            front.sessions.end(&session.id);
            reply::json(StatusCode::OK, "{}")
        }
        Err(refused) => *refused,
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with the response that it writes")]
fn follow(
    front: Arc<Front>,
    session: Arc<Session>,
    (tape, from): (Arc<Tape>, u64),
    reads: Reads,
) -> Response {
    let (out, body) = body::stream();
    // From now on: what it is to read must not give way before it begins.
    let (reader, turn) = (tape.reader(from), tape.take_turn());
    tokio::spawn(follow::follow(front, session, (tape, reader), from, turn, (out, reads)));
    reply::events(body)
}

//! A POST: what it says, in which era, and for which servers.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use linetender::{Code, visible};
use linetender_wire::frame::{Bad, Frame, Kept, Message, Routing, string};
use linetender_wire::http::headers::PROTOCOL_VERSION;
use linetender_wire::{About, aside};

use super::activity::{Activity, Receiving};
use super::quota::{Over, Permit};
use super::said::{Form, Said};
use super::upload::{self, Cut, PAUSE};
use super::who::{owner, principal};
use super::{Front, far, legacy, modern, reply};
use crate::budget::Owner;
use crate::ends::Ended;
use crate::failed::Failed;
use crate::listing::Endpoint;
use crate::mux;

/// The first year of the modern era, as versions spell it.
const MODERN_FROM: &str = "2026";

/// What is longer is counted for as long as anything of it is kept.
const SHORT: usize = 4 * 1024;

/// What is longer takes longer to read than others should wait.
const LONG: usize = 256 * 1024;

/// By which a caller says that two requests are one.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The endpoint that a path leads to, or the answer that there is none.
pub(super) fn endpoint(
    front: &Front,
    path: Option<Path<String>>,
    of: &Extensions,
) -> Result<Endpoint, Box<Response>> {
    let Some(Path(name)) = path else { return Ok(Endpoint::All) };
    let sight = front.gateway.seen_by(&principal(of));
    if sight.route(&name).is_some() {
        return Ok(Endpoint::One(name.into()));
    }
    let name = visible::cut(&name, 200);
    let words = format!("no server named `{name}`; configured servers: {}", sight.names().join(", "));
    let failed = Failed::unroutable(Code::NotHere.number(), words, &sight.names());
    Err(Box::new(reply::json(StatusCode::NOT_FOUND, failed.error("null"))))
}

/// Answers a POST.
pub(super) async fn post(
    State(front): State<Arc<Front>>,
    path: Option<Path<String>>,
    request: Request,
) -> Response {
    let endpoint = match endpoint(&front, path, request.extensions()) {
        Ok(endpoint) => endpoint,
        Err(nowhere) => return *nowhere,
    };
    front.pulse.beat();
    let (head, body) = request.into_parts();
    if let Some(refused) = unacceptable(&head.headers) {
        return refused;
    }
    let limit = front.gateway.settings().message;
    let connection = head.extensions.get::<Arc<Activity>>();
    let owner = owner(&head.extensions);
    let read = {
        // Nothing was done for it yet: its place may be somebody else's.
        let _receiving = connection.map(Receiving::of);
        upload::whole(body, limit, &front.budget, owner).await
    };
    let (text, mut held) = match read {
        Ok(read) => read,
        Err(cut) => return unread(cut, limit, head.version),
    };
    match parsed(&front, &text, owner).await {
        // Its room is given back when it is answered.
        Ok(said) if text.len() <= SHORT => answer(front, endpoint, &head, text, said).await,
        Ok(said) => {
            // It may wait long after its response has begun, and what is sent to the server is a copy.
            let _ = held.force(text.len());
            let kept = Kept::with(Arc::new(held));
            let said = said.carrying(&kept);
            drop(kept);
            answer(front, endpoint, &head, text, said).await
        }
        Err(bad) => {
            let code = if bad == Bad::NotJson { -32700 } else { -32600 };
            let id = match (bad, linetender_wire::about(&text)) {
                (Bad::TooDeep { .. }, About::Question(Some(id))) => id,
                _ => "null".to_owned(),
            };
            reply::error(StatusCode::BAD_REQUEST, &id, code, &format!("the message is {bad}"))
        }
    }
}

/// The messages in a body. A long one is read where it holds up nobody else, one at a time.
async fn parsed(front: &Front, text: &Bytes, owner: Owner) -> Result<Said, Bad> {
    let limits = front.gateway.settings().limits();
    if text.len() <= LONG {
        return Said::read(text, limits);
    }
    let _turn = front.long.turn(owner.principal).await;
    let text = text.clone();
    aside(move || Said::read(&text, limits)).await.unwrap_or(Err(Bad::NotJson))
}

/// Why nothing more is read.
const OVER_BUDGET: &str =
    "the gateway's memory budget (gateway.memory) is used up by requests and responses in progress";

/// The whole response to what is not a request yet, and never will be: there is no room for its header.
pub(super) fn unread_head() -> Bytes {
    let text = Failed::refused(-32600, OVER_BUDGET, "never").error("null");
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
    [format!("{head}{}\r\n\r\n", text.len()).as_bytes(), &text].concat().into()
}

/// The answer to a request whose body is not there.
pub(super) fn unread(cut: Cut, limit: usize, version: Version) -> Response {
    let (status, words) = match cut {
        Cut::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, format!("the message is longer than {limit} bytes")),
        Cut::Early => (StatusCode::BAD_REQUEST, "the request body ended early".to_owned()),
        Cut::OverBudget => (StatusCode::SERVICE_UNAVAILABLE, OVER_BUDGET.to_owned()),
        Cut::Late => (
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the request body did not arrive in time: nothing came for {PAUSE:?}, or less than 64 KiB/s"
            ),
        ),
    };
    let mut response = reply::error(status, "null", -32600, &words);
    if version < Version::HTTP_2 {
        // What is left of the body is not read.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn answer(front: Arc<Front>, endpoint: Endpoint, head: &Parts, text: Bytes, said: Said) -> Response {
    let Said { mut frames, mut form } = said;
    let said = frames.len();
    if let Err(over) = take_more(head, said + form.refusals().len()) {
        let principal = principal(&head.extensions);
        for frame in &frames {
            front.gateway.ends().saw(frame, &principal, Ended::Refused(Code::Overloaded.number()));
        }
        return reply::over_quota(over);
    }
    frames.retain(|frame| !mux::is_unasked(frame));
    if frames.is_empty() && said > 0 && form.refusals().is_empty() {
        return reply::accepted();
    }
    if let Form::Batch { refusals } = &mut form {
        // One that cannot be read costs the others nothing.
        frames.retain(|frame| {
            let refused = read(frame).err().map(|(id, failed)| (failed.error(id), failed.code()));
            let Some((text, code)) = refused else { return true };
            front.gateway.ends().saw(frame, &principal(&head.extensions), Ended::Refused(code));
            refusals.push(text);
            false
        });
    }
    if let Some(key) = head.headers.get(IDEMPOTENCY_KEY) {
        // What is no text is no key, and is refused as one.
        let (key, of) = (key.to_str().unwrap_or_default(), principal(&head.extensions));
        for frame in &mut frames {
            if let Some(keyed) = mux::with_key(&front.gateway, &endpoint, &of, frame, key) {
                *frame = keyed;
            }
        }
    }
    let mut modern = false;
    for frame in &frames {
        let routing = match read(frame) {
            Ok(routing) => routing,
            Err((id, failed)) => {
                let refused = reply::refused(StatusCode::BAD_REQUEST, id, &failed);
                return count_refused(&front, head, &frames, refused);
            }
        };
        modern |= is_modern(frame, &routing, &head.headers);
        if modern && frames.len() == 1 && !form.is_batch() {
            let begun = match modern::begin(Arc::clone(&front), endpoint, head, frame, &routing) {
                Ok(begun) => begun,
                Err(refused) => return count_refused(&front, head, &frames, *refused),
            };
            drop((text, frames));
            return begun.answer().await;
        }
    }
    if modern {
        let words = "batches are not supported in this protocol version";
        let refused = reply::error(StatusCode::BAD_REQUEST, "null", -32600, words);
        return count_refused(&front, head, &frames, refused);
    }
    if let Some(response) = far::elsewhere(&front, &endpoint, head, (&text, &frames)).await {
        return response;
    }
    drop(text);
    legacy::post(front, endpoint, head, Said { frames, form }).await
}

/// Takes room for the messages of a body, of which the entrance counted one.
fn take_more(head: &Parts, messages: usize) -> Result<(), Over> {
    let more = u32::try_from(messages.saturating_sub(1)).unwrap_or(u32::MAX);
    match head.extensions.get::<Permit>() {
        Some(permit) if more > 0 => permit.more(&principal(&head.extensions), more),
        _ => Ok(()),
    }
}

/// Tells whoever counts of the requests of a body that was not taken, if the response says that.
pub(super) fn count_refused(front: &Front, head: &Parts, frames: &[Frame], response: Response) -> Response {
    if let Some(code) = reply::code_of_refused(&response) {
        let principal = principal(&head.extensions);
        for frame in frames {
            front.gateway.ends().saw(frame, &principal, Ended::Refused(code));
        }
    }
    response
}

/// What decides where a message goes; or its id, and the answer that two readers would decide differently.
fn read(frame: &Frame) -> Result<Routing<'_>, (&str, Failed)> {
    let (id, method, params) = match frame.message() {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { method, params } => ("null", method, params),
        Message::Response { .. } => return Ok(Routing::default()),
    };
    Routing::of(method, params)
        .map_err(|ambiguous| (id, Failed::refused(-32600, &format!("the params are {ambiguous}"), "never")))
}

/// Whether a message belongs to the modern era: by its own word, or by its header's.
fn is_modern(frame: &Frame, routing: &Routing<'_>, headers: &HeaderMap) -> bool {
    let header = headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    let newer = header.is_some_and(|version| version >= MODERN_FROM);
    let says = || routing.meta.version.and_then(string).is_some();
    match frame.message() {
        Message::Request { method: "initialize", .. } => says(),
        Message::Request { method, .. } => newer || method == "server/discover" || says(),
        Message::Notification { .. } | Message::Response { .. } => newer,
    }
}

// MCP, Streamable HTTP: the client MUST accept both JSON and event streams.
fn unacceptable(headers: &HeaderMap) -> Option<Response> {
    let of = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or("");
    if !of(CONTENT_TYPE).to_ascii_lowercase().starts_with("application/json") {
        let words = "Content-Type must be application/json";
        return Some(reply::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "null", -32600, words));
    }
    let accept = of(ACCEPT);
    let takes = |kind: &str| accept.contains(kind) || accept.contains("*/*");
    if !takes("application/json") || !takes("text/event-stream") {
        let words = "Accept must include application/json and text/event-stream";
        return Some(reply::error(StatusCode::NOT_ACCEPTABLE, "null", -32600, words));
    }
    None
}

//! A modern request stands by itself: its answer is its response, and hanging up takes it back.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use linetender::Members;
use linetender::session::Agent;
use linetender_wire::frame::{self, Frame, Message, Outcome};
use linetender_wire::handshake::MODERN;
use linetender_wire::http::headers::{METHOD, NAME, PROTOCOL_VERSION, decode};
use serde_json::json;
use tokio::sync::mpsc;

use super::post::{self, VERSION};
use super::tape::{Tape, There};
use super::{Front, body, reply, sse};
use crate::board::Door;
use crate::gateway::Stay;
use crate::splice::string;

/// How long an answer may take before the response begins without it: nobody between likes a silent response.
const QUIET: Duration = Duration::from_secs(1);

/// How often something is said on a stream that has nothing to say.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What a request has to say of its client.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Methods that the modern era has no more.
const REMOVED: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

const HEADER_MISMATCH: i32 = -32020;
const MISSING_CAPABILITY: i32 = -32021;
const UNSUPPORTED_VERSION: i32 = -32022;
const NO_METHOD: i32 = -32601;

/// A request under way. Dropped before its answer came, it is taken back.
struct Exchange {
    agent: Agent,
    id: Box<str>,
    answered: bool,
    listens: bool,
}

/// Answers one message.
pub(super) async fn answer(front: Arc<Front>, door: Door, headers: &HeaderMap, frame: Frame) -> Response {
    let Message::Request { id, method, params } = frame.message() else {
        // Nothing that a modern agent could tell us by itself concerns anybody.
        return reply::accepted();
    };
    if let Err(refused) = admit(headers, id, method, params) {
        return *refused;
    }
    let agent = match front.gateway.agent(&door, Stay::Request) {
        Ok(agent) => agent,
        Err(no_agent) => return reply::no_agent(id, no_agent),
    };
    let listens = method == "subscriptions/listen";
    let mut exchange = Exchange { agent, id: id.into(), answered: false, listens };
    if exchange.agent.to.send(frame.text().clone()).await.is_err() {
        return reply::error(StatusCode::INTERNAL_SERVER_ERROR, id, 7005, "the session ended");
    }
    let first = tokio::time::timeout(QUIET, exchange.agent.from.recv()).await.ok();
    match first {
        Some(Some(text)) if exchange.is_answer(&text) => {
            let status = status(&text);
            reply::json(status, text)
        }
        Some(None) => reply::error(StatusCode::INTERNAL_SERVER_ERROR, id, 7005, "the session ended"),
        Some(said @ Some(_)) => stream(front, exchange, said),
        None => stream(front, exchange, None),
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with the response that it writes")]
fn stream(front: Arc<Front>, exchange: Exchange, first: Option<Bytes>) -> Response {
    let (out, body) = body::stream();
    tokio::spawn(exchange.carry(front, out, first));
    reply::events(body)
}

impl Exchange {
    /// Carries what is said into the response, until its answer or until nobody reads it. What is not read lies on a tape,
    /// which is bounded: the servers, and all others, are heard whatever this agent does.
    async fn carry(mut self, front: Arc<Front>, out: mpsc::Sender<Bytes>, first: Option<Bytes>) {
        let tape = Tape::new(0);
        let (mut number, mut over) = (0, false);
        if let Some(text) = first {
            tape.push(text);
        }
        loop {
            let next = async {
                let room = out.reserve().await.ok()?;
                Some((room, tape.behind(number).await))
            };
            tokio::select! {
                said = self.agent.from.recv(), if !over => match said {
                    Some(text) if self.is_answer(&text) => {
                        over = true;
                        tape.finish(text);
                    }
                    Some(text) => tape.push(text),
                    None => {
                        over = true;
                        tape.end();
                    }
                },
                next = next => match next {
                    Some((room, (at, There::Message(text)))) => {
                        number = at;
                        room.send(sse::event(None, text));
                    }
                    // It begins anew, and reads again what it listens for. Of a call only progress is lost.
                    Some((room, (_, There::Missed(count)))) if self.listens => {
                        return room.send(sse::event(None, self.goodbye(Some(count))));
                    }
                    Some((_, (at, There::Missed(_)))) => number = at,
                    Some((_, (_, There::End))) | None => return,
                },
                () = out.closed() => return,
                () = tokio::time::sleep(KEEPALIVE) => {
                    // Without room for it nobody reads, and whoever is between has enough to carry.
                    let _ = out.try_send(sse::COMMENT);
                }
                // It would never end by itself.
                () = front.closes(), if self.listens => {
                    let _ = out.send(sse::event(None, self.goodbye(None))).await;
                    return;
                }
            }
        }
    }

    fn is_answer(&mut self, text: &Bytes) -> bool {
        let limits = frame::Limits { length: usize::MAX, depth: usize::MAX };
        let answer = frame::parse(text, limits).is_ok_and(
            |frame| matches!(frame.message(), Message::Response { id, .. } if id == Some(&*self.id)),
        );
        self.answered |= answer;
        answer
    }

    /// The proper end of a stream, and how much of it was lost because nobody read it.
    // MCP 2026-07-28, "Subscriptions": a server that ends one SHOULD send its response.
    fn goodbye(&self, missed: Option<u64>) -> Bytes {
        let id = &self.id;
        let missed = missed.map_or_else(String::new, |count| {
            let data = json!({ "source": "linetender", "missed": count, "cause": "this stream was not read in time" });
            format!(r#","linetender":{data}"#)
        });
        let meta = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}{missed}}}"#);
        frame::reply(id, &format!(r#"{{"resultType":"complete","_meta":{meta}}}"#))
    }
}

impl Drop for Exchange {
    // MCP 2026-07-28, "Cancellation": closing the response stream MUST be treated as cancellation.
    fn drop(&mut self) {
        if !self.answered {
            let params = format!(r#"{{"requestId":{},"reason":"the agent hung up"}}"#, self.id);
            let _ = self.agent.to.try_send(frame::notification("notifications/cancelled", Some(&params)));
        }
    }
}

/// The status of an answer: some errors have one of their own.
fn status(text: &Bytes) -> StatusCode {
    #[derive(serde::Deserialize)]
    struct Error {
        code: i64,
    }
    let limits = frame::Limits { length: usize::MAX, depth: usize::MAX };
    let Ok(frame) = frame::parse(text, limits) else { return StatusCode::OK };
    let Message::Response { outcome: Some((Outcome::Error, error)), .. } = frame.message() else {
        return StatusCode::OK;
    };
    match serde_json::from_str::<Error>(error).map(|error| i32::try_from(error.code)) {
        Ok(Ok(NO_METHOD)) => StatusCode::NOT_FOUND,
        Ok(Ok(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Lets a request in, or says why not.
fn admit(headers: &HeaderMap, id: &str, method: &str, params: Option<&str>) -> Result<(), Box<Response>> {
    let bad = |code, words: &str| Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, code, words)));
    // MCP 2026-07-28, "Request Metadata": both MUST be there.
    let version = post::version(params);
    let capabilities = meta(params, CAPABILITIES).is_some_and(|text| text.trim_start().starts_with('{'));
    let Some(version) = version.filter(|_| capabilities) else {
        return bad(-32602, &format!("{VERSION} and {CAPABILITIES} have to be in _meta"));
    };
    // MCP 2026-07-28, Streamable HTTP, "Server Validation": headers MUST say what the body says.
    agree(headers, &PROTOCOL_VERSION, Some(&version), id)?;
    if version != MODERN {
        let data = json!({ "supported": [MODERN], "requested": version });
        let words = "this version is not supported";
        return Err(Box::new(reply::error_with(
            StatusCode::BAD_REQUEST,
            id,
            UNSUPPORTED_VERSION,
            words,
            &data,
        )));
    }
    agree(headers, &METHOD, Some(method), id)?;
    let named = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    if let Some(member) = named {
        let name = params.and_then(Members::of).and_then(|params| string(params.get(member)));
        agree(headers, &NAME, name.as_deref(), id)?;
    }
    if REMOVED.contains(&method) {
        let words = format!("{method} is not of this version");
        return Err(Box::new(reply::error(StatusCode::NOT_FOUND, id, NO_METHOD, &words)));
    }
    Ok(())
}

fn agree(headers: &HeaderMap, name: &HeaderName, said: Option<&str>, id: &str) -> Result<(), Box<Response>> {
    let header = headers.get(name).and_then(|value| value.to_str().ok()).and_then(decode);
    if header.as_deref() == said && headers.get_all(name).iter().count() <= 1 {
        return Ok(());
    }
    let words = format!("the header {name} does not say what the body says");
    Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, HEADER_MISMATCH, &words)))
}

fn meta(params: Option<&str>, name: &str) -> Option<String> {
    let meta = Members::of(params?)?.get("_meta")?.get();
    Some(Members::of(meta)?.get(name)?.get().to_owned())
}

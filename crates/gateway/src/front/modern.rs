//! A modern request stands by itself: its answer is its response, and hanging up takes it back.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use linetender::session::{self, Agent, Replied};
use linetender_wire::frame::{self, Frame, Message, Passed, Routing, string};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::admit::{HEADER_MISMATCH, MISSING_CAPABILITY, NO_METHOD, UNSUPPORTED_VERSION, admit, mirrors};
use super::body::Piece;
use super::sent::Unread;
use super::tape::{Tape, There};
use super::who::{owner, visitor};
use super::{Front, body, reply, sse};
use crate::budget::Owner;
use crate::ends::Ended;
use crate::failed::Failed;
use crate::listing::{Berth, Endpoint, Listing};
use crate::mux::{self, Way};
use crate::principal::Principal;

/// How long an answer may take before the response begins without it: nobody between likes a silent response.
const QUIET: Duration = Duration::from_secs(1);

/// A request under way. Dropped before its answer came, it is taken back.
pub(super) struct Exchange {
    agent: Agent,
    way: Way,
    endpoint: Endpoint,
    id: Box<str>,
    /// Whose it is.
    owner: Owner,
    principal: Principal,
    unread: Arc<Unread>,
    answered: bool,
    listens: bool,
}

/// A message that was let in. What it was read from need not be kept for it.
pub(super) enum Begun {
    /// For which nobody has to be kept.
    Alone(mux::Answer, Waits),
    /// For which an agent is.
    Agent(Box<Exchange>, Frame, Arc<Front>),
}

/// Lets a message in, or answers it at once.
pub(super) fn begin(
    front: Arc<Front>,
    endpoint: Endpoint,
    head: &Parts,
    frame: &Frame,
    routing: &Routing<'_>,
) -> Result<Begun, Box<Response>> {
    let Message::Request { id, method, params } = frame.message() else {
        // Nothing that a modern agent could tell us by itself concerns anybody.
        return Err(Box::new(reply::accepted()));
    };
    let unread = Unread::of(&head.extensions);
    let visitor = visitor(head, admit(&head.headers, id, method, routing)?);
    if let (Some(name), "tools/call") = (routing.name.and_then(string), method) {
        let sight = front.gateway.seen_by(&visitor.principal);
        let mirrored = sight.view(&endpoint).and_then(|view| view.mirrored(&name));
        mirrored.map_or(Ok(()), |mirrored| mirrors(mirrored, head, id, params))?;
    }
    if let Some(answer) = front.gateway.ask(&endpoint, frame, &visitor) {
        let (id, principal) = (id.into(), visitor.principal);
        return Ok(Begun::Alone(answer, Waits { front, endpoint, id, principal, unread }));
    }
    let opened = front.gateway.agent(&endpoint, &visitor);
    let (agent, way) = opened.map_err(|no_agent| Box::new(reply::no_agent(id, no_agent, &endpoint)))?;
    let listens = method == "subscriptions/listen";
    let owner = owner(&head.extensions);
    let (id, principal) = (id.into(), visitor.principal);
    let exchange = Exchange { agent, way, endpoint, id, owner, principal, unread, answered: false, listens };
    Ok(Begun::Agent(Box::new(exchange), frame.clone(), front))
}

impl Begun {
    /// Its answer.
    pub(super) async fn answer(self) -> Response {
        let (mut exchange, frame, front) = match self {
            Self::Alone(answer, waits) => return alone(answer, waits).await,
            Self::Agent(exchange, frame, front) => (*exchange, frame, front),
        };
        if exchange.agent.to.send(frame.clone().into()).await.is_err() {
            let failed = Failed::not_handed();
            front.gateway.ends().saw(&frame, &exchange.principal, Ended::Refused(failed.code()));
            return reply::ended(&exchange.id, failed, &exchange.endpoint);
        }
        drop(frame);
        let first = tokio::time::timeout(QUIET, exchange.agent.from.recv()).await.ok();
        match first {
            Some(Some(text)) if exchange.is_answer(&text) => {
                let status = status(mux::error_code(&text));
                reply::json(status, text.into_text())
            }
            Some(None) => reply::ended(&exchange.id, Failed::cut(), &exchange.endpoint),
            Some(said @ Some(_)) => stream(front, exchange, said),
            None => stream(front, exchange, None),
        }
    }
}

/// Whose an answer is that takes its time.
pub(super) struct Waits {
    front: Arc<Front>,
    endpoint: Endpoint,
    id: Box<str>,
    principal: Principal,
    unread: Arc<Unread>,
}

/// An answer for which nobody has to be kept: whoever hangs up drops it, which takes it back.
#[expect(clippy::disallowed_methods, reason = "it ends with the response that it writes")]
async fn alone(mut answer: mux::Answer, waits: Waits) -> Response {
    let first = match tokio::time::timeout(QUIET, answer.next()).await {
        Ok(mux::Part::Answer(Replied { text, error })) => return reply::answer(status(error), text),
        Ok(mux::Part::Progress(step)) => Some(step),
        Err(_) => None,
    };
    let (out, body) = body::stream();
    let Waits { front, endpoint, id, principal, unread } = waits;
    let credential = front.credentials.shown_by(&principal);
    if let Some(step) = first {
        let _ = out.try_send(unread.counts(sse::event(None, step)));
    }
    let cut = async move {
        let why = tokio::select! {
            () = front.is_cut() => Failed::cut(),
            () = credential.is_taken_back() => Failed::shut_out(),
        };
        why.of(endpoint.server()).error(&id)
    };
    tokio::spawn(late(answer, cut, (out, unread)));
    reply::events(body)
}

/// Carries an answer that takes its time into the response, unless nobody reads that, or the time for it is up.
async fn late(
    mut answer: mux::Answer,
    cut: impl Future<Output = Bytes>,
    (out, unread): (mpsc::Sender<Piece>, Arc<Unread>),
) {
    let mut cut = pin!(cut);
    loop {
        // Progress waits where it is bounded until there is room for it; the call goes by its own time all the same.
        let room = tokio::select! {
            room = out.reserve() => room,
            never = answer.go_on(|text| unread.counted(text)) => match never {},
            text = &mut cut => {
                let _ = out.send(sse::event(None, text)).await;
                return;
            }
        };
        let Ok(room) = room else { return };
        tokio::select! {
            part = answer.next() => match part {
                mux::Part::Progress(step) => room.send(unread.counts(sse::event(None, step))),
                mux::Part::Answer(Replied { text, .. }) => {
                    return room.send(unread.counts(sse::event(None, text.whole().into_text())));
                }
            },
            text = &mut cut => return room.send(sse::event(None, text)),
            () = out.closed() => return,
            () = tokio::time::sleep(sse::KEEPALIVE) => room.send(sse::COMMENT.into()),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with the response that it writes")]
fn stream(front: Arc<Front>, exchange: Exchange, first: Option<Passed>) -> Response {
    let (out, body) = body::stream();
    tokio::spawn(exchange.carry(front, out, first));
    reply::events(body)
}

impl Exchange {
    /// Carries what is said into the response, until its answer or until nobody reads it. What is not read lies on a tape,
    /// which is bounded: the servers, and all others, are heard whatever this agent does.
    async fn carry(mut self, front: Arc<Front>, out: mpsc::Sender<Piece>, first: Option<Passed>) {
        let tape = Tape::drawing_on(0, &front.budget, self.owner);
        let _reader = tape.reader(0);
        let (mut number, mut over) = (0, false);
        let mut listing = front.gateway.listing();
        let principal = self.principal.clone();
        let credential = front.credentials.shown_by(&principal);
        let mut must_show_again = pin!(credential.must_be_shown_again());
        let mut is_taken_back = pin!(credential.is_taken_back());
        if let Some(text) = first {
            tape.push(text.into_text());
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
                        tape.finish(text.into_text());
                    }
                    Some(text) => tape.push(text.into_text()),
                    None => {
                        over = true;
                        tape.finish(self.cut());
                    }
                },
                () = front.is_cut(), if !over => {
                    over = true;
                    tape.finish(self.cut());
                }
                next = next => match next {
                    Some((room, (at, There::Message(text)))) => {
                        number = at;
                        room.send(self.unread.counts(sse::event_of_line(None, text)));
                    }
                    // It begins anew, and reads again what it listens for. Of a call only progress is lost.
                    Some((room, (_, There::Missed(count)))) if self.listens => {
                        return room.send(sse::event(None, self.goodbye(Some(count))));
                    }
                    Some((_, (at, There::Missed(_)))) => number = at,
                    Some((_, (_, There::End))) | None => return,
                },
                () = out.closed() => return,
                () = tokio::time::sleep(sse::KEEPALIVE) => {
                    // Without room for it nobody reads, and whoever is between has enough to carry.
                    let _ = out.try_send(sse::COMMENT.into());
                }
                // It would never end by itself.
                () = front.closes(), if self.listens => {
                    let _ = out.send(sse::event(None, self.goodbye(None))).await;
                    return;
                }
                // Nothing of what is there for it already is sent any more.
                () = &mut is_taken_back, if !self.listens => {
                    let shut_out = Failed::shut_out().of(self.endpoint.server()).error(&self.id);
                    let _ = out.try_send(sse::event(None, shut_out));
                    return;
                }
                () = &mut must_show_again, if self.listens => {
                    let _ = out.send(sse::event(None, self.goodbye(None))).await;
                    return;
                }
                // Its server does not know the filters: whoever listens anew does so through what knows them.
                () = filters_changed(&mut listing, &self.way), if self.listens => {
                    let _ = out.send(sse::event(None, self.goodbye(None))).await;
                    return;
                }
            }
        }
    }

    fn is_answer(&mut self, said: &Passed) -> bool {
        let answer = said.frame().is_ok_and(
            |frame| matches!(frame.message(), Message::Response { id, .. } if id == Some(&*self.id)),
        );
        self.answered |= answer;
        answer
    }

    fn cut(&self) -> Bytes {
        Failed::cut().of(self.endpoint.server()).error(&self.id)
    }

    /// The proper end of a stream, and how much of it was lost because nobody read it.
    fn goodbye(&self, missed: Option<u64>) -> Bytes {
        let missed = missed.map(|count| {
            let data = json!({ "source": "linetender", "missed": count, "cause": "this stream was not read fast enough (back-pressure)" });
            format!(r#""linetender":{data}"#)
        });
        session::listened(&self.id, missed.as_deref())
    }
}

impl Drop for Exchange {
    // MCP 2026-07-28, "Cancellation": closing the response stream MUST be treated as cancellation.
    fn drop(&mut self) {
        if !self.answered {
            let params = format!(r#"{{"requestId":{},"reason":"the agent disconnected"}}"#, self.id);
            let _ =
                self.agent.to.try_send(frame::notification("notifications/cancelled", Some(&params)).into());
        }
    }
}

/// Waits until other filters hold for the server that a straight way leads to.
async fn filters_changed(listing: &mut watch::Receiver<Arc<Listing>>, way: &Way) {
    let Way::Straight(then) = way else { return std::future::pending().await };
    let differ = |now: &Arc<Berth>| now.number == then.number && !Arc::ptr_eq(now, then);
    if listing.wait_for(|listing| listing.berth(then.name()).is_some_and(differ)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The status of an answer: some errors have one of their own.
fn status(error: Option<i64>) -> StatusCode {
    match error.map(i32::try_from) {
        Some(Ok(NO_METHOD)) => StatusCode::NOT_FOUND,
        Some(Ok(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Unread, late};
    use crate::front::sse::KEEPALIVE;
    use crate::mux;
    use bytes::Bytes;
    use linetender::session::Replied;
    use tokio::sync::{mpsc, oneshot};

    #[tokio::test(start_paused = true)]
    async fn o06_a_call_whose_stream_nobody_reads_still_ends_in_its_time() {
        let (over, ended) = oneshot::channel();
        let answer = async move {
            tokio::time::sleep(KEEPALIVE * 10).await;
            let _ = over.send(());
            Replied { text: Bytes::from_static(b"{}").into(), error: None }
        };
        let answer = mux::Answer::new(answer, None);
        // Room for less than is said in the meantime.
        let (out, mut unread) = mpsc::channel(2);
        let mut tasks = tokio::task::JoinSet::new();
        let of_nobody = Unread::of(&http::Extensions::new());
        tasks.spawn(late(answer, std::future::pending(), (out, of_nobody)));
        tokio::time::timeout(KEEPALIVE * 11, ended).await.expect("it goes by its own time").unwrap();
        let mut last = Vec::new();
        while let Some(Piece(parts)) = unread.recv().await {
            last = parts.concat();
        }
        assert_eq!(last, b"data: {}\n\n", "and whoever reads at last has the answer");
    }
}

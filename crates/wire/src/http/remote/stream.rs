//! Events: those that answer a request, and those that the server sends by itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use linetender_core::LossReport;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::exchange::{self, Replied};
use super::replay::Replay;
use super::session::{self, Session};
use super::shared::{Shared, Spoken};
use crate::frame::{self, Frame, Message};
use crate::handshake::Era;
use crate::http::headers;
use crate::http::meaning::{Call, Line, Purpose};
use crate::http::sse::{Sse, SseItem};
use crate::http::{Body, Broken, KeyRefused, Response};
use crate::lines::{self, About, Item};
use crate::redact::Redacted;
use crate::reopen::Reopen;
use crate::room::{NoRoom, Unfinished};
use crate::seam::{Event, Loss};
use crate::seen::Seen;
use crate::test_hooks;

/// How long the server's own stream may take to open before anything is asked. What a server wants to ask while it has no
/// stream, it forgets, and a call that waits for the answer hangs. Some send nothing at all before their first event.
const OPENED: Duration = Duration::from_millis(500);

/// How often in a row a stream that was to bring an answer is taken up again without a single event that has a new id. A server
/// may let us poll like that for as long as the call may take.
const RESUMES: u32 = 3;

/// Minimum wait before that: a server decides how often it lets us poll. It doubles every so many times, so often: a server that
/// has news whenever it is asked, and never the answer, is asked every few seconds in the end.
const LEAST: Duration = Duration::from_millis(100);
const LEAST_DOUBLES_EVERY: u32 = 8;
const LEAST_DOUBLES: u32 = 5;

/// How long a stream that was refused for its key waits for another one.
const RENEWED: Duration = Duration::from_secs(30);

/// How often in a row that is. Some servers refuse the stream alone, whatever the key.
const REFUSALS: u32 = 2;

/// How a stream of events ended.
enum Ended {
    /// The answer came.
    Answered,
    /// It ended, and the answer had not come.
    Over,
    /// It broke.
    Broken(Broken),
    /// An event was longer than a message may be.
    TooLong { seen: usize },
    /// There is no room for an event.
    NoRoom,
}

/// What is known of a stream besides its events.
#[derive(Default)]
struct Place {
    last_id: Option<Box<str>>,
    retry: Option<Duration>,
    /// Events so far.
    replay: Replay,
}

/// The events that follow a POST, up to its answer. A legacy stream that ends too early is taken up where it ended.
pub(super) async fn answers(
    shared: &Arc<Shared>,
    asked: &Frame,
    spoken: &Spoken,
    id: u64,
    response: Response,
) {
    let mut place = Place::default();
    let mut ended = read(shared, Some((asked, id)), response.body, &mut place).await;
    let (mut tries, mut resumes) = (0, 0u32);
    while spoken.era == Era::Legacy && tries < RESUMES && matches!(ended, Ended::Over | Ended::Broken(_)) {
        let Some(last_id) = place.last_id.clone() else { break };
        let least = LEAST * (1 << (resumes / LEAST_DOUBLES_EVERY).min(LEAST_DOUBLES));
        let wait = place.retry.unwrap_or(Duration::from_millis(100 << tries)).max(least);
        tokio::time::sleep(wait).await;
        tries += 1;
        resumes += 1;
        // On the heap: hardly a call needs it.
        match Box::pin(open(shared, spoken, Some(&last_id))).await {
            Ok(Opened { call: Call::Stream, body: Some(body), .. }) => {
                ended = read(shared, Some((asked, id)), body, &mut place).await;
                if place.replay.is_new() {
                    tries = 0;
                }
            }
            Ok(Opened { line: Line::SessionDoubted { .. }, .. }) => break,
            Ok(Opened { refused: Some(refused), .. }) => Box::pin(renewed(shared, &refused)).await,
            Ok(_) => {}
            Err(broken) => ended = Ended::Broken(broken),
        }
    }
    let words = match ended {
        Ended::Answered => return,
        Ended::Broken(broken) => {
            // Whatever broke on a later try, the request itself had been written.
            exchange::broke(shared, id, &broken.clone().after_earlier_hop());
            if !exchange::is_stream(asked) {
                shared.tell(Event::Trouble(broken.seen())).await;
            }
            return;
        }
        Ended::Over if tries > 0 => {
            format!("the stream ended without a response, and {tries} attempts to resume it failed")
        }
        Ended::Over => "the stream ended without a response".to_owned(),
        Ended::NoRoom => format!("the response is {NoRoom}"),
        Ended::TooLong { seen } => {
            format!("the response is longer than {} bytes ({seen} bytes received)", shared.limits.length)
        }
    };
    let seen = Seen::Unusable { words: Redacted::head(&words, 200) };
    shared.listener.lost(id, Loss::new(LossReport::Nothing, seen));
}

/// Reads events until the answer, if there is one to wait for, or the end.
async fn read(shared: &Shared, waits: Option<(&Frame, u64)>, mut body: Body, place: &mut Place) -> Ended {
    let mut sse = Sse::new(shared.limits.length);
    place.replay.connected();
    let mut unfinished = Unfinished::new(&*shared.listener);
    let ended = loop {
        if unfinished.now(sse.held()).is_err() && unfinished.settled().await.is_err() {
            break Ended::NoRoom;
        }
        let chunk = tokio::select! {
            biased;
            chunk = body.chunk() => chunk,
            Err(_) = unfinished.settled() => break Ended::NoRoom,
        };
        match chunk {
            Ok(Some(chunk)) => {
                shared.heard().await;
                sse.push(&chunk);
            }
            Ok(None) => break Ended::Over,
            Err(broken) => break Ended::Broken(broken),
        }
        let mut over = None;
        while let Some(item) = sse.take() {
            match item {
                SseItem::Event(event) => {
                    let heard = if place.replay.take(event.id.as_deref()) {
                        hear(shared, waits, &event.data)
                    } else {
                        again(shared, waits, &event.data)
                    };
                    if heard {
                        over = Some(Ended::Answered);
                    }
                }
                SseItem::TooLong { seen, .. } => over = Some(Ended::TooLong { seen }),
            }
        }
        if let Some(over) = over {
            break over;
        }
    };
    // A server that was cut behind its answer has answered. Half a message is none: it does not parse.
    let ended = match ended {
        Ended::Over | Ended::Broken(_)
            if sse.finish().is_some_and(|event| answers_us(shared, waits, &event.data)) =>
        {
            Ended::Answered
        }
        ended => ended,
    };
    if let Some(id) = sse.last_id() {
        place.last_id = Some(id.into());
    }
    place.retry = sse.retry().or(place.retry);
    // Whoever waited has the answer already: this keeps nobody but the connection.
    if matches!(ended, Ended::Answered) {
        body.forget().await;
    }
    ended
}

/// Hears an event only if it is the answer: it has no end, or came before.
fn answers_us(shared: &Shared, waits: Option<(&Frame, u64)>, data: &Bytes) -> bool {
    let Some((_, id)) = waits else { return false };
    let is_ours = |frame: &Frame| frame.response_number() == Some(id);
    frame::parse_all(data, shared.limits).is_ok_and(|frames| frames.iter().any(is_ours))
        && hear(shared, waits, data)
}

/// Hears an event that the server sent before: what it says was passed on. Hearing once more that something changed costs
/// nothing, and missing it may: some servers count their events anew on each connection.
fn again(shared: &Shared, waits: Option<(&Frame, u64)>, data: &Bytes) -> bool {
    let tells_of_change = |frame: &Frame| {
        matches!(frame.message(), Message::Notification { method, .. }
            if method.ends_with("/list_changed") || method == "notifications/resources/updated")
    };
    if frame::parse_all(data, shared.limits).is_ok_and(|frames| frames.iter().all(tells_of_change)) {
        return hear(shared, waits, data);
    }
    answers_us(shared, waits, data)
}

/// One event's data: a message, or several. Whether the answer was among them.
fn hear(shared: &Shared, waits: Option<(&Frame, u64)>, data: &Bytes) -> bool {
    if data.is_empty() {
        return false;
    }
    let frames = match frame::parse_all(data, shared.limits) {
        Ok(frames) => frames,
        Err(bad) => {
            // The answer, and nothing that can be passed on: its call must not wait for another.
            let about = lines::about(data);
            let ours = matches!(&about, About::Answer(given) if waits.is_some_and(|(_, id)| frame::number(given) == Some(id)));
            let item = if ours {
                Item::Unreadable { about, bad, seen: data.len() }
            } else {
                Item::Noise(data.clone())
            };
            shared.listener.hear(item);
            return ours;
        }
    };
    let mut answered = false;
    for frame in frames {
        let frame = match waits {
            Some((asked, id)) => {
                let frame = paired(frame, id, shared);
                if frame.response_number() == Some(id) {
                    exchange::greeted(shared, asked, &frame);
                    answered = true;
                }
                frame
            }
            None => frame,
        };
        // Each request has an exchange of its own: what names none, elsewhere, is about no call (H21).
        let stray = matches!(frame.message(), Message::Response { id: None, .. });
        let item = if stray { Item::Noise(frame.text().clone()) } else { Item::Frame(frame) };
        match waits {
            Some((_, id)) => shared.listener.hear_during(id, item),
            None => shared.listener.hear(item),
        }
    }
    answered
}

/// An error without an id, on a stream that has one request, is about that request.
fn paired(frame: Frame, id: u64, shared: &Shared) -> Frame {
    match frame.message() {
        Message::Response { id: None, outcome: Some((frame::Outcome::Error, error)) } => {
            frame::parse(&frame::error_reply(&id.to_string(), error), shared.limits).unwrap_or(frame)
        }
        _ => frame,
    }
}

/// What came of opening a stream.
struct Opened {
    call: Call,
    line: Line,
    /// The events that follow. Without the head of the response: what was read along with it would be kept as long as the stream.
    body: Option<Body>,
    /// The key that was refused, where keys can be renewed.
    refused: Option<Box<KeyRefused>>,
}

async fn open(shared: &Shared, spoken: &Spoken, last_id: Option<&str>) -> Result<Opened, Broken> {
    let ours = headers::stream_headers(spoken.version.as_deref(), spoken.session.as_ref(), last_id);
    let (request, key) = exchange::request(shared, Method::GET, ours, Bytes::new(), None);
    let response = shared.pool.send(&request).await?;
    let replied = exchange::read(shared, spoken, Purpose::Stream, response, key).await?;
    let Replied { meaning, response, refused, .. } = replied;
    let body = response.map(|response| response.body);
    Ok(Opened { call: meaning.call, line: meaning.line, body, refused })
}

/// Tells of a key that was refused, and waits for another one; not for ever.
async fn renewed(shared: &Shared, refused: &KeyRefused) {
    shared.tell(Event::KeyRefused(Box::new(refused.clone()))).await;
    if let Some(slot) = &shared.key {
        let _ = tokio::time::timeout(RENEWED, slot.other_than(&refused.key)).await;
    }
}

/// The server's own stream (legacy): opened again and again, with waits of its own, while the server is used, until the session is
/// gone; never again if the server refuses the first. It never touches the line's budget. `opened` is told when the server first said anything about it.
pub(super) async fn own(shared: Arc<Shared>, opened: oneshot::Sender<()>) {
    let mut reopen = Reopen::new(shared.seed);
    let mut place = Place::default();
    let mut waits = Some(opened);
    let mut refusals = 0;
    loop {
        test_hooks::point("stream");
        let spoken = shared.spoken().clone();
        let began = Instant::now();
        let answer = {
            // On the heap: a stream is open for much longer than it is being opened.
            let mut opening = Box::pin(open(&shared, &spoken, place.last_id.as_deref()));
            match waits.take() {
                Some(opened) => {
                    let soon = tokio::time::timeout(OPENED, &mut opening).await;
                    let _ = opened.send(());
                    match soon {
                        Ok(answer) => answer,
                        Err(_) => opening.await,
                    }
                }
                None => opening.await,
            }
        };
        match answer {
            Ok(Opened { call: Call::Stream, body: Some(body), .. }) => {
                refusals = 0;
                if reopen.opened() {
                    shared.listener.gap();
                }
                read(&shared, None, body, &mut place).await;
            }
            Ok(Opened { line: Line::SessionDoubted { .. }, .. }) => {
                match Box::pin(session::look_for(&shared, &spoken)).await {
                    Session::Refused { .. } | Session::Gone => {
                        shared.lost(shared.session_lost()).await;
                        return;
                    }
                    // It has the session, and no such stream; or something before it had a bad moment.
                    Session::Lives if !reopen.was_open() => return,
                    Session::Lives => {}
                    // Nobody knows: it is asked again, in its own time.
                    Session::Silent => {}
                }
            }
            Ok(Opened { refused: Some(refused), .. }) if refusals < REFUSALS => {
                refusals += 1;
                renewed(&shared, &refused).await;
                continue;
            }
            Ok(Opened { call: Call::Lost { report: LossReport::Refused(_), .. }, .. })
                if !reopen.was_open() =>
            {
                return;
            }
            Ok(_) | Err(_) => {}
        }
        let wait = reopen.wait(began.elapsed(), place.retry);
        tokio::time::sleep(wait).await;
        shared.listener.stream_wanted().await;
    }
}

//! The transport of 2024-11-05 (HTTP+SSE), beside the others: a stream at `/sse`, whose first event names the URL that messages
//! are posted to, and on which they are answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::sync::{broadcast, mpsc, watch};

use super::body::{Gone, Out, Sink};
use super::calls::Call;
use super::house::Change;
use super::manners::{Answers, Manners, SseDoor, Streams};
use super::post::{Asked, Era};
use super::reply::{self, Answer};
use super::{faults, legacy, methods};
use crate::offers;

/// Where a stream is opened, and where messages go.
pub(super) const PATHS: [&str; 2] = ["/sse", "/messages"];

/// Answers that may wait for a client that does not read.
const WAITING: usize = 64;

/// The streams that are open, by session.
#[derive(Debug, Default)]
pub(super) struct OpenStreams {
    all: Mutex<HashMap<String, mpsc::Sender<String>>>,
    /// How often all of them were cut.
    cuts: watch::Sender<u64>,
}

impl OpenStreams {
    fn open(&self, session: &str) -> mpsc::Receiver<String> {
        let (says, said) = mpsc::channel(WAITING);
        let mut all = self.all();
        all.retain(|_, says| !says.is_closed());
        all.insert(session.to_owned(), says);
        said
    }

    fn of(&self, session: &str) -> Option<mpsc::Sender<String>> {
        self.all().get(session).filter(|says| !says.is_closed()).cloned()
    }

    /// Cuts all of them.
    pub(super) fn cut(&self) {
        self.all().clear();
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all().values().filter(|says| !says.is_closed()).count()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<String>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a request at one of its paths.
pub(super) async fn serve(asked: Asked, manners: &Manners) -> Result<Answer, Gone> {
    match (&asked.head.method, asked.head.uri.path()) {
        (&Method::GET, "/sse") => Ok(open(&asked, manners)),
        (&Method::POST, "/messages") => message(asked, manners).await,
        _ => Ok(reply::text(405, "Method Not Allowed")),
    }
}

fn open(asked: &Asked, manners: &Manners) -> Answer {
    if manners.streams == Streams::Refused {
        return reply::text(405, "there is no stream");
    }
    let session = asked.house.open_session();
    let said = asked.house.open_streams.open(&session);
    let names = manners.endpoint.as_deref().unwrap_or("/messages?session_id={session}");
    let first = format!("event: endpoint\r\ndata: {}\r\n\r\n", names.replace("{session}", &session));
    let (streams, changes) = (manners.streams, asked.house.changes.subscribe());
    let mut cuts = asked.house.open_streams.cuts.subscribe();
    reply::events(Out::live(&asked.tap, |sink| async move {
        match streams {
            Streams::Empty | Streams::Refused => Ok(()),
            Streams::Silent => std::future::pending().await,
            Streams::Open => {
                sink.say(first).await;
                tokio::select! {
                    _ = cuts.changed() => Err(Gone::cut()),
                    ended = speak(said, changes, &sink) => ended,
                }
            }
            Streams::CloseAfter(time) | Streams::CutAfter(time) => {
                sink.say_now(first).await;
                tokio::select! {
                    () = tokio::time::sleep(time) => {}
                    ended = speak(said, changes, &sink) => return ended,
                }
                if matches!(streams, Streams::CutAfter(_)) { Err(Gone::cut()) } else { Ok(()) }
            }
        }
    }))
}

/// Says each answer, and that the tools have changed, until the stream is cut.
async fn speak(
    mut said: mpsc::Receiver<String>,
    mut changes: broadcast::Receiver<Change>,
    sink: &Sink,
) -> Result<(), Gone> {
    loop {
        let text = tokio::select! {
            said = said.recv() => said.ok_or_else(Gone::cut)?,
            change = changes.recv() => match change {
                Ok(Change::Tools) => {
                    let note = offers::notification("notifications/tools/list_changed", json!({}), None);
                    event(&note.to_string())
                }
                _ => continue,
            },
        };
        sink.say(text).await;
    }
}

fn event(data: &str) -> String {
    format!("event: message\r\ndata: {data}\r\n\r\n")
}

/// A message: taken with 202, and answered on the stream of its session.
async fn message(asked: Asked, manners: &Manners) -> Result<Answer, Gone> {
    let query = asked.head.uri.query().unwrap_or_default();
    let session = query.split('&').find_map(|pair| pair.strip_prefix("session_id=")).unwrap_or_default();
    let says = asked.house.open_streams.of(session).filter(|_| asked.house.knows(session));
    let Some(says) = says else { return Ok(legacy::unknown(&asked, manners.unknown_session)) };
    if asked.message.get("method").is_none() {
        asked.house.told(&asked.message);
    }
    if asked.message.get("id").is_none()
        || asked.message.get("method").is_none()
        || manners.sse == SseDoor::Mute
    {
        return Ok(reply::accepted());
    }
    if asked.method() == "tools/call" {
        let name = asked.params()["name"].as_str().unwrap_or_default().to_owned();
        let arguments = asked.params()["arguments"].clone();
        if let Some(answer) = faults::run(&Call::new(asked.clone(), Era::Legacy, name, arguments)).await {
            return answer;
        }
    }
    let holds = manners.sse == SseDoor::HoldsPosts;
    let manners = Manners { answers: Answers::Json, stateless: true, ..manners.clone() };
    let house = std::sync::Arc::clone(&asked.house);
    house.run(async move {
        let Ok(answer) = methods::answer(asked, Era::Legacy, &manners).await else { return };
        let is_events =
            answer.headers().get(http::header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let mut body = answer.into_body();
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            let text = String::from_utf8_lossy(&data).into_owned();
            let _ = says.send(if is_events { text } else { event(&text) }).await;
        }
    });
    if holds {
        std::future::pending::<()>().await;
    }
    Ok(reply::accepted())
}

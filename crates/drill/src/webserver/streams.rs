//! The stream that a server speaks on unasked: GET in the legacy era, `subscriptions/listen` in the modern one.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::body::{Gone, Out, Sink};
use super::manners::{Answers, Manners, Speaks, Streams};
use super::post::{Asked, Era};
use super::reply::{self, Answer};
use super::{answers, legacy, methods};

/// What is said on a stream, and by which names.
struct Voice {
    changes: broadcast::Receiver<()>,
    /// The `_meta` of each notification; null in the legacy era.
    meta: Value,
    numbered: bool,
    /// What a proper end says.
    last: String,
}

/// A legacy GET: a stream of its own, or the rest of another one.
pub(super) fn get(asked: &Asked, manners: &Manners) -> Answer {
    if manners.speaks == Speaks::Modern || manners.streams == Streams::Refused {
        return reply::text(405, "there is no stream");
    }
    if let Err(refused) = legacy::admit(asked, manners) {
        return *refused;
    }
    if let Some((replay, next)) = asked.header("last-event-id").and_then(|id| asked.house.replays.after(id)) {
        return answers::follow(asked, replay, next, manners);
    }
    let numbered = manners.answers == Answers::Primed;
    let changes = asked.house.changes.subscribe();
    let voice = Voice { changes, meta: Value::Null, numbered, last: String::new() };
    open(asked, manners, reply::retry(manners.retry_ms), voice)
}

/// A modern subscription.
pub(super) fn listen(asked: &Asked, manners: &Manners) -> Answer {
    if manners.streams == Streams::Refused {
        return methods::unknown(asked, Era::Modern);
    }
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": asked.id() });
    let wanted = asked.params()["notifications"]["toolsListChanged"].as_bool().unwrap_or(false);
    let accepted = if wanted { json!({ "toolsListChanged": true }) } else { json!({}) };
    // MCP 2026-07-28, subscriptions: the acknowledgement is the first message.
    let first = json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "_meta": meta, "notifications": accepted },
    });
    let last = reply::result(asked.id(), &json!({ "resultType": "complete", "_meta": meta }));
    let changes = asked.house.changes.subscribe();
    let voice = Voice { changes, meta, numbered: false, last: reply::event(None, &last.to_string()) };
    open(asked, manners, reply::event(None, &first.to_string()), voice)
}

fn open(asked: &Asked, manners: &Manners, first: String, voice: Voice) -> Answer {
    let streams = manners.streams;
    reply::events(Out::live(&asked.tap, |sink| async move {
        match streams {
            Streams::Empty | Streams::Refused => Ok(()),
            Streams::Silent => std::future::pending().await,
            Streams::Open => {
                sink.say(first).await;
                voice.speak(&sink).await;
                Ok(())
            }
            Streams::CloseAfter(time) => {
                let last = voice.last.clone();
                speak_for(time, first, voice, &sink).await;
                sink.say(last).await;
                Ok(())
            }
            Streams::CutAfter(time) => {
                speak_for(time, first, voice, &sink).await;
                Err(Gone::cut())
            }
        }
    }))
}

async fn speak_for(time: Duration, first: String, voice: Voice, sink: &Sink) {
    sink.say_now(first).await;
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = voice.speak(sink) => {}
    }
}

impl Voice {
    /// Tells each change, for as long as the server lives.
    async fn speak(mut self, sink: &Sink) {
        let mut note = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        if !self.meta.is_null() {
            note["params"] = json!({ "_meta": self.meta });
        }
        let mut number = 0_u32;
        loop {
            match self.changes.recv().await {
                Ok(()) => {
                    number += 1;
                    let id = self.numbered.then(|| format!("g-{number}"));
                    sink.say(reply::event(id.as_deref(), &note.to_string())).await;
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }
}

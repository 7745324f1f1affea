//! The stream that a server speaks on unasked: GET in the legacy era, `subscriptions/listen` in the modern one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::body::{Gone, Out, Sink};
use super::house::{Change, House};
use super::manners::{Answers, Manners, Speaks, Streams};
use super::post::{Asked, Era};
use super::reply::{self, Answer};
use super::{answers, legacy, methods};
use crate::offers;

/// What is said on a stream, and by which names.
struct Voice {
    house: Arc<House>,
    changes: broadcast::Receiver<Change>,
    /// The request that opened a subscription, and what it wants to hear of; none in the legacy era.
    subscription: Option<(Value, Value)>,
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
    let house = Arc::clone(&asked.house);
    let voice = Voice { house, changes, subscription: None, numbered, last: String::new() };
    open(asked, manners, reply::retry(manners.retry_ms), voice)
}

/// A modern subscription.
pub(super) fn listen(asked: &Asked, manners: &Manners) -> Answer {
    if manners.streams == Streams::Refused {
        return methods::unknown(asked, Era::Modern);
    }
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": asked.id() });
    let wanted = &asked.params()["notifications"];
    let mut accepted = json!({});
    for kind in ["toolsListChanged", "resourceSubscriptions"] {
        if let Some(wish) = wanted.get(kind).filter(|wish| **wish != json!(false)) {
            accepted[kind] = wish.clone();
        }
    }
    // MCP 2026-07-28, subscriptions: the acknowledgement is the first message.
    let first = json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "_meta": meta, "notifications": accepted },
    });
    let last = reply::result(asked.id(), &json!({ "resultType": "complete", "_meta": meta }));
    let changes = asked.house.changes.subscribe();
    let last = reply::event(None, &last.to_string());
    let subscription = Some((asked.id().clone(), wanted.clone()));
    let voice = Voice { house: Arc::clone(&asked.house), changes, subscription, numbered: false, last };
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
        let mut number = 0_u32;
        loop {
            match self.changes.recv().await {
                Ok(change) => {
                    let Some(note) = self.note(&change) else { continue };
                    number += 1;
                    let id = self.numbered.then(|| format!("g-{number}"));
                    sink.say(reply::event(id.as_deref(), &note.to_string())).await;
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    /// What this stream says of a change, if anything.
    fn note(&self, change: &Change) -> Option<Value> {
        let (id, wanted) = match &self.subscription {
            Some((id, wanted)) => (Some(id), wanted),
            None => (None, &Value::Null),
        };
        match change {
            // A subscription that did not ask is told all the same: that, too, happens.
            Change::Tools => Some(offers::notification("notifications/tools/list_changed", json!({}), id)),
            Change::Resource(uri) => {
                let listed = wanted["resourceSubscriptions"].as_array();
                let wants = match id {
                    Some(_) => listed.is_some_and(|listed| listed.iter().any(|one| one == uri)),
                    None => self.house.is_subscribed(uri),
                };
                wants.then(|| offers::updated(uri, id))
            }
        }
    }
}

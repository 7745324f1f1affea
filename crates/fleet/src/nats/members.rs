//! Who is there: each node says so every other second, and is believed for a few. Only placement goes by it; who owns a line is
//! said by leases alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subject};
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

/// How often a node says that it is there, and for how long it is believed.
const BEAT: Duration = Duration::from_secs(2);
const BELIEVED: Duration = Duration::from_secs(7);

/// Nobody's fleet is larger.
const MOST: usize = 1024;

/// The longest that a node says of itself.
const LONGEST: usize = 4096;

/// A node, as it says itself.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its number, which nobody ever has again.
    pub node: u64,
    /// Which linetender it is.
    pub version: String,
    /// Whether it goes: nothing new is placed there.
    #[serde(default)]
    pub leaving: bool,
    /// How many lines it owns.
    #[serde(default)]
    pub owns: usize,
}

/// Those that are there, by their numbers. This node is always among them.
pub(super) type Members = Arc<BTreeMap<u64, Member>>;

/// Says that this node is there and hears who else is, until it is dropped.
pub(super) async fn keep(
    client: Client,
    fleet: String,
    mut own: watch::Receiver<Member>,
    tell: watch::Sender<Members>,
) {
    let subject = Subject::from(format!("linetender.{fleet}.nodes"));
    let mut heard: BTreeMap<u64, (Member, Instant)> = BTreeMap::new();
    loop {
        // A subscription lives as long as the client does; that one ends is a fault, and another one is made.
        let Ok(mut said) = client.subscribe(subject.clone()).await else {
            tokio::time::sleep(BEAT).await;
            continue;
        };
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let says = tokio::select! {
                message = said.next() => match message {
                    Some(message) => hear(&mut heard, &message, own.borrow().node),
                    None => break,
                },
                _ = beat.tick() => true,
                changed = own.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    true
                }
            };
            heard.retain(|_, (_, at)| at.elapsed() < BELIEVED);
            let ours = own.borrow_and_update().clone();
            if says && let Ok(text) = serde_json::to_vec(&ours) {
                // If it cannot be said now it is said again soon.
                let _ = tokio::time::timeout(BEAT, client.publish(subject.clone(), text.into())).await;
            }
            let mut members: BTreeMap<_, _> =
                heard.iter().map(|(node, (member, _))| (*node, member.clone())).collect();
            members.insert(ours.node, ours);
            tell.send_if_modified(|before| {
                let differs = **before != members;
                if differs {
                    *before = Arc::new(members);
                }
                differs
            });
        }
    }
}

/// Takes what a node says of itself; whether it is new, and wants to hear of us.
fn hear(heard: &mut BTreeMap<u64, (Member, Instant)>, message: &Message, own: u64) -> bool {
    if message.payload.len() > LONGEST {
        return false;
    }
    let Ok(member) = serde_json::from_slice::<Member>(&message.payload) else { return false };
    if member.node == own || (heard.len() >= MOST && !heard.contains_key(&member.node)) {
        return false;
    }
    heard.insert(member.node, (member, Instant::now())).is_none()
}

/// Names of those where lines are placed.
pub(super) fn places(members: &Members) -> Vec<&str> {
    let mut names: Vec<_> =
        members.values().filter(|member| !member.leaving).map(|member| &*member.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

//! Who is there: each node says so every other second, and is believed for a few. Only placement goes by it; who owns a line is
//! said by leases alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
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
    /// Stands for the names of the lines that it shares: two with the same number share the same lines.
    #[serde(default)]
    pub shares: u64,
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
    // If this was begun anew, those who were there are believed once more.
    let (ours, known) = (own.borrow().node, Arc::clone(&tell.borrow()));
    let known = known.iter().filter(|(node, _)| **node != ours);
    let mut heard: BTreeMap<u64, (Member, Instant)> =
        known.map(|(node, member)| (*node, (member.clone(), Instant::now()))).collect();
    loop {
        // A subscription lives as long as the client does; that one ends is a fault, and another one is made.
        let Ok(mut said) = client.subscribe(subject.clone()).await else {
            tokio::time::sleep(BEAT).await;
            continue;
        };
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (mut says, mut differs) = (true, false);
            tokio::select! {
                message = said.next() => match message {
                    Some(message) => (says, differs) = hear(&mut heard, &message, own.borrow().node),
                    None => break,
                },
                _ = beat.tick() => {}
                changed = own.changed() => match changed {
                    Ok(()) => differs = true,
                    Err(_) => return,
                },
            }
            let (now, before) = (Instant::now(), heard.len());
            heard.retain(|_, (_, at)| now.duration_since(*at) < BELIEVED);
            differs |= heard.len() < before;
            let ours = own.borrow_and_update().clone();
            if says && let Ok(text) = serde_json::to_vec(&ours) {
                // If it cannot be said now it is said again soon.
                let _ = tokio::time::timeout(BEAT, client.publish(subject.clone(), text.into())).await;
            }
            // Nearly everything that is heard was heard before.
            if !differs && tell.borrow().contains_key(&ours.node) {
                continue;
            }
            let mut members: BTreeMap<_, _> =
                heard.iter().map(|(node, (member, _))| (*node, member.clone())).collect();
            members.insert(ours.node, ours);
            tell.send_replace(Arc::new(members));
        }
    }
}

/// Takes what a node says of itself; whether it is new and wants to hear of us, and whether it says anything new.
fn hear(heard: &mut BTreeMap<u64, (Member, Instant)>, message: &Message, own: u64) -> (bool, bool) {
    if message.payload.len() > LONGEST {
        return (false, false);
    }
    let Ok(member) = serde_json::from_slice::<Member>(&message.payload) else { return (false, false) };
    let (now, full) = (Instant::now(), heard.len() >= MOST);
    match heard.entry(member.node) {
        Entry::Occupied(mut known) => {
            let (before, at) = known.get_mut();
            *at = now;
            let differs = *before != member;
            *before = member;
            (false, differs)
        }
        Entry::Vacant(_) if member.node == own || full => (false, false),
        Entry::Vacant(place) => {
            place.insert((member, now));
            (true, true)
        }
    }
}

/// Names of those where lines of this node are placed. Not those that share other lines, as while a config is changed on one after the
/// other: they may not have the line, and then nobody would. A line that has an owner stays there meanwhile.
pub(super) fn places(members: &Members, own: u64) -> Vec<&str> {
    let shares = members.get(&own).map_or(0, |own| own.shares);
    let are = members.values().filter(|member| !member.leaving && member.shares == shares);
    let mut names: Vec<_> = are.map(|member| &*member.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::{Member, Members, places};

    #[test]
    fn lines_are_placed_among_those_that_share_the_same_ones() {
        let member = |node: u64, shares, leaving| {
            let name = format!("n{node}");
            (node, Member { name, node, version: String::new(), leaving, owns: 0, shares })
        };
        let all = [member(1, 7, false), member(2, 7, false), member(3, 8, false), member(4, 7, true)];
        let members = Members::new(all.into());
        assert_eq!(places(&members, 1), ["n1", "n2"], "not one that has other servers, nor one that goes");
        assert_eq!(places(&members, 3), ["n3"]);
    }
}

//! Who hears what a server says by itself: the one agent that a line was opened for, or each of several that share it.
//!
//! On a shared line nothing links a server's question to a call, so none is passed on: a wrong guess would show one agent's
//! question to another. What each agent asked to hear of, it hears, and nobody else.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use linetender_core::Generation;
use linetender_wire::frame::{self, Frame, Message};
use linetender_wire::queue;
use tokio::sync::mpsc;

use crate::ledger::{Agent, FromServer};

/// The levels of log messages, from the most to the least verbose.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A resource changed.
pub(crate) const UPDATED: &str = "notifications/resources/updated";

/// Everybody who listens on a line.
#[derive(Debug, Default)]
pub(crate) struct Audience(Mutex<Seats>);

#[derive(Debug, Default)]
struct Seats {
    /// The one agent that the line was opened for.
    alone: Option<Agent>,
    many: HashMap<u64, Seat>,
    last: u64,
}

/// One of several.
#[derive(Debug)]
struct Seat {
    direct: queue::Sender<Bytes>,
    /// Where a modern agent hears of resources: its own streams have to be named.
    said: Option<mpsc::Sender<FromServer>>,
    /// Resources it wants to hear of.
    resources: HashSet<String>,
    /// The least urgent log message it wants to see, as a place in [`LEVELS`].
    level: Option<usize>,
}

impl Audience {
    pub(crate) fn alone(agent: Option<Agent>) -> Self {
        Self(Mutex::new(Seats { alone: agent, ..Seats::default() }))
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more agent; its number.
    pub(crate) fn join(&self, direct: queue::Sender<Bytes>, said: Option<mpsc::Sender<FromServer>>) -> u64 {
        let mut seats = self.seats();
        seats.last += 1;
        let number = seats.last;
        seats.many.insert(number, Seat { direct, said, resources: HashSet::new(), level: None });
        number
    }

    /// It is gone. The resources that nobody wants to hear of any more.
    pub(crate) fn leave(&self, number: u64) -> Vec<String> {
        let mut seats = self.seats();
        let Some(gone) = seats.many.remove(&number) else { return Vec::new() };
        gone.resources.into_iter().filter(|uri| !seats.wanted(uri)).collect()
    }

    /// It wants to hear of a resource; whether it is the first.
    pub(crate) fn subscribe(&self, number: u64, uri: &str) -> bool {
        let mut seats = self.seats();
        let first = !seats.wanted(uri);
        if let Some(seat) = seats.many.get_mut(&number) {
            seat.resources.insert(uri.to_owned());
        }
        first
    }

    /// It does not any more; whether it was the last.
    pub(crate) fn unsubscribe(&self, number: u64, uri: &str) -> bool {
        let mut seats = self.seats();
        if let Some(seat) = seats.many.get_mut(&number) {
            seat.resources.remove(uri);
        }
        !seats.wanted(uri)
    }

    /// It wants to see log messages from this level on. The most verbose that anybody wants.
    pub(crate) fn level(&self, number: u64, level: &str) -> Option<&'static str> {
        let mut seats = self.seats();
        let place = LEVELS.iter().position(|known| *known == level)?;
        seats.many.get_mut(&number)?.level = Some(place);
        let verbose = seats.many.values().filter_map(|seat| seat.level).min()?;
        LEVELS.get(verbose).copied()
    }

    /// Hands a question to the agent that the line was opened for, or says why it cannot be asked.
    pub(crate) fn ask(&self, said: FromServer) -> Result<(), &'static str> {
        match &self.seats().alone {
            Some(agent) => agent.said.try_send(said).map_err(|_| crate::session::TOO_MANY_QUESTIONS),
            None => Err(r#"{"code":-32601,"message":"linetender: no agent behind this line can be asked"}"#),
        }
    }

    /// A notification goes to whoever asked for it; how many missed it because they read too slowly.
    pub(crate) fn tell(&self, generation: Generation, frame: &Frame) -> usize {
        let Message::Notification { method, params } = frame.message() else { return 0 };
        let seats = self.seats();
        let told = |direct: &queue::Sender<Bytes>, said: Option<&mpsc::Sender<FromServer>>| match said {
            Some(said) if method == UPDATED => {
                said.try_send(FromServer { generation, frame: frame.clone() }).is_ok()
            }
            _ => direct.try_send(frame::one_line(frame.text().clone())).is_ok(),
        };
        if let Some(agent) = &seats.alone {
            let said = agent.modern.then_some(&agent.said);
            return usize::from(!told(&agent.direct, said));
        }
        let listeners = seats.many.values().filter(|seat| seat.wants(method, params));
        listeners.filter(|seat| !told(&seat.direct, seat.said.as_ref())).count()
    }
}

impl Seats {
    fn wanted(&self, uri: &str) -> bool {
        self.many.values().any(|seat| seat.resources.contains(uri))
    }
}

impl Seat {
    fn wants(&self, method: &str, params: Option<&str>) -> bool {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct About {
            uri: String,
            level: String,
        }
        let about = || params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        match method {
            UPDATED => {
                let About { uri, .. } = about();
                self.resources.contains(&uri)
            }
            "notifications/message" => {
                let About { level, .. } = about();
                let place = LEVELS.iter().position(|known| *known == level);
                self.level.is_some_and(|least| place.is_none_or(|place| place >= least))
            }
            // Nobody knows whose it is.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Audience;
    use linetender_core::Generation;
    use linetender_wire::{frame, queue};

    fn said(text: &str) -> frame::Frame {
        frame::parse(&text.to_owned().into(), frame::Limits { length: 1000, depth: 8 }).unwrap()
    }

    #[test]
    fn each_hears_what_it_asked_for_and_nobody_elses() {
        let audience = Audience::default();
        let (to_a, mut a) = queue::queue(8, 10_000);
        let (to_b, mut b) = queue::queue(8, 10_000);
        let (a_number, b_number) = (audience.join(to_a, None), audience.join(to_b, None));
        assert!(audience.subscribe(a_number, "x"), "the first");
        assert!(!audience.subscribe(b_number, "x"));
        assert!(audience.subscribe(b_number, "y"));
        assert_eq!(audience.level(a_number, "error"), Some("error"));
        assert_eq!(audience.level(b_number, "info"), Some("info"), "the most verbose");
        assert_eq!(audience.level(a_number, "nonsense"), None);
        for (params, method) in [
            (r#"{"uri":"y"}"#, "notifications/resources/updated"),
            (r#"{"level":"warning","data":1}"#, "notifications/message"),
            (r#"{"anything":1}"#, "notifications/custom"),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
            assert_eq!(audience.tell(Generation::new(1), &said(&text)), 0);
        }
        assert!(a.try_recv().is_none(), "it asked for none of these");
        assert!(b.try_recv().is_some() && b.try_recv().is_some() && b.try_recv().is_none());
        assert_eq!(audience.leave(b_number), ["y"], "x is still wanted");
        assert!(audience.unsubscribe(a_number, "x"), "the last");
    }
}

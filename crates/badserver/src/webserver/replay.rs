//! Streams that can be resumed: what was said on them is kept, and goes on being said after a cut.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::body::{Gone, Sink};
use super::reply;

/// Streams that are kept; the oldest goes first.
const KEPT: usize = 256;

/// All streams that can be resumed.
#[derive(Debug, Default)]
pub(super) struct Replays {
    last: AtomicU64,
    kept: Mutex<VecDeque<Arc<Replay>>>,
}

/// One stream. Its first event is empty, so that there is an id to resume from.
#[derive(Debug)]
pub(super) struct Replay {
    name: String,
    told: watch::Sender<Told>,
    cuts: AtomicU64,
}

#[derive(Debug)]
struct Told {
    events: Vec<String>,
    over: bool,
}

impl Replays {
    /// A new stream, that is cut this often before anything but its first event gets through.
    pub(super) fn open(&self, cuts: u64) -> Arc<Replay> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let replay = Arc::new(Replay {
            name: format!("r{number}"),
            told: watch::Sender::new(Told { events: vec![String::new()], over: false }),
            cuts: AtomicU64::new(cuts),
        });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&replay));
        replay
    }

    /// The stream that this event was on, and the number of the next one.
    pub(super) fn after(&self, event: &str) -> Option<(Arc<Replay>, usize)> {
        let (name, number) = event.split_once('-')?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|replay| replay.name == name)?;
        Some((Arc::clone(found), number.parse::<usize>().ok()? + 1))
    }

    pub(super) fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Replay {
    pub(super) fn tell(&self, message: &str) {
        self.told.send_modify(|told| told.events.push(message.to_owned()));
    }

    pub(super) fn end(&self) {
        self.told.send_modify(|told| told.over = true);
    }

    /// Says everything from an event on, until the stream is over or cut.
    pub(super) async fn follow(&self, from: usize, sink: Sink) -> Result<(), Gone> {
        let cut =
            self.cuts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if cut {
            if from == 0 {
                sink.say(self.event(0, "")).await;
            }
            return Ok(());
        }
        let mut told = self.told.subscribe();
        let mut next = from;
        loop {
            let (fresh, over) = {
                let told = told.borrow_and_update();
                (told.events.get(next..).unwrap_or_default().to_vec(), told.over)
            };
            for message in fresh {
                sink.say(self.event(next, &message)).await;
                next += 1;
            }
            if over || told.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    fn event(&self, number: usize, data: &str) -> String {
        reply::event(Some(&format!("{}-{number}", self.name)), data)
    }
}

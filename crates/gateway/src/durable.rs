//! Calls that outlive their agents, and the node that runs them.
//!
//! A call with a key of its caller's, to a server that keeps outcomes, is noted in the fleet's directory before it runs and when it has
//! ended. It runs in a task of its own: whoever asked may go away, and whoever asks again with the same key gets the same outcome, here
//! or at another node. It never runs twice: if the node that ran it is gone and has noted no outcome, that is unknown, and said.
//!
//! A call that linetender counted as not executed is begun anew when it is asked for again. A call that its server refused is not: that it
//! did not run is the server's word alone, and a key promises that nothing runs twice.

mod begin;
mod key;
mod look;
mod note;
mod room;
mod run;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::session::Settled;
use linetender_wire::frame::Frame;
use tokio::sync::{Notify, watch};

pub(crate) use key::{Identity, key, with_key};
pub(crate) use look::{Seen, State, name_of_task};
pub use shared::Shared;

use crate::budget::{Budget, Class, GiveWay, Owner};
use crate::failed::{Failed, Full};
use room::{Room, Shares};

/// Calls that are under way or waited for at once, and records of calls that ended, of all principals.
const UNDER_WAY: usize = 4096;
const RECORDS: usize = 16_384;

/// Records in this process's memory have so large a part of the budget at most.
const PART: usize = 8;

/// The calls. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Durable(Arc<Inner>);

struct Inner {
    shared: Shared,
    budget: Budget,
    under_way: Mutex<UnderWay>,
    room: Mutex<Room>,
    /// Runs that were never begun, although the directory may say so: it did not answer when they were noted.
    never_ran: Mutex<HashSet<u64>>,
    /// Told when a call has ended.
    ended: Notify,
}

struct UnderWay {
    /// By the name of the record and what was asked.
    calls: HashMap<(String, String), Arc<Run>>,
    shares: Shares,
}

/// A call under way, here or elsewhere.
struct Run {
    told: watch::Sender<Option<Told>>,
    /// Whether it has a record.
    noted: watch::Sender<bool>,
    /// Whether it runs here.
    here: AtomicBool,
    cancel: Notify,
}

/// What became of a call.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) ending: Ending,
    /// Whether a line was asked for it now.
    pub(crate) ran: bool,
}

/// How a call ended.
#[derive(Clone)]
pub(crate) enum Ending {
    /// With this answer, under some id.
    Answered(Frame),
    /// In the gateway.
    Failed(Arc<Failed>),
}

/// A call that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) identity: Identity,
    pub(crate) owner: Owner,
    /// The server's name.
    pub(crate) server: Arc<str>,
    /// How long its outcome is kept.
    pub(crate) kept: Duration,
    /// What it weighs.
    pub(crate) bytes: usize,
    /// When it was asked for: milliseconds since 1970.
    pub(crate) since: u64,
}

/// Somebody who waits for a call. Dropped, it waits no more, and the call goes on.
pub(crate) struct Waiting {
    told: watch::Receiver<Option<Told>>,
    run: Arc<Run>,
    /// Whether the call is under way because of it.
    pub(crate) is_first: bool,
}

/// Nothing gives way.
struct Nobody;

impl GiveWay for Nobody {
    fn give_way(&self) {}
}

impl Durable {
    pub(crate) fn new(shared: Shared, budget: &Budget) -> Self {
        let under_way = UnderWay { calls: HashMap::new(), shares: Shares::new(UNDER_WAY) };
        Self(Arc::new(Inner {
            shared,
            under_way: Mutex::new(under_way),
            room: Mutex::new(Room::new(RECORDS, budget.whole() / PART)),
            budget: budget.clone(),
            never_ran: Mutex::default(),
            ended: Notify::new(),
        }))
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a call. `run` is what runs it, if nobody has yet; it is polled only then.
    #[expect(
        clippy::disallowed_methods,
        reason = "a call outlives whoever asked; it ends by its own deadline"
    )]
    pub(crate) fn ask(
        &self,
        mut call: Call,
        run: impl Future<Output = Settled> + Send + 'static,
    ) -> Result<Waiting, Failed> {
        self.sweep();
        if let Some(keeps) = self.0.shared.directory.keeps() {
            call.kept = call.kept.min(keeps);
        }
        let at = (call.identity.name.clone(), call.identity.arguments.clone());
        let mut under_way = self.under_way();
        if let Some(known) = under_way.calls.get(&at) {
            return Ok(Waiting { told: known.told.subscribe(), run: Arc::clone(known), is_first: false });
        }
        let full = || Failed::full(Full::Durable).of(Some(&call.server));
        let mut held = self.0.budget.hold(Class::Call, call.owner, Arc::downgrade(&Arc::new(Nobody)) as _);
        if held.grow(call.bytes).is_err() || !under_way.shares.take(call.owner.principal, 1) {
            return Err(full());
        }
        let (told, run_told) = (watch::Sender::new(None), run);
        let run = Arc::new(Run {
            told,
            noted: watch::Sender::new(false),
            here: AtomicBool::new(false),
            cancel: Notify::new(),
        });
        under_way.calls.insert(at, Arc::clone(&run));
        drop(under_way);
        let waiting = Waiting { told: run.told.subscribe(), run: Arc::clone(&run), is_first: true };
        let durable = self.clone();
        tokio::spawn(async move {
            durable.carry(&call, &run, run_told).await;
            drop(held);
        });
        Ok(waiting)
    }

    /// A call is under way no more.
    fn left(&self, call: &Call) {
        let Identity { name, arguments, .. } = &call.identity;
        let mut under_way = self.under_way();
        if under_way.calls.remove(&(name.clone(), arguments.clone())).is_some() {
            under_way.shares.give_back(call.owner.principal, 1);
        }
        drop(under_way);
        self.0.ended.notify_waiters();
    }

    /// Forgets records whose time is over.
    pub(crate) fn sweep(&self) {
        loop {
            let over = self.room().next_over();
            match over {
                Some((name, Some(noted))) => self.0.shared.directory.forget(&name, noted),
                Some((_, None)) => {}
                None => return,
            }
        }
    }

    /// Waits until no call runs here.
    pub(crate) async fn idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.0.ended.notified());
            // What ends from here on is heard of.
            ended.as_mut().enable();
            if !self.under_way().calls.values().any(|run| run.here.load(Ordering::Acquire)) {
                return;
            }
            ended.await;
        }
    }
}

impl Waiting {
    /// What became of it.
    pub(crate) async fn ended(mut self) -> Told {
        let told = self.told.wait_for(Option::is_some).await.ok().and_then(|told| told.clone());
        told.unwrap_or_else(|| Told { ending: Ending::Failed(Arc::new(Failed::broken())), ran: false })
    }

    /// What became of it, if it is over soon after it was begun.
    pub(crate) async fn ended_within(self, limit: Duration) -> Option<Told> {
        let mut noted = self.run.noted.subscribe();
        let late = async {
            if noted.wait_for(|noted| *noted).await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(limit).await;
        };
        tokio::select! {
            told = self.ended() => Some(told),
            () = late => None,
        }
    }

    /// How it can be taken back.
    pub(crate) fn cancel(&self) -> Cancel {
        Cancel(Arc::clone(&self.run))
    }
}

/// Takes a call back, for everybody who waits for it. It works where the call runs.
pub(crate) struct Cancel(Arc<Run>);

impl Cancel {
    pub(crate) fn now(&self) {
        self.0.cancel.notify_one();
    }
}

impl std::fmt::Debug for Durable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durable").field("node", &self.0.shared.node).finish_non_exhaustive()
    }
}

//! What agents showed for themselves, for as long as something of theirs is open.
//!
//! A request is judged when it comes. A stream and a session last longer: the token may expire or be removed meanwhile, or its groups
//! change. One task looks for all of them, so that each ends within a second (G12), whatever else happens here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use linetender_wire::wall::wall_clock;
use tokio::sync::watch;

use super::Front;
use crate::bearers::Bearers;
use crate::principal::Principal;

/// How often it is looked: what follows from it has to be over within a second.
const LOOK: Duration = Duration::from_millis(250);

/// How long the stream of a call may take to tell why it ends.
const LAST_WORD: Duration = Duration::from_millis(250);

/// Whether what was shown counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standing {
    Counts,
    /// It has to be shown again: a token that can be renewed has expired. What only listens ends; a call under way does not.
    Expired,
    /// It was removed, has expired for good, or stands for other groups now: everything ends.
    TakenBack,
}

/// What was shown for everything that is open.
pub(super) struct Credentials {
    bearers: Option<Arc<dyn Bearers>>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    by_number: HashMap<u64, Entry>,
    /// The version of what the bearers know that all entries were judged by.
    version: Option<u64>,
}

struct Entry {
    principal: Principal,
    standing: watch::Sender<Standing>,
}

/// What was shown for one stream or session, for as long as this is kept.
pub(super) struct Credential {
    of: Arc<Credentials>,
    principal: Principal,
    /// Its number, and where it stands; nothing where no token is shown.
    entry: Option<(u64, watch::Receiver<Standing>)>,
}

impl Credentials {
    pub(super) fn new(bearers: Option<Arc<dyn Bearers>>) -> Arc<Self> {
        Arc::new(Self { bearers, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this principal showed.
    pub(super) fn shown_by(self: &Arc<Self>, principal: &Principal) -> Credential {
        let (of, principal) = (Arc::clone(self), principal.clone());
        let Some(bearers) = self.bearers.as_deref().filter(|_| principal.shown().is_some()) else {
            return Credential { of, principal, entry: None };
        };
        let mut open = self.open();
        // What fell since it was verified is seen now: the next look judges only what is here by then.
        let (standing, stands) = watch::channel(judged(bearers, &principal, wall_clock()));
        open.last += 1;
        let number = open.last;
        open.by_number.insert(number, Entry { principal: principal.clone(), standing });
        drop(open);
        Credential { of, principal, entry: Some((number, stands)) }
    }

    /// Judges anew what may have changed. Returns whether something was taken back.
    async fn look(&self) -> bool {
        let Some(bearers) = self.bearers.as_deref() else { return false };
        let version = bearers.look().await;
        let now = wall_clock();
        let mut open = self.open();
        let is_new = open.version.replace(version) != Some(version);
        let mut fell = false;
        for entry in open.by_number.values() {
            if is_new || entry.principal.has_expired(now) {
                let standing = judged(bearers, &entry.principal, now);
                let changed =
                    entry.standing.send_if_modified(|was| std::mem::replace(was, standing) != standing);
                fell |= changed && standing == Standing::TakenBack;
            }
        }
        fell
    }
}

fn judged(bearers: &dyn Bearers, principal: &Principal, now: SystemTime) -> Standing {
    match principal.shown() {
        Some(shown) if !bearers.stands(&shown) => Standing::TakenBack,
        _ if principal.has_expired(now) => Standing::Expired,
        _ => Standing::Counts,
    }
}

impl Credential {
    /// True if this is what the principal shows now, too.
    pub(super) fn is_shown_by(&self, principal: &Principal) -> bool {
        self.principal.shows_what(principal)
    }

    pub(super) fn was_taken_back(&self) -> bool {
        self.entry.as_ref().is_some_and(|(_, stands)| *stands.borrow() == Standing::TakenBack)
    }

    /// Waits until it has to be shown again.
    pub(super) async fn must_be_shown_again(&self) {
        self.wait(|standing| standing != Standing::Counts).await;
    }

    /// Waits until it is taken back.
    pub(super) async fn is_taken_back(&self) {
        self.wait(|standing| standing == Standing::TakenBack).await;
    }

    /// Waits until it was taken back, and its stream had the time to tell so.
    pub(super) async fn has_nothing_to_say(&self) {
        self.is_taken_back().await;
        tokio::time::sleep(LAST_WORD).await;
    }

    async fn wait(&self, is: impl Fn(Standing) -> bool) {
        let Some((_, stands)) = &self.entry else { return std::future::pending().await };
        // Its other half is kept for as long as this.
        let _ = stands.clone().wait_for(|standing| is(*standing)).await;
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        if let Some((number, _)) = &self.entry {
            self.of.open().by_number.remove(number);
        }
    }
}

/// Ends what belongs to those who may not have it any more, for as long as it is served.
pub(super) async fn watch(front: Arc<Front>) {
    let mut listing = front.gateway.listing();
    loop {
        tokio::time::sleep(LOOK).await;
        let fell = front.credentials.look().await;
        let changed = listing.has_changed().unwrap_or(false);
        listing.mark_unchanged();
        if fell || changed {
            front.sessions.shut_out(&front).await;
        }
    }
}

#[cfg(test)]
mod tests;

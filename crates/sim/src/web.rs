//! A simulated host on the network: it falls and stands up again, stops and goes on, and forgets its sessions.

mod http1;
mod manners;
mod refusals;
mod serve;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

#[cfg(test)]
pub(crate) use manners::Own;
pub(crate) use manners::{Manners, Unknown};

use crate::net::{End, Net};
use crate::scene::Scene;
use crate::tasks::spawn;

/// How many answers are kept for whoever takes up a stream again.
const KEPT: usize = 1000;

/// The host.
pub(crate) struct Web {
    scene: Arc<Scene>,
    net: Arc<Net>,
    manners: Mutex<Manners>,
    house: Mutex<House>,
    connections: Mutex<Vec<AbortHandle>>,
    up: AtomicBool,
    stopped: AtomicBool,
    go: Notify,
}

/// What it keeps in memory, and loses when it falls.
#[derive(Default)]
struct House {
    /// The ids that were used in each session.
    sessions: BTreeMap<String, BTreeSet<u64>>,
    last: u64,
    /// Answers by the event after which they come.
    answers: BTreeMap<String, String>,
    /// When somebody opened a stream of the host's own. Outlives the host.
    opened: Vec<Duration>,
    /// Methods of all requests that came. Outlives the host too.
    requests: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Web {
    pub(crate) fn new(scene: &Arc<Scene>, net: &Arc<Net>, manners: Manners) -> Arc<Self> {
        Arc::new(Self {
            scene: Arc::clone(scene),
            net: Arc::clone(net),
            manners: Mutex::new(manners),
            house: Mutex::default(),
            connections: Mutex::default(),
            up: AtomicBool::new(true),
            stopped: AtomicBool::new(false),
            go: Notify::new(),
        })
    }

    pub(crate) fn manners(&self) -> Manners {
        lock(&self.manners).clone()
    }

    pub(crate) fn listens(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub(crate) fn accept(self: &Arc<Self>, end: End) {
        let task = spawn(serve::serve(Arc::clone(self), end, self.scene.rng()));
        let mut connections = lock(&self.connections);
        connections.retain(|task| !task.is_finished());
        connections.push(task.abort_handle());
    }

    /// Everything that was in its memory is gone, and so are its connections.
    pub(crate) fn fall(&self) {
        self.scene.say(|| "the host falls".to_owned());
        self.up.store(false, Ordering::Relaxed);
        lock(&self.connections).drain(..).for_each(|task| task.abort());
        self.net.reset();
        let mut house = lock(&self.house);
        let (opened, requests) = (std::mem::take(&mut house.opened), std::mem::take(&mut house.requests));
        *house = House { opened, requests, last: house.last, ..House::default() };
    }

    pub(crate) fn stand_up(&self) {
        self.up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn forget_sessions(&self) {
        lock(&self.house).sessions.clear();
    }

    pub(crate) fn stop(&self, stop: bool) {
        self.stopped.store(stop, Ordering::Relaxed);
        self.go.notify_waiters();
    }

    /// Waits while it is stopped.
    async fn running(&self) {
        while self.stopped.load(Ordering::Relaxed) {
            self.go.notified().await;
        }
    }

    pub(crate) fn heal(&self) {
        lock(&self.manners).heal();
        self.stand_up();
        self.stop(false);
    }

    /// When streams of its own were opened.
    pub(crate) fn opened(&self) -> Vec<Duration> {
        lock(&self.house).opened.clone()
    }

    /// The JSON-RPC methods of all requests that came, or their HTTP methods.
    #[cfg(test)]
    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.house).requests.clone()
    }

    fn new_session(&self) -> String {
        let mut house = lock(&self.house);
        house.last += 1;
        let session = format!("session-{}", house.last);
        house.sessions.insert(session.clone(), BTreeSet::new());
        session
    }

    /// A session is over, before its client says so.
    fn forget(&self, session: &str) {
        lock(&self.house).sessions.remove(session);
    }

    /// Whether it knows this session; and no id may be used twice in it.
    fn knows(&self, session: &str, id: Option<u64>) -> bool {
        let mut house = lock(&self.house);
        let Some(ids) = house.sessions.get_mut(session) else { return false };
        if let Some(id) = id
            && !ids.insert(id)
        {
            self.scene.book().wrongs.push(format!("the id {id} was used twice in {session}"));
        }
        true
    }

    fn keep(&self, after: &str, answer: &str) {
        let mut house = lock(&self.house);
        house.answers.insert(after.to_owned(), answer.to_owned());
        if house.answers.len() > KEPT {
            house.answers.pop_first();
        }
    }

    fn kept(&self, after: &str) -> Option<String> {
        lock(&self.house).answers.get(after).cloned()
    }

    fn open(&self) {
        lock(&self.house).opened.push(self.scene.now());
    }
}

//! What all connections of a server share.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::Value;
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinSet;

use super::Config;
use super::manners::{Manners, Sockets};
use super::replay::Replays;
use super::sse_door::OpenStreams;
use super::tally::Tally;
use super::tap::{Ending, Flow, Tap};
use super::tls::Tls;
use crate::book::{ContextRun, Pen};

/// Changes that a slow listener may fall behind.
const CHANGES_KEPT: usize = 64;

/// A server's state.
#[derive(Debug)]
pub(super) struct House {
    pub(super) origin: String,
    pub(super) tls: Option<Tls>,
    pub(super) tally: Tally,
    pub(super) replays: Replays,
    pub(super) open_streams: OpenStreams,
    pub(super) changes: broadcast::Sender<Change>,
    /// Resources that somebody of the legacy era wants to hear of.
    resources: Mutex<HashSet<String>>,
    /// Questions to agents of the legacy era, by their id.
    questions: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    pen: Mutex<Pen>,
    manners: Mutex<Manners>,
    taps: Mutex<Vec<Weak<Tap>>>,
    sessions: Mutex<Sessions>,
    tools_version: Mutex<u32>,
    tasks: Mutex<JoinSet<()>>,
}

/// Something that whoever listens is told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Change {
    Tools,
    Resource(String),
}

/// Sessions by id; ids are never used twice.
#[derive(Debug, Default)]
struct Sessions {
    last: u64,
    known: HashSet<String>,
    /// What `use` selected in each.
    selected: HashMap<String, String>,
}

impl House {
    pub(super) fn build(config: Config, address: SocketAddr) -> io::Result<Arc<Self>> {
        let tls = if config.tls { Some(Tls::make()?) } else { None };
        let scheme = if config.tls { "https" } else { "http" };
        Ok(Arc::new(Self {
            origin: format!("{scheme}://{address}"),
            tls,
            tally: Tally::default(),
            replays: Replays::default(),
            open_streams: OpenStreams::default(),
            changes: broadcast::Sender::new(CHANGES_KEPT),
            resources: Mutex::default(),
            questions: Mutex::default(),
            pen: Mutex::new(Pen::open(config.book.as_deref())?),
            manners: Mutex::new(config.manners),
            taps: Mutex::default(),
            sessions: Mutex::default(),
            tools_version: Mutex::new(0),
            tasks: Mutex::default(),
        }))
    }

    pub(super) fn manners(&self) -> Manners {
        lock(&self.manners).clone()
    }

    /// The fault that a request for this method meets.
    pub(super) fn meet(&self, method: &str) -> Option<(String, Value)> {
        lock(&self.manners).meet(method)
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Manners)) {
        let (before, after) = {
            let mut manners = lock(&self.manners);
            let before = manners.sockets;
            change(&mut manners);
            (before, manners.sockets)
        };
        if before != after {
            self.each_tap(|tap| tap.turn(flow_for(after)));
        }
    }

    /// A tap for a new connection, turned as the manners say.
    pub(super) fn new_tap(&self, client: u16) -> Arc<Tap> {
        let manners = lock(&self.manners);
        let tap = Arc::new(Tap::new(flow_for(manners.sockets), client));
        let mut taps = lock(&self.taps);
        taps.retain(|tap| tap.strong_count() > 0);
        taps.push(Arc::downgrade(&tap));
        tap
    }

    pub(super) fn end_connections(&self, how: Ending) {
        self.each_tap(|tap| tap.turn(Flow::Ended(how)));
    }

    /// Whether there is a connection to this port that is not about to end.
    pub(super) fn serves(&self, client: u16) -> bool {
        let ends = |tap: &Tap| matches!(tap.flow(), Flow::LastWrite(_) | Flow::Ended(_));
        lock(&self.taps).iter().filter_map(Weak::upgrade).any(|tap| tap.client == client && !ends(&tap))
    }

    fn each_tap(&self, what: impl Fn(&Tap)) {
        let taps: Vec<_> = lock(&self.taps).iter().filter_map(Weak::upgrade).collect();
        for tap in &taps {
            what(tap);
        }
    }

    /// Writes down that it refuses this call, for a reason that `retry_on` names.
    pub(super) fn refuses(&self, reason: &str, nonce: &str) {
        self.write(&format!("refused {reason}"), nonce);
    }

    pub(super) fn write(&self, what: &str, nonce: &str) {
        lock(&self.pen).write(what, nonce);
    }

    /// Writes down that a call is executed in a session.
    pub(super) fn runs_in(&self, session: &str, nonce: &str) {
        if !lock(&self.manners).contexts {
            return self.write("run", nonce);
        }
        let selected = lock(&self.sessions).selected.get(session).cloned();
        let selected = selected.unwrap_or_else(|| ContextRun::UNSELECTED.to_owned());
        lock(&self.pen).run_in(session, &selected, nonce);
    }

    /// Selects something in a session, for as long as the session lives.
    pub(super) fn select(&self, session: &str, what: &str) {
        lock(&self.sessions).selected.insert(session.to_owned(), what.to_owned());
    }

    pub(super) fn open_session(&self) -> String {
        let mut sessions = lock(&self.sessions);
        sessions.last += 1;
        // The process is part of the name, so that a real restart knows none of the old ones.
        let id = format!("s{}-{}", std::process::id(), sessions.last);
        sessions.known.insert(id.clone());
        id
    }

    pub(super) fn knows(&self, session: &str) -> bool {
        lock(&self.sessions).known.contains(session)
    }

    pub(super) fn close_session(&self, session: &str) -> bool {
        let mut sessions = lock(&self.sessions);
        sessions.selected.remove(session);
        let known = sessions.known.remove(session);
        drop(sessions);
        if known {
            self.write("forgot", "-");
        }
        known
    }

    pub(super) fn forget_sessions(&self) {
        let mut sessions = lock(&self.sessions);
        sessions.known.clear();
        sessions.selected.clear();
        drop(sessions);
        self.write("forgot", "-");
        self.replays.forget();
    }

    pub(super) fn change_tools(&self) {
        *lock(&self.tools_version) += 1;
        let _ = self.changes.send(Change::Tools);
    }

    /// A legacy request that may be about resources.
    pub(super) fn subscribes(&self, method: &str, params: &Value) {
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        match method {
            "resources/subscribe" => drop(lock(&self.resources).insert(uri)),
            "resources/unsubscribe" => drop(lock(&self.resources).remove(&uri)),
            _ => {}
        }
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        lock(&self.resources).contains(uri)
    }

    /// A question of ours, which is answered by a request of its own.
    pub(super) fn ask(&self) -> (String, oneshot::Receiver<Value>) {
        let (tell, told) = oneshot::channel();
        let mut questions = lock(&self.questions);
        let id = format!("question-{}", questions.len());
        questions.insert(id.clone(), tell);
        (id, told)
    }

    /// An agent answered one of our questions.
    pub(super) fn told(&self, message: &Value) {
        let asked = message["id"].as_str().and_then(|id| lock(&self.questions).remove(id));
        if let Some(asked) = asked {
            let _ = asked.send(message.clone());
        }
    }

    pub(super) fn tools_version(&self) -> u32 {
        *lock(&self.tools_version)
    }

    /// Runs what has to outlive the request that started it, and ends with the server.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }
}

fn flow_for(sockets: Sockets) -> Flow {
    match sockets {
        Sockets::Open => Flow::Open,
        Sockets::Silent => Flow::Silent,
        Sockets::Reset => Flow::Ended(Ending::Reset),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

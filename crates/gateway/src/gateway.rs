//! The servers behind, the listing before them, and the one task that keeps it true.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use linetender::session::{self, Agent, Guest};
use linetender::{AgentContext, Line, Rig, RigChange};
use linetender_wire::aside;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::budget::Budget;
use crate::config::{Config, Scope, Settings};
use crate::durable::{Durable, Shared};
use crate::ends::Ends;
use crate::kept::KeptResults;
use crate::kin::Kin;
use crate::listing::{Berth, Listing, Route, Sight};
use crate::mismatches;
use crate::own_lines::OwnLines;
use crate::principal::{Principal, Stay, Visitor};
use crate::tasks::{OwnTasks, Tasks};

/// How often unused lines of principals are looked for, at the least.
const SWEEP: Duration = Duration::from_secs(10);

/// The gateway: many servers, many agents. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rig: Rig,
    settings: Settings,
    /// What everything that agents and servers make us keep draws on.
    budget: Budget,
    listing: watch::Sender<Arc<Listing>>,
    last: AtomicU64,
    /// Lines of sessions and of principals.
    own_lines: OwnLines,
    /// Tasks that agents began where all servers are.
    tasks: Arc<Tasks>,
    /// Where requests end that come to none of its lines.
    ends: Ends,
    /// Whole results, of which agents got a part.
    kept: KeptResults,
    /// Calls that outlive their agents.
    durable: Durable,
    /// Watches the lines that there are now.
    keeper: Mutex<JoinSet<()>>,
    /// The other gateways of the fleet.
    kin: OnceLock<Arc<dyn Kin>>,
}

impl Gateway {
    /// Starts the gateway and connects to its servers.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: Config) -> Self {
        Self::start_on(Rig::new(), config)
    }

    /// Starts the gateway with its lines on this rig, for example one that a holder follows.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start_on(rig: Rig, config: Config) -> Self {
        Self::start_among(rig, config, Shared::alone())
    }

    /// Starts the gateway as one node of several, which share what is known of calls.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start_among(rig: Rig, config: Config, shared: Shared) -> Self {
        let listing = watch::Sender::new(Arc::new(Listing::of(&[], &config.gateway, None)));
        let budget = Budget::new(config.gateway.budget());
        let ends = Ends::before(&rig);
        let rig = rig.counted_by(Arc::new(budget.clone())).for_outsiders();
        let gateway = Self(Arc::new(Inner {
            rig: rig.among_strangers(config.gateway.has_strangers()),
            kept: KeptResults::new(&budget),
            durable: Durable::new(shared, &budget),
            budget,
            settings: config.gateway.clone(),
            listing,
            last: AtomicU64::new(0),
            own_lines: OwnLines::default(),
            tasks: Arc::default(),
            ends,
            keeper: Mutex::default(),
            kin: OnceLock::new(),
        }));
        gateway.apply(config);
        gateway
    }

    /// Goes by another config from now on, as far as servers are concerned: those that are the same keep their
    /// generation. The gateway's own settings are read at its start alone, so the config is to be read by
    /// [`load_again`](crate::config::load_again), which judges names by the settings in force.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn apply(&self, config: Config) -> RigChange {
        let inner = &self.0;
        // Whoever applies at the same time waits: the listing and the rig have to agree.
        let mut keeper = inner.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        let change = inner.rig.set(config.servers.iter().map(|entry| entry.server.clone()));
        let before = inner.listing.borrow().clone();
        let berths: Vec<_> = config
            .servers
            .into_iter()
            .filter_map(|entry| {
                let name = entry.server.name();
                let number = match before.berth(name) {
                    Some(kept) if kept.entry == entry => return Some(Arc::clone(kept)),
                    // Its number is what agents' own lines hang on, and those must not end for a filter.
                    Some(kept) if kept.serves(&entry) => kept.number,
                    _ => inner.last.fetch_add(1, Ordering::Relaxed),
                };
                let line = inner.rig.line(name)?;
                Some(Arc::new(Berth { number, entry, line }))
            })
            .collect();
        inner.listing.send_replace(Arc::new(Listing::of(&berths, &inner.settings, Some(&before))));
        *keeper = self.keep(berths);
        change
    }

    /// Makes the listing anew when what a server offers has changed, or whether it is there.
    fn keep(&self, berths: Vec<Arc<Berth>>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let changed = Arc::new(Notify::new());
        for berth in &berths {
            tasks.spawn(watch_line(berth.line.clone(), self.0.settings.keep_listed, Arc::clone(&changed)));
            if berth.entry.may_mismatch() {
                tasks.spawn(mismatches::told(berth.entry.clone(), berth.line.catalogues()));
            }
        }
        let inner = Arc::downgrade(&self.0);
        tasks.spawn(sweep_lines(Weak::clone(&inner)));
        let berths: Arc<[_]> = berths.into();
        tasks.spawn(async move {
            loop {
                changed.notified().await;
                let Some(inner) = inner.upgrade() else { return };
                // Servers decide how long this takes, so it is done where it holds up no agent.
                let (berths, of) = (Arc::clone(&berths), Arc::clone(&inner));
                let made = aside(move || {
                    let before = of.listing.borrow().clone();
                    Listing::of(&berths, &of.settings, Some(&before))
                });
                // One that cannot be made is made at the next change; the others go on being seen.
                let Some(made) = made.await else { continue };
                inner.listing.send_if_modified(|listing| {
                    // Whoever applied another config meanwhile has made a listing of other servers.
                    let differs = made.is_of_same(listing) && !made.offers_what(listing);
                    if differs {
                        *listing = Arc::new(made);
                    }
                    differs
                });
            }
        });
        tasks
    }

    /// Shares agents' sessions with the other gateways of a fleet: before any agent is served.
    pub fn among(&self, kin: Arc<dyn Kin>) {
        let _ = self.0.kin.set(kin);
    }

    pub(crate) fn kin(&self) -> Option<&Arc<dyn Kin>> {
        self.0.kin.get()
    }

    /// Settings that the gateway was started with.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Calls that outlive their agents.
    pub(crate) fn durable(&self) -> &Durable {
        &self.0.durable
    }

    pub(crate) fn kept_results(&self) -> &KeptResults {
        &self.0.kept
    }

    /// Where requests end that come to none of its lines.
    pub(crate) fn ends(&self) -> &Ends {
        &self.0.ends
    }

    /// The tasks of an agent, where all servers are.
    pub(crate) fn tasks_of(&self, visitor: &Visitor) -> OwnTasks {
        OwnTasks::of(&self.0.tasks, visitor)
    }

    /// Its lines (server connections).
    pub fn lines(&self) -> Vec<Line> {
        self.0.rig.held()
    }

    /// The line that all agents of a server share, by the server's name.
    pub fn shared_line(&self, name: &str) -> Option<Line> {
        self.0.rig.line(name)
    }

    pub(crate) fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.0.listing.subscribe()
    }

    /// True if the server with this number is there, for any principal.
    pub(crate) fn has_server(&self, number: u64) -> bool {
        self.0.listing.borrow().has(number)
    }

    /// What somebody sees at this moment.
    pub(crate) fn seen_by(&self, principal: &Principal) -> Arc<Sight> {
        let listing = Arc::clone(&self.0.listing.borrow());
        listing.seen_by(principal)
    }

    /// An agent's way to one server, with what it relies on in that server's memory; `None` if it would be a line of its own, and
    /// there are as many as there may be.
    pub(crate) fn pipe(&self, route: &Route, visitor: &Visitor, context: &AgentContext) -> Option<Agent> {
        let guest = || Guest { context: context.clone(), ..visitor.guest() };
        if route.is_own() && visitor.stay == Stay::Session {
            let open = || session::open_as(route.berth.entry.server.clone(), &self.0.rig, guest());
            return self.0.own_lines.for_session(self.own_lines_left(), &visitor.principal, open);
        }
        Some(session::join_as(&self.line(route, &visitor.principal)?, guest()))
    }

    /// The line on which a principal's requests to a server travel, if none is opened for a session; `None` if it would be one of
    /// its own, and there are as many as there may be.
    pub(crate) fn line(&self, route: &Route, principal: &Principal) -> Option<Line> {
        let berth = &route.berth;
        // Whoever has no session shares a server of sessions, but not with strangers.
        let is_own = match berth.entry.scope {
            Scope::Shared => false,
            Scope::Identity => true,
            Scope::Session => self.0.settings.has_strangers(),
        };
        if !is_own {
            return Some(berth.line.clone());
        }
        let open = |before| self.0.rig.open_after(berth.entry.server.clone(), before);
        let server = (berth.number, berth.name());
        self.0.own_lines.for_principal(self.own_lines_left(), server, principal, open)
    }

    fn own_lines_left(&self) -> usize {
        self.0.settings.lines.saturating_sub(self.0.listing.borrow().len())
    }

    /// Closes every line; those of agents that had their own are closed by their ends. Whether nothing was left when the time
    /// was up.
    pub async fn shutdown(&self, limit: Duration) -> bool {
        let mut of_principals: JoinSet<()> =
            self.0.own_lines.take_all().into_iter().map(|line| async move { line.close().await }).collect();
        let principals = async {
            let closed = async { while of_principals.join_next().await.is_some() {} };
            let all = tokio::time::timeout(limit, closed).await.is_ok();
            of_principals.detach_all();
            all
        };
        // Calls end with their lines, and how they ended is still noted.
        let (shared, own, principals, noted) =
            tokio::join!(self.0.rig.shutdown(limit), self.0.rig.sessions_closed(limit), principals, async {
                tokio::time::timeout(limit, self.0.durable.idle()).await.is_ok()
            });
        shared && own && principals && noted
    }
}

/// Lets go of principals' lines that are not used any more.
async fn sweep_lines(inner: Weak<Inner>) {
    loop {
        let Some(idle) = inner.upgrade().map(|inner| Duration::from_millis(inner.settings.session_idle))
        else {
            return;
        };
        tokio::time::sleep((idle / 4).clamp(Duration::from_millis(10), SWEEP)).await;
        let Some(inner) = inner.upgrade() else { return };
        inner.kept.sweep();
        inner.durable.sweep();
        let listing = Arc::clone(&inner.listing.borrow());
        inner.own_lines.sweep(idle, |server| listing.has(server));
    }
}

async fn watch_line(line: Line, keep_listed: bool, changed: Arc<Notify>) {
    let (mut catalogues, mut states) = (line.catalogues(), line.statuses());
    // The line ends when the rig lets go of it, not when we do.
    drop(line);
    // What was read before anybody watched counts too.
    changed.notify_one();
    let mut listed = Arc::clone(&catalogues.borrow_and_update());
    loop {
        let told = tokio::select! {
            told = catalogues.changed() => told.map(|()| {
                let now = Arc::clone(&catalogues.borrow_and_update());
                // A server that came back has mostly what it had. After a storm all of them do, and a listing is of all of them.
                !std::mem::replace(&mut listed, Arc::clone(&now)).shares_lists_with(&now)
            }),
            told = states.changed(), if !keep_listed => told.map(|()| true),
        };
        match told {
            Ok(true) => changed.notify_one(),
            Ok(false) => {}
            Err(_) => return,
        }
    }
}

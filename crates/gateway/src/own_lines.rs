//! How many lines there may be, and who has one of its own: a session, or a principal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::session::Agent;
use linetender::{Line, State, Status, WeakLine};
use linetender_wire::frame::Passed;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::principal::Principal;

/// What one principal may have of so many: all but an eighth, so that whoever comes next gets something too.
pub(crate) const fn share(most: usize) -> usize {
    most - most / 8
}

/// The lines that somebody has to itself. A line that is being closed counts no more: its time is bounded, and it takes
/// nothing from anybody.
#[derive(Debug, Default)]
pub(crate) struct OwnLines(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    /// Whose each agent with a line of its own is.
    sessions: Vec<(u64, mpsc::WeakSender<Passed>)>,
    /// By the number of the server, and the principal.
    principals: HashMap<(u64, u64), OfPrincipal>,
    /// Those that were let go of and may not be closed yet.
    leaving: Vec<Leaving>,
}

/// A line that is being closed: its principal, the name of its server, and how far its end has come.
#[derive(Debug)]
struct Leaving {
    principal: u64,
    name: Arc<str>,
    state: watch::Receiver<Status>,
}

/// The line of one principal to one server.
#[derive(Debug)]
struct OfPrincipal {
    /// The server's name, which a server with another number may have too.
    name: Arc<str>,
    state: watch::Receiver<Status>,
    line: WeakLine,
    /// Kept while it is used now and then. Without it, whoever is on the line still keeps it.
    kept: Option<Line>,
    used: Instant,
}

impl OwnLines {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a line for one agent, unless there are as many as there may be.
    pub(crate) fn for_session(
        &self,
        most: usize,
        principal: &Principal,
        open: impl FnOnce() -> Agent,
    ) -> Option<Agent> {
        // Held while it is opened: whoever comes at the same time is counted too.
        let mut lines = self.lines();
        (lines.is_room(most, principal.number()) || lines.makes_room(most, principal.number())).then(|| {
            let agent = open();
            lines.sessions.push((principal.number(), agent.to.downgrade()));
            agent
        })
    }

    /// The line of a principal to a server, opened if there is none, unless there are as many as there may be. What it has to wait
    /// for are the lines that the principal had to a server of this name, and that are not closed yet.
    pub(crate) fn for_principal(
        &self,
        most: usize,
        (server, name): (u64, &str),
        principal: &Principal,
        open: impl FnOnce(Vec<watch::Receiver<Status>>) -> Line,
    ) -> Option<Line> {
        let mut lines = self.lines();
        let key = (server, principal.number());
        if let Some(own) = lines.principals.get_mut(&key)
            && let Some(line) = own.line.upgrade()
        {
            (own.kept, own.used) = (Some(line.clone()), Instant::now());
            return Some(line);
        }
        (lines.is_room(most, principal.number()) || lines.makes_room(most, principal.number())).then(|| {
            let (before, gone) = lines.let_go_of(name, principal.number());
            let line = open(before);
            let own = OfPrincipal {
                name: name.into(),
                state: line.statuses(),
                line: line.downgrade(),
                kept: Some(line.clone()),
                used: Instant::now(),
            };
            lines.principals.insert(key, own);
            drop(lines);
            drop(gone);
            line
        })
    }

    /// Lets go of lines that their principals have not used for so long, and of those to servers that are no more.
    pub(crate) fn sweep(&self, idle: Duration, is_server: impl Fn(u64) -> bool) {
        let mut gone = Vec::new();
        let mut lines = self.lines();
        let Lines { principals, leaving, .. } = &mut *lines;
        leaving.retain(|line| is_open(&line.state));
        principals.retain(|(server, principal), own| {
            if own.used.elapsed() >= idle || !is_server(*server) {
                gone.extend(own.kept.take());
            }
            let stays = own.kept.is_some() || own.line.upgrade().is_some();
            if !stays {
                leaving.push(own.leaving(*principal));
            }
            stays
        });
        drop(lines);
        // Closing begins when the last handle goes, which must hold up nobody who wants a line.
        drop(gone);
    }

    /// Takes all lines of principals out, to be closed.
    pub(crate) fn take_all(&self) -> Vec<Line> {
        let own = std::mem::take(&mut self.lines().principals);
        own.into_values().filter_map(|own| own.line.upgrade()).collect()
    }
}

impl OfPrincipal {
    fn leaving(&self, principal: u64) -> Leaving {
        Leaving { principal, name: Arc::clone(&self.name), state: self.state.clone() }
    }
}

/// Whether a line that stands here is not closed.
fn is_open(state: &watch::Receiver<Status>) -> bool {
    state.has_changed().is_ok() && state.borrow().state != State::Closed
}

impl Lines {
    /// Lets go of the principals' line that nobody is on and that was used longest ago; whether there is room then. Whoever has its share
    /// gives way to itself alone.
    fn makes_room(&mut self, most: usize, principal: u64) -> bool {
        let own = self.owned().filter(|of| *of == principal).count();
        let only_own = own >= share(most).max(1);
        let unused = |own: &OfPrincipal| own.kept.as_ref().is_some_and(Line::is_held_once);
        let idle =
            self.principals.iter().filter(|((_, of), own)| unused(own) && (!only_own || *of == principal));
        let Some(key) = idle.min_by_key(|(_, own)| own.used).map(|(key, _)| *key) else { return false };
        if let Some(own) = self.principals.remove(&key) {
            self.leaving.push(own.leaving(key.1));
        }
        self.is_room(most, principal)
    }

    /// Lets go of the lines that a principal has to a server of this name: to one that is there no more, or is another now. Where
    /// they stand, and they themselves.
    fn let_go_of(&mut self, name: &str, principal: u64) -> (Vec<watch::Receiver<Status>>, Vec<OfPrincipal>) {
        let Self { principals, leaving, .. } = self;
        let is_of = |of: u64, other: &str| of == principal && other == name;
        let gone: Vec<_> =
            principals.extract_if(|(_, of), own| is_of(*of, &own.name)).map(|(_, own)| own).collect();
        leaving.extend(gone.iter().map(|own| own.leaving(principal)));
        leaving.retain(|line| is_open(&line.state));
        let before = leaving.iter().filter(|line| is_of(line.principal, &line.name));
        (before.map(|line| line.state.clone()).collect(), gone)
    }

    /// Whose each line is.
    fn owned(&self) -> impl Iterator<Item = u64> {
        let live = |own: &OfPrincipal| own.kept.is_some() || own.line.upgrade().is_some();
        let of_principals = self.principals.iter().filter(move |(_, own)| live(own)).map(|((_, of), _)| *of);
        self.sessions.iter().map(|(of, _)| *of).chain(of_principals)
    }

    fn is_room(&mut self, most: usize, principal: u64) -> bool {
        self.sessions.retain(|(_, agent)| agent.strong_count() > 0);
        let (mut all, mut own) = (0, 0);
        for of in self.owned() {
            all += 1;
            own += usize::from(of == principal);
        }
        all < most && own < share(most).max(1)
    }
}

//! What a line does when somebody logged in, when it was left without a key, or when a request was refused for one that the
//! server took before: then a probe decides, because others may be served with that key at this moment.

use std::sync::Arc;

use linetender_core::{Command, Generation, State, StateKind};
use linetender_wire::http::KeyRefused;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{News, Running};
use crate::generation::Probed;
use crate::keys::{KeyNews, KeyRing, KeyTask, Loss, Without};

/// The credentials of a line, as its tender knows them.
pub(super) struct Credentials {
    pub(super) ring: Arc<KeyRing>,
    news: watch::Receiver<KeyNews>,
    /// The logins that a dial has tried, and the losses that were heard of.
    tried: u64,
    heard: u64,
    /// Why there would be no key, while a probe finds out whether the server takes the one in use.
    doubt: Option<Without>,
    /// The task that asks for keys; it ends with the tender.
    #[expect(dead_code, reason = "owns the task")]
    task: JoinSet<()>,
}

impl Credentials {
    pub(super) fn new(ring: Arc<KeyRing>, task: KeyTask) -> Self {
        let news = ring.news();
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        Self { ring, news, tried: 0, heard: 0, doubt: None, task: tasks }
    }

    /// The line is in this state now.
    pub(super) fn stands(&self, state: StateKind) {
        self.ring.is_used(state.is_live());
        self.ring.rests(matches!(state, StateKind::Parked | StateKind::NeedsAuth));
    }

    /// A dial begins, and asks for the key itself: whatever happened up to now is past.
    pub(super) fn dialled(&mut self) -> Arc<KeyRing> {
        let news = self.news.borrow();
        (self.tried, self.heard) = (news.logins, news.losses);
        drop(news);
        self.doubt = None;
        Arc::clone(&self.ring)
    }
}

/// Returns when there is something new.
pub(super) async fn news(keys: &mut Option<Credentials>) {
    if let Some(keys) = keys
        && keys.news.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

impl Running {
    /// A key was refused on a connection that lives.
    pub(super) fn key_refused(&self, refused: KeyRefused) {
        if let Some(keys) = &self.keys {
            keys.ring.report(refused);
        }
    }

    /// Acts on what is new about the keys, in whatever state the line is by now: a login may come while a dial fails, a
    /// logout while one succeeds.
    pub(super) fn heed_keys(&mut self) {
        let Some(keys) = &mut self.keys else { return };
        let (logins, losses, last) = {
            let news = keys.news.borrow();
            (news.logins, news.losses, news.last.clone())
        };
        let generation = self.machine.generation();
        match (self.machine.state(), last.as_deref()) {
            (State::Up(_) | State::Suspect(_) | State::Draining { .. }, Some(Loss::Gone(without)))
                if losses > keys.heard =>
            {
                keys.heard = losses;
                self.lost(generation, without.seen());
                self.pump();
            }
            // What is draining ends by itself, and its calls need no key any more. One probe at a time.
            (State::Up(_) | State::Suspect(_), Some(Loss::Doubted(without)))
                if losses > keys.heard && keys.doubt.is_none() =>
            {
                keys.heard = losses;
                self.probe_key(generation, without);
            }
            (
                State::Waiting { .. } | State::Parked { .. } | State::NeedsAuth { .. } | State::Ending(_),
                _,
            ) if logins > keys.tried => {
                keys.tried = logins;
                let now = self.tender.clock.now();
                self.cell(Command::Credentials.name());
                self.machine.handle_command(now, Command::Credentials);
                self.pump();
            }
            _ => {}
        }
    }

    /// Asks the server for a sign of life with the key that it refused for one request.
    fn probe_key(&mut self, generation: Generation, without: &Without) {
        let (hello, news) = (self.tender.server.hello.clone(), self.news.0.clone());
        let limit = 2 * self.machine.policy().probe.timeout;
        let (Some(current), Some(keys)) = (&mut self.current, &mut self.keys) else { return };
        let Some(link) = current.connection.live().cloned() else { return };
        keys.doubt = Some(without.clone());
        current.tasks.spawn(async move {
            let probed = tokio::time::timeout(limit, link.probe(&hello)).await.unwrap_or(Probed::Silent);
            let _ = news.send(News::KeyProbed(generation, probed)).await;
        });
    }

    /// What came of that. Silence says nothing about the key, and the line's own probes see to it.
    pub(super) fn key_probed(&mut self, generation: Generation, probed: &Probed) {
        let Some(keys) = self.keys.as_mut().filter(|_| generation == self.machine.generation()) else {
            return;
        };
        let Some(without) = keys.doubt.take() else { return };
        if let Probed::KeyRefused(refused) = probed
            && !keys.ring.has_newer_than(refused)
        {
            self.lost(generation, without.seen());
        }
    }
}

//! What a line does when somebody logged in, or when it was left without a key.

use std::sync::Arc;

use linetender_core::{Command, State};
use linetender_wire::http::KeyRefused;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Running;
use crate::keys::{KeyNews, KeyRing, KeyTask};

/// The credentials of a line, as its tender knows them.
pub(super) struct Credentials {
    pub(super) ring: Arc<KeyRing>,
    news: watch::Receiver<KeyNews>,
    /// The logins that a dial has tried, and the losses that were heard of.
    tried: u64,
    heard: u64,
    /// The task that asks for keys; it ends with the tender.
    #[expect(dead_code, reason = "owns the task")]
    task: JoinSet<()>,
}

impl Credentials {
    pub(super) fn new(ring: Arc<KeyRing>, task: KeyTask) -> Self {
        let news = ring.news();
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        Self { ring, news, tried: 0, heard: 0, task: tasks }
    }

    /// A dial begins, and asks for the key itself: whatever happened up to now is past.
    pub(super) fn dialled(&mut self) -> Arc<KeyRing> {
        let news = self.news.borrow();
        (self.tried, self.heard) = (news.logins, news.losses);
        drop(news);
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
        let (logins, losses, without) = {
            let news = keys.news.borrow();
            (news.logins, news.losses, news.without.clone())
        };
        match self.machine.state() {
            State::Up(_) | State::Suspect(_) | State::Draining { .. } if losses > keys.heard => {
                keys.heard = losses;
                if let Some(without) = without {
                    self.lost(self.machine.generation(), without.seen());
                    self.pump();
                }
            }
            State::Waiting { .. } | State::Parked { .. } | State::NeedsAuth { .. } | State::Ending(_)
                if logins > keys.tried =>
            {
                keys.tried = logins;
                let now = self.tender.clock.now();
                self.cell(Command::Credentials.name());
                self.machine.handle_command(now, Command::Credentials);
                self.pump();
            }
            _ => {}
        }
    }
}

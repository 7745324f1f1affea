//! What dials, calls and the tender know of a line's keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linetender_wire::http::{KeyRefused, KeySlot};
use linetender_wire::{Redacted, Seen};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::{KeyTask, NoKey, Source};

/// How many questions may wait for the task. Whoever finds no room waits outside.
const ASKS: usize = 256;

/// How long a dial waits for the task, which bounds each question itself. More means that the task is not there.
const LONGEST: Duration = Duration::from_secs(90);

/// How much of a challenge is shown.
const SHOWN: usize = 200;

/// The keys of one line. Cheap to share.
pub(crate) struct KeyRing {
    /// What requests send.
    pub(crate) slot: KeySlot,
    asks: mpsc::Sender<Ask>,
    news: watch::Receiver<KeyNews>,
    pub(super) used: Arc<Used>,
    /// Whether an agent was told, for want of a login, that the server offers nothing.
    told_nothing: AtomicBool,
}

/// Whether a key is worth renewing before it is refused, whether the line rests until there is one, and that this machine
/// slept.
#[derive(Default)]
pub(super) struct Used {
    pub(super) live: AtomicBool,
    pub(super) rests: AtomicBool,
    pub(super) rested: Notify,
    pub(super) slept: Notify,
}

/// A question to the task.
pub(super) struct Ask {
    /// What was refused; `None` before a connection is made.
    pub(super) refused: Option<KeyRefused>,
    /// Whether the task may try more than once.
    pub(super) patient: bool,
    pub(super) at: Instant,
    pub(super) reply: oneshot::Sender<Result<(), Without>>,
}

/// What the tender has to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyNews {
    /// How often somebody logged in.
    pub(crate) logins: u64,
    /// How often a live connection was left without a key that is known to be good, and the last time how.
    pub(crate) losses: u64,
    pub(crate) last: Option<Arc<Loss>>,
}

/// What became of the key of a live connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Loss {
    /// There is none any more.
    Gone(Without),
    /// A request was refused for it, and no other can be had. The server may refuse that request alone: a probe tells.
    Doubted(Without),
}

/// Why there is no key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Without {
    /// In the words of whoever gives them.
    NoKey(NoKey),
    /// The server refused the key, and there is no other.
    Refused { challenge: Redacted },
}

impl Without {
    pub(super) fn refused(refused: &KeyRefused) -> Self {
        Self::Refused { challenge: Redacted::head(&refused.challenge, SHOWN) }
    }

    /// Whether it may be otherwise in a moment.
    pub(super) const fn may_pass(&self) -> bool {
        matches!(self, Self::NoKey(NoKey::Later { .. }))
    }

    fn internal() -> Self {
        Self::later("internal error in linetender while it asked for the credentials")
    }

    fn later(words: &str) -> Self {
        Self::NoKey(NoKey::Later { words: Redacted::head(words, SHOWN), after: None })
    }

    /// What to say of an end that comes of this.
    pub(crate) fn seen(&self) -> Seen {
        match self.clone() {
            Self::NoKey(NoKey::Login { words }) => Seen::NeedsLogin { words },
            Self::NoKey(NoKey::Later { words, after }) => Seen::NoKey { words, after },
            Self::Refused { challenge } => Seen::WantsAuth { challenge },
        }
    }
}

impl KeyRing {
    /// The keys of a line, and the task that asks for them.
    pub(crate) fn new(source: &Source) -> (Arc<Self>, KeyTask) {
        let (asks, asked) = mpsc::channel(ASKS);
        let (tell, news) = watch::channel(KeyNews::default());
        let (slot, used) = (KeySlot::new(), Arc::<Used>::default());
        let task = KeyTask::new(Arc::clone(&source.0), slot.clone(), asked, tell, Arc::clone(&used));
        (Arc::new(Self { slot, asks, news, used, told_nothing: AtomicBool::new(false) }), task)
    }

    /// An agent is told that the server offers nothing, for want of a login.
    pub(crate) fn agents_know_of_nothing(&self) {
        self.told_nothing.store(true, Ordering::Release);
    }

    /// Whether one was, since this was last asked: it has to hear of what there is.
    pub(crate) fn agents_knew_of_nothing(&self) -> bool {
        self.told_nothing.swap(false, Ordering::AcqRel)
    }

    /// What the tender has to know, now and as it changes.
    pub(crate) fn news(&self) -> watch::Receiver<KeyNews> {
        self.news.clone()
    }

    /// The key of this moment is in the slot before a connection is made; or there is none because none is known.
    pub(crate) async fn fresh(&self) -> Result<(), Without> {
        let asked = self.ask(None, false);
        tokio::time::timeout(LONGEST, asked).await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// A newer key than the refused one is in the slot. Nobody is asked if it is there already. `patient`: if none can be had
    /// at the moment, it is tried a few times more. The caller bounds the wait.
    pub(crate) async fn renewed(&self, refused: &KeyRefused, patient: bool) -> Result<(), Without> {
        if self.has_newer_than(refused) {
            return Ok(());
        }
        self.ask(Some(refused.clone()), patient).await
    }

    /// A key was refused, and nobody waits for the next one.
    pub(crate) fn report(&self, refused: KeyRefused) {
        if !self.has_newer_than(&refused) {
            let (reply, _) = oneshot::channel();
            let ask = Ask { refused: Some(refused), patient: true, at: Instant::now(), reply };
            // If there is no room, others have told the same.
            let _ = self.asks.try_send(ask);
        }
    }

    /// Whether there is another key by now.
    pub(crate) fn has_newer_than(&self, refused: &KeyRefused) -> bool {
        let now = self.slot.read();
        now.headers().is_some() && now.is_newer_than(&refused.key)
    }

    async fn ask(&self, refused: Option<KeyRefused>, patient: bool) -> Result<(), Without> {
        let (reply, answer) = oneshot::channel();
        let ask = Ask { refused, patient, at: Instant::now(), reply };
        // If nobody hears it, there is no answer either.
        let _ = self.asks.send(ask).await;
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// The task is gone with its line, or panicked over the question.
    fn unanswered(&self) -> Without {
        if self.asks.is_closed() { Without::later("the line was closed") } else { Without::internal() }
    }

    /// Whether there is a connection that uses the key: one that nobody uses is not renewed.
    pub(crate) fn is_used(&self, live: bool) {
        self.used.live.store(live, Ordering::Relaxed);
    }

    /// Whether the line tries nothing for minutes: then the task looks now and then whether there is a key by now.
    pub(crate) fn rests(&self, rests: bool) {
        if !self.used.rests.swap(rests, Ordering::Relaxed) && rests {
            self.used.rested.notify_one();
        }
    }

    /// This machine slept: what is due is looked at again.
    pub(crate) fn slept(&self) {
        self.used.slept.notify_one();
    }
}

//! The one task of a line that asks for keys. It asks one question at a time, and everybody whom the answer concerns is
//! told: of fifty calls that were refused for one key, the first asks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use linetender_wire::http::{KeyRefused, KeySlot, SentKey};
use linetender_wire::{Panicked, Redacted, caught, caught_now, wall};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::pace::{Pace, Pauses};
use super::ring::{Ask, KeyNews, Used};
use super::{Key, Keys, Loss, NoKey, Refused, Without};

/// The longest that one question may take. Whoever answers bounds itself to less.
const LONGEST: Duration = Duration::from_secs(20);

/// After which waits a refused key is asked about again, if none can be had at the moment; the longest wait that somebody
/// else may ask for without ending the connection; and for how long all of that is begun.
const TRIES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
const PATIENCE: Duration = Duration::from_secs(10);
const TRIED: Duration = Duration::from_secs(30);

/// How many keys in a row are renewed at once of which the server took none. Then it is waited before each renewal.
const REJECTED: u32 = 2;

/// When a key that is due could not be had, it is asked for again after this long.
const LATER: Duration = Duration::from_secs(30);

/// For how long a refusal that could not be mended is the answer to the next one of the same key. A server may refuse one
/// tool for a key that does for the others; some day it refuses the key for all of them, and then there may be another.
const SETTLED: Duration = Duration::from_secs(2);

/// The rest after a panic of this task.
const REST: Duration = Duration::from_secs(1);

/// How much of our own words is shown.
const SHOWN: usize = 200;

/// The task.
pub(crate) struct KeyTask {
    keys: Arc<dyn Keys>,
    slot: KeySlot,
    asks: mpsc::Receiver<Ask>,
    tell: watch::Sender<KeyNews>,
    used: Arc<Used>,
    changes: Option<watch::Receiver<u64>>,
    /// When the key in the slot wants to be asked for again, by the wall's clock and by ours.
    renew_at: Option<SystemTime>,
    due: Option<Instant>,
    pace: Pace,
    /// Keys in a row that the server refused and never took, and the last of them.
    rejected: u32,
    counted: Option<SentKey>,
    renewals: Pauses,
    /// The last refusal that could not be mended: whoever was refused alike before then is told the same.
    last: Option<Unmended>,
    /// The last key that was refused for good. It is no news if it comes again, unless somebody logged in.
    bad: Option<Arc<HeaderMap>>,
    /// When a line that rests looks for a key, and how it waits between two looks.
    look_at: Option<Instant>,
    looks: Pauses,
    /// How it waits before it takes a change for a login that brought the same key again, and whether there was one.
    logins: Pauses,
    same_again: bool,
}

struct Unmended {
    refused: KeyRefused,
    at: Instant,
    why: Without,
}

impl Unmended {
    /// Whether it is the answer to this refusal too. What is not there at the moment may be there in the next.
    fn settles(&self, refused: &KeyRefused, at: Instant) -> bool {
        let alike = self.refused.status == refused.status;
        if self.why.may_pass() {
            return alike && at <= self.at;
        }
        let same = if refused.status == 403 {
            // Each request may want another scope.
            self.refused.challenge == refused.challenge
        } else {
            at <= self.at + SETTLED
        };
        alike && self.refused.key == refused.key && same
    }
}

/// What was found by whoever looked for a key.
enum Found {
    New,
    /// The one that is known, or was refused before.
    Same,
    None,
}

/// What woke it.
enum Woke {
    Asked(Option<Ask>),
    Changed,
    Due,
    Slept,
    Rested,
    Look,
}

impl KeyTask {
    pub(super) fn new(
        keys: Arc<dyn Keys>,
        slot: KeySlot,
        asks: mpsc::Receiver<Ask>,
        tell: watch::Sender<KeyNews>,
        used: Arc<Used>,
    ) -> Self {
        // Whoever cannot say that something changed is asked at each dial and after each refusal all the same.
        let changes = caught_now(|| keys.changes()).ok();
        Self {
            keys,
            slot,
            asks,
            tell,
            used,
            changes,
            renew_at: None,
            due: None,
            pace: Pace::new(),
            rejected: 0,
            counted: None,
            renewals: Pauses::new(),
            last: None,
            bad: None,
            look_at: None,
            looks: Pauses::new(),
            logins: Pauses::new(),
            same_again: false,
        }
    }

    /// Works until the line is gone, whatever panics on the way: whoever waits for an answer is then told that there is none.
    pub(crate) async fn run(mut self) {
        while caught(self.work()).await == Err(Panicked) {
            tokio::time::sleep(REST).await;
        }
    }

    async fn work(&mut self) {
        loop {
            let woke = tokio::select! {
                () = changed(&mut self.changes) => Woke::Changed,
                ask = self.asks.recv() => Woke::Asked(ask),
                () = self.used.slept.notified() => Woke::Slept,
                () = self.used.rested.notified() => Woke::Rested,
                () = sleep_until(self.due) => Woke::Due,
                () = sleep_until(self.look_at) => Woke::Look,
            };
            linetender_wire::test_hooks::point("keys");
            match woke {
                Woke::Asked(Some(Ask { refused, patient, at, reply })) => {
                    let answer = match refused {
                        None => self.fresh().await,
                        Some(refused) => self.refused(&refused, patient, at).await,
                    };
                    let _ = reply.send(answer);
                }
                Woke::Asked(None) => return,
                Woke::Changed => self.changed().await,
                Woke::Slept => self.due = self.when_due(),
                Woke::Due => self.renew().await,
                Woke::Rested => self.rested(),
                Woke::Look => self.look().await,
            }
        }
    }

    /// A connection is to be made.
    async fn fresh(&mut self) -> Result<(), Without> {
        self.last = None;
        self.same_again = false;
        let asked = self.question(None).await;
        self.take(asked)
    }

    /// Somebody logged in or out.
    async fn changed(&mut self) {
        self.last = None;
        let asked = self.question(None).await;
        match self.found(asked) {
            Err(why @ Without::NoKey(NoKey::Login { .. })) => self.lost(Loss::Gone(why)),
            // A key that was not refused is as good as before.
            Err(_) => {}
            Ok(Found::New) => self.tell.send_modify(|news| news.logins += 1),
            // Some authorization servers give the same token again, and it may be good by now. Or it was another login.
            Ok(Found::Same) if !self.same_again && !self.used.live.load(Ordering::Relaxed) => {
                self.same_again = true;
                if self.rests() {
                    self.look_at = Some(self.logins.over());
                }
            }
            Ok(Found::Same | Found::None) => {}
        }
    }

    /// The line tries nothing for minutes.
    fn rested(&mut self) {
        if self.slot.read().was_accepted() {
            (self.looks, self.logins) = (Pauses::new(), Pauses::new());
        }
        self.look_at = Some(if self.same_again { self.logins.over() } else { self.looks.begin() });
    }

    /// Looks whether there is a key by now, for a line that rests. Files change without a word.
    async fn look(&mut self) {
        self.look_at = None;
        if !self.rests() {
            return;
        }
        // What could not be answered at the moment is asked again.
        let unanswered = self.last.as_ref().filter(|last| last.why.may_pass());
        let refused = unanswered.map(|last| last.refused.clone());
        let asked = self.question(refused.as_ref()).await;
        match self.found(asked) {
            Ok(Found::New) => self.tell.send_modify(|news| news.logins += 1),
            Ok(Found::Same) if std::mem::take(&mut self.same_again) => {
                self.logins.begin();
                self.tell.send_modify(|news| news.logins += 1);
            }
            _ => self.look_at = Some(self.looks.begin()),
        }
    }

    fn rests(&self) -> bool {
        self.used.rests.load(Ordering::Relaxed)
    }

    /// What an answer is to a line without a good key. If there is a key, it is in the slot.
    fn found(&mut self, asked: Result<Option<Key>, NoKey>) -> Result<Found, Without> {
        let before = self.slot.read();
        let key = asked.as_ref().ok().and_then(|key| Some(Arc::clone(&key.as_ref()?.headers)));
        self.take(asked)?;
        let Some(key) = key else { return Ok(Found::None) };
        let is_new = self.slot.read().is_newer_than(&before) && self.bad.as_ref() != Some(&key);
        Ok(if is_new { Found::New } else { Found::Same })
    }

    /// The key in the slot wants to be asked for again.
    async fn renew(&mut self) {
        self.due = None;
        // The next dial asks anyway.
        if !self.used.live.load(Ordering::Relaxed) {
            return;
        }
        let asked = self.question(None).await;
        match self.take(asked) {
            Err(why @ Without::NoKey(NoKey::Login { .. })) => self.lost(Loss::Gone(why)),
            Err(Without::NoKey(NoKey::Later { after, .. })) => {
                self.due = Some(Instant::now() + LATER.max(after.unwrap_or_default()));
            }
            Err(Without::Refused { .. }) | Ok(()) => {}
        }
    }

    /// A key was refused, at this time or a little before.
    async fn refused(&mut self, refused: &KeyRefused, patient: bool, at: Instant) -> Result<(), Without> {
        let now = self.slot.read();
        if now.headers().is_some() && now.is_newer_than(&refused.key) {
            return Ok(());
        }
        if let Some(last) = self.last.as_ref().filter(|last| last.settles(refused, at)) {
            return Err(last.why.clone());
        }
        let renewed = self.renewed(refused, patient).await;
        if let Err(why) = &renewed {
            let (refused, why) = (refused.clone(), why.clone());
            // A credential that is too weak for one request does for the others.
            if refused.status != 403 {
                self.bad = refused.key.headers().cloned();
                // Whoever is up was let in with it: the server may refuse that one request only.
                let kept = self.slot.read() == refused.key;
                self.lost(if kept { Loss::Doubted(why.clone()) } else { Loss::Gone(why.clone()) });
            }
            self.last = Some(Unmended { refused, at: Instant::now(), why });
        }
        renewed
    }

    async fn renewed(&mut self, refused: &KeyRefused, patient: bool) -> Result<(), Without> {
        if refused.status != 403 {
            if refused.key.was_accepted() {
                (self.rejected, self.renewals) = (0, Pauses::new());
            } else if self.counted.replace(refused.key.clone()).as_ref() != Some(&refused.key) {
                self.rejected += 1;
            }
            // Each new key is news to every process, and makes it dial: what is never taken must not be renewed in a circle.
            if self.rejected >= REJECTED {
                if self.rejected > REJECTED && Instant::now() < self.renewals.over() {
                    return Err(Without::refused(refused));
                }
                self.renewals.begin();
            }
        }
        if !self.pace.may_ask() {
            return Err(Without::refused(refused));
        }
        let until = Instant::now() + TRIED;
        let mut tries = TRIES.into_iter().take(if patient { TRIES.len() } else { 0 });
        loop {
            let asked = self.question(Some(refused)).await;
            let (after, wait) = match (&asked, tries.next()) {
                (Err(NoKey::Later { after, .. }), Some(wait)) => (after.unwrap_or_default(), wait),
                _ => return self.take_other(asked, refused),
            };
            if after > PATIENCE || Instant::now() + wait > until {
                return self.take_other(asked, refused);
            }
            let again = tokio::time::sleep(wait.max(after));
            tokio::select! {
                () = again => {}
                () = changed(&mut self.changes) => {}
            }
        }
    }

    /// One question. Somebody who logs in meanwhile makes it another one.
    async fn question(&mut self, refused: Option<&KeyRefused>) -> Result<Option<Key>, NoKey> {
        let until = Instant::now() + LONGEST;
        self.pace.asked();
        loop {
            let (keys, refused) = (Arc::clone(&self.keys), refused.map(told));
            let asking = caught(async move { keys.key(refused).await });
            tokio::select! {
                biased;
                answer = tokio::time::timeout_at(until, asking) => return match answer {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(Panicked)) => Err(later("internal error: the source of the credentials panicked")),
                    Err(_) => Err(later("the source of the credentials did not answer within 20 s")),
                },
                () = changed(&mut self.changes) => {}
            }
        }
    }

    /// What an answer comes to if the server has refused a key: the same one again is no answer.
    fn take_other(&mut self, asked: Result<Option<Key>, NoKey>, refused: &KeyRefused) -> Result<(), Without> {
        match &asked {
            Ok(Some(key)) if refused.key.headers() == Some(&key.headers) => Err(Without::refused(refused)),
            Ok(None) => Err(Without::refused(refused)),
            Err(why) if refused.status == 403 => Err(Without::NoKey(why.clone())),
            // It was good before, and may be so for other requests. Nobody will renew it.
            Err(why @ NoKey::Login { .. })
                if refused.key.was_accepted() || refused.key.headers().is_none() =>
            {
                (self.renew_at, self.due) = (None, None);
                Err(Without::NoKey(why.clone()))
            }
            Ok(Some(_)) | Err(_) => self.take(asked),
        }
    }

    /// Puts the key of an answer into the slot. Whoever logged out wants it sent no more.
    fn take(&mut self, asked: Result<Option<Key>, NoKey>) -> Result<(), Without> {
        match asked {
            Ok(key) => {
                self.renew_at = key.as_ref().and_then(|key| key.renew_at);
                self.due = self.when_due();
                self.put(key.map(|key| key.headers));
                Ok(())
            }
            Err(why) => {
                if matches!(why, NoKey::Login { .. }) {
                    (self.renew_at, self.due) = (None, None);
                    self.put(None);
                }
                Err(Without::NoKey(why))
            }
        }
    }

    fn put(&self, headers: Option<Arc<HeaderMap>>) {
        if self.slot.read().headers() != headers.as_ref() {
            self.slot.put(headers);
        }
    }

    fn when_due(&self) -> Option<Instant> {
        self.pace.due(self.renew_at?, wall::wall_clock())
    }

    /// A connection that lives has no key any more, or a doubtful one.
    fn lost(&self, loss: Loss) {
        self.tell.send_modify(|news| {
            news.losses += 1;
            news.last = Some(Arc::new(loss));
        });
    }
}

/// A refusal as whoever gives the keys is told of it.
fn told(refused: &KeyRefused) -> Refused {
    let key = |key: &SentKey| Some(Key { headers: Arc::clone(key.headers()?), renew_at: None });
    Refused { key: key(&refused.key), status: refused.status, challenge: refused.challenge.clone() }
}

fn later(words: &str) -> NoKey {
    NoKey::Later { words: Redacted::head(words, SHOWN), after: None }
}

/// Never returns once nobody is left who could change anything.
async fn changed(changes: &mut Option<watch::Receiver<u64>>) {
    if let Some(watched) = changes
        && watched.changed().await.is_ok()
    {
        return;
    }
    *changes = None;
    std::future::pending::<()>().await;
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

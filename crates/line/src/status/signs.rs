//! Signs of life of one generation: when its server was last heard, and which calls were given up since.
//!
//! A few numbers, kept as calls come and go, so that the tender reads them in no time however many calls there were.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use linetender_core::Instant;

use crate::basics::clock::Clock;
use linetender_wire::wall::{rfc3339, wall_clock};

/// How many give-ups without an answer in between say something about the server. A call that was cancelled is one, a
/// call past its deadline two: people cancel single calls for reasons of their own.
const UNSERVED: u32 = 2;

/// A server that was heard this recently is not called silent: its answer to the probe may be on its way.
const QUIET: Duration = Duration::from_millis(500);

/// How a call that the server has was given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GiveUp {
    /// Its caller cancelled it, or went away.
    Cancelled,
    /// Its deadline passed.
    Expired,
}

/// The signs. Times are nanoseconds of the line's clock; zero is never.
#[derive(Debug)]
pub(crate) struct Signs {
    clock: Clock,
    heard_at: AtomicU64,
    /// The last probe that was answered.
    probed_at: AtomicU64,
    /// Requests of callers that were answered, and when the last one was; or when the generation began.
    answered: AtomicU64,
    answered_at: AtomicU64,
    /// The last call that was cancelled.
    cancelled_at: AtomicU64,
    /// The first give-up after the server was last heard, of a call older than every call still waited for.
    abandoned_at: AtomicU64,
    /// When that call began.
    abandoned_call_at: AtomicU64,
    /// What was given up since a caller was last answered, and when that began.
    unserved: AtomicU32,
    unserved_at: AtomicU64,
}

/// What is wrong with a server that is up. It prints as words that are true now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Health {
    /// Calls were given up, and nothing has been heard from the server since before that.
    Silent {
        /// How long ago it was last heard.
        since: Duration,
    },
    /// Something is heard from it, but the calls that it was sent were given up unanswered.
    NoCallAnswered {
        /// How long ago it last answered a call; or how old it is, if it never did.
        since: Duration,
        /// Whether it has answered a ping since the first of them.
        pings: bool,
    },
}

impl Signs {
    pub(crate) fn new(clock: Clock) -> Self {
        let now = clock.now().nanos();
        Self {
            clock,
            heard_at: AtomicU64::new(now),
            probed_at: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            answered_at: AtomicU64::new(now),
            cancelled_at: AtomicU64::new(0),
            abandoned_at: AtomicU64::new(0),
            abandoned_call_at: AtomicU64::new(0),
            unserved: AtomicU32::new(0),
            unserved_at: AtomicU64::new(0),
        }
    }

    /// Something came from the server. That clears what was given up before.
    pub(crate) fn heard(&self) {
        self.heard_at.store(self.clock.now().nanos(), Ordering::Relaxed);
    }

    /// It answered a probe.
    pub(crate) fn probed(&self) {
        self.probed_at.store(self.clock.now().nanos(), Ordering::Relaxed);
    }

    /// A request of a caller was answered, with what was heard last.
    pub(crate) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.answered_at.store(self.heard_at.load(Ordering::Relaxed), Ordering::Relaxed);
        self.unserved.store(0, Ordering::Relaxed);
    }

    /// A call that the server has since then was given up; whether it was older than every call still waited for. Says whether
    /// the generation is abandoned since now. One give-up at a time.
    pub(crate) fn given_up(&self, how: GiveUp, began: Instant, oldest: bool) -> bool {
        let (now, heard_at) = (self.clock.now().nanos(), self.heard_at.load(Ordering::Relaxed));
        if how == GiveUp::Cancelled {
            self.cancelled_at.store(now, Ordering::Relaxed);
        }
        if !oldest {
            return false;
        }
        let weight = if how == GiveUp::Expired { UNSERVED } else { 1 };
        let before = self.unserved.load(Ordering::Relaxed);
        if before == 0 {
            self.unserved_at.store(now, Ordering::Relaxed);
        }
        self.unserved.store(before.saturating_add(weight), Ordering::Relaxed);
        let first = self.abandoned_at.load(Ordering::Relaxed) <= heard_at;
        if first {
            self.abandoned_at.store(now, Ordering::Relaxed);
            self.abandoned_call_at.store(began.nanos(), Ordering::Relaxed);
        }
        first
    }

    pub(crate) fn heard_at(&self) -> Instant {
        Instant::from_nanos(self.heard_at.load(Ordering::Relaxed))
    }

    pub(crate) fn callers_answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// How long ago a caller was last answered.
    pub(crate) fn since_answer(&self) -> Duration {
        self.clock.now().since(Instant::from_nanos(self.answered_at.load(Ordering::Relaxed)))
    }

    /// Whether a call was cancelled since the server was last heard.
    pub(crate) fn owed(&self) -> bool {
        self.cancelled_at.load(Ordering::Relaxed) > self.heard_at.load(Ordering::Relaxed)
    }

    /// The first give-up that counts, since the server was last heard.
    pub(crate) fn abandoned_at(&self) -> Option<Instant> {
        let at = self.abandoned_at.load(Ordering::Relaxed);
        (at > self.heard_at.load(Ordering::Relaxed)).then(|| Instant::from_nanos(at))
    }

    /// How long ago the call began that was given up then.
    pub(crate) fn since_abandoned_call(&self) -> Option<Duration> {
        self.abandoned_at()?;
        Some(self.clock.now().since(Instant::from_nanos(self.abandoned_call_at.load(Ordering::Relaxed))))
    }

    /// What is wrong with the server, if anything is.
    pub(crate) fn health(&self) -> Option<Health> {
        let now = self.clock.now();
        let ago = |at: Instant| now.since(at);
        let silent = ago(self.heard_at());
        if self.abandoned_at().is_some() && silent >= QUIET {
            return Some(Health::Silent { since: silent });
        }
        let given_up = Instant::from_nanos(self.unserved_at.load(Ordering::Relaxed));
        let unserved = self.unserved.load(Ordering::Relaxed) >= UNSERVED && self.heard_at() > given_up;
        let answered_at = Instant::from_nanos(self.answered_at.load(Ordering::Relaxed));
        let pings = self.probed_at.load(Ordering::Relaxed) > given_up.nanos();
        unserved.then(|| Health::NoCallAnswered { since: ago(answered_at), pings })
    }
}

impl Health {
    /// The same with what to do about it. `pid` is the server's process, if it is one of this machine.
    pub fn advice(&self, pid: Option<i32>) -> String {
        format!("{self}{}", self.remedy(pid))
    }

    /// The same with the time of day at which it began, for people who read it later.
    pub fn dated(&self, pid: Option<i32>) -> String {
        let (words, since) = self.parts();
        let at = wall_clock().checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH);
        format!("{words} since {} ({} s){}", rfc3339(at), since.as_secs(), self.remedy(pid))
    }

    fn remedy(self, pid: Option<i32>) -> String {
        match (self, pid) {
            (Self::Silent { .. }, _) => String::new(),
            (Self::NoCallAnswered { .. }, Some(pid)) => format!("; to restart it: kill -9 {pid}"),
            (Self::NoCallAnswered { .. }, None) => "; restart it on its host".to_owned(),
        }
    }

    const fn parts(self) -> (&'static str, Duration) {
        match self {
            Self::Silent { since } => ("silent", since),
            Self::NoCallAnswered { since, pings: true } => ("answers pings; no call answered", since),
            Self::NoCallAnswered { since, pings: false } => ("sends messages; no call answered", since),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, since) = self.parts();
        write!(f, "{words} for {} s", since.as_secs().max(1))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linetender_core::Instant;

    use super::{GiveUp, Health, Signs};
    use crate::basics::clock::Clock;

    async fn pass(secs: u64) {
        tokio::time::advance(Duration::from_secs(secs)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_first_give_up_of_the_oldest_call_since_a_byte_was_heard_counts() {
        let clock = Clock::start();
        let signs = Signs::new(clock);
        pass(1).await;
        assert!(
            !signs.given_up(GiveUp::Cancelled, Instant::ORIGIN, false),
            "an older call is still waited for"
        );
        assert!(signs.owed());
        assert_eq!(signs.abandoned_at(), None);
        pass(1).await;
        assert!(signs.given_up(GiveUp::Cancelled, Instant::ORIGIN, true));
        let first = clock.now();
        pass(1).await;
        assert!(!signs.given_up(GiveUp::Expired, Instant::ORIGIN, true));
        assert_eq!(signs.abandoned_at(), Some(first));
        pass(1).await;
        signs.heard();
        assert_eq!((signs.abandoned_at(), signs.owed()), (None, false), "a byte clears it");
        pass(1).await;
        assert!(signs.given_up(GiveUp::Expired, Instant::ORIGIN, true));
        assert_eq!((signs.abandoned_at(), signs.owed()), (Some(clock.now()), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_silent_until_it_is_heard_and_then_it_answers_pings_only() {
        let signs = Signs::new(Clock::start());
        let health = |since: fn(Duration) -> Health, secs| Some(since(Duration::from_secs(secs)));
        pass(10).await;
        signs.heard();
        signs.answered();
        assert_eq!(signs.health(), None);
        pass(5).await;
        signs.given_up(GiveUp::Cancelled, Instant::ORIGIN, true);
        assert_eq!(signs.health(), health(|since| Health::Silent { since }, 5));
        pass(1).await;
        signs.heard();
        assert_eq!(signs.health(), None, "one call was cancelled: that says nothing");
        pass(1).await;
        signs.given_up(GiveUp::Cancelled, Instant::ORIGIN, true);
        pass(1).await;
        signs.heard();
        assert_eq!(signs.health(), health(|since| Health::NoCallAnswered { since, pings: false }, 8));
        signs.answered();
        assert_eq!(signs.health(), None);
    }

    #[test]
    fn words_say_since_when_and_what_to_do() {
        let silent = Health::Silent { since: Duration::from_secs(34) };
        assert_eq!(silent.advice(Some(7)), "silent for 34 s");
        let dated = silent.dated(None);
        assert!(dated.starts_with("silent since 2") && dated.ends_with("Z (34 s)"), "{dated}");
        let deaf = Health::NoCallAnswered { since: Duration::from_secs(90), pings: true };
        let words = deaf.advice(Some(7));
        assert_eq!(words, "answers pings; no call answered for 90 s; to restart it: kill -9 7");
        assert!(deaf.advice(None).ends_with("; restart it on its host"));
    }
}

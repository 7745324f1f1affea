//! Why a call may be sent again, which of these reasons a user permits, and how many re-sends there are in total.
//!
//! Why a budget and not a number per call? When a server is in trouble every call fails, and two retries each
//! are three times the load at the worst moment. A share of the calls that really came bounds the whole, and a
//! small reserve lets a quiet line retry too.

use core::time::Duration;

use crate::policy::RetryPolicy;
use crate::time::{Instant, millis};

/// Why a call is sent again. The first eight can be switched on and off by `retry_on`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
#[non_exhaustive]
pub enum RetryReason {
    /// linetender counted that the server cannot have executed it.
    NotExecuted,
    /// The server lost the session.
    SessionLost,
    /// The server refused the credentials, and there are new ones.
    Auth,
    /// The server refused the headers or the protocol version.
    Protocol,
    /// The server closed an HTTP/2 connection before it processed the call.
    Goaway,
    /// The server asked to come back later.
    RateLimited,
    /// The server, or a proxy, refused the HTTP/2 stream.
    RefusedStream,
    /// It reads: `resources/read`, `prompts/get`, `completion/complete`, `tasks/result`.
    Reads,
    /// It is a list, discovery, or the state of a task.
    List,
    /// The user listed the tool as safe.
    SafeTool,
    /// The server declares the tool read-only or idempotent, and the user trusts that.
    DeclaredSafe,
}

/// Which reasons permit a re-send: `retry_on`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RetryOn(u16);

impl RetryReason {
    /// Every reason.
    pub const ALL: [Self; 11] = [
        Self::NotExecuted,
        Self::SessionLost,
        Self::Auth,
        Self::Protocol,
        Self::Goaway,
        Self::RateLimited,
        Self::RefusedStream,
        Self::Reads,
        Self::List,
        Self::SafeTool,
        Self::DeclaredSafe,
    ];

    /// The reasons that `retry_on` can name.
    pub const SETTABLE: [Self; 8] = [
        Self::NotExecuted,
        Self::SessionLost,
        Self::Auth,
        Self::Protocol,
        Self::Goaway,
        Self::RateLimited,
        Self::RefusedStream,
        Self::Reads,
    ];

    /// Its word, in `retry_on`, in events and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotExecuted => "not-executed",
            Self::SessionLost => "session-lost",
            Self::Auth => "auth",
            Self::Protocol => "protocol",
            Self::Goaway => "goaway",
            Self::RateLimited => "rate-limited",
            Self::RefusedStream => "refused-stream",
            Self::Reads => "reads",
            Self::List => "list",
            Self::SafeTool => "safe-tool",
            Self::DeclaredSafe => "declared-safe",
        }
    }

    /// Returns the reason that `retry_on` means by this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::SETTABLE.into_iter().find(|reason| reason.name() == name)
    }
}

impl RetryOn {
    /// Nothing permits a re-send.
    pub const NOTHING: Self = Self(0);

    /// Only what linetender counted itself permits a re-send: no call is executed twice, whatever a server answers.
    pub const NOT_EXECUTED: Self = Self::NOTHING.with(RetryReason::NotExecuted);

    /// What is permitted besides `reason`.
    #[must_use]
    pub const fn with(self, reason: RetryReason) -> Self {
        Self(self.0 | 1 << reason as u16)
    }

    /// True if `reason` permits a re-send.
    pub const fn contains(self, reason: RetryReason) -> bool {
        self.0 & 1 << reason as u16 != 0
    }

    /// The reasons, in the order of [`RetryReason::ALL`].
    pub fn iter(self) -> impl Iterator<Item = RetryReason> {
        RetryReason::ALL.into_iter().filter(move |reason| self.contains(*reason))
    }
}

impl Default for RetryOn {
    /// What MCP or HTTP require to be refused before the work begins. 429 and `REFUSED_STREAM` are not among it: layers
    /// inside a server, and proxies, send them after the work was done.
    fn default() -> Self {
        Self::NOT_EXECUTED
            .with(RetryReason::SessionLost)
            .with(RetryReason::Auth)
            .with(RetryReason::Protocol)
            .with(RetryReason::Goaway)
    }
}

impl FromIterator<RetryReason> for RetryOn {
    fn from_iter<I: IntoIterator<Item = RetryReason>>(reasons: I) -> Self {
        reasons.into_iter().fold(Self::NOTHING, Self::with)
    }
}

#[cfg(feature = "serde")]
mod as_names {
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{RetryOn, RetryReason};

    impl Serialize for RetryOn {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.iter().map(RetryReason::name))
        }
    }

    impl<'de> Deserialize<'de> for RetryOn {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(Names)
        }
    }

    /// Takes the names one by one.
    struct Names;

    /// One name.
    struct Name(RetryReason);

    impl<'de> Visitor<'de> for Names {
        type Value = RetryOn;

        fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("a list of reasons")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<RetryOn, A::Error> {
            let mut reasons = RetryOn::NOTHING;
            while let Some(Name(reason)) = names.next_element()? {
                reasons = reasons.with(reason);
            }
            Ok(reasons)
        }
    }

    impl<'de> Deserialize<'de> for Name {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(OneName)
        }
    }

    struct OneName;

    impl Visitor<'_> for OneName {
        type Value = Name;

        fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("one of")?;
            RetryReason::SETTABLE.iter().try_for_each(|reason| write!(f, " \"{}\"", reason.name()))
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
            RetryReason::from_name(name)
                .map(Name)
                .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(name), &self))
        }
    }
}

/// One re-send, in thousandths.
const RESEND: u64 = 1000;

/// What may still be sent again.
///
/// The hot path only counts its calls; the count is turned into re-sends when somebody wants one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryBudget {
    millis: u64,
    calls: u64,
    paid_until: Instant,
}

impl RetryBudget {
    /// One second's reserve to begin with.
    pub fn new(policy: RetryPolicy, now: Instant) -> Self {
        let reserve = u64::from(policy.reserve_per_sec).min(u64::from(policy.burst));
        Self { millis: reserve * RESEND, calls: 0, paid_until: now }
    }

    /// Takes one re-send, if there is one. `calls` is how many calls the line has had in all.
    pub fn withdraw(&mut self, policy: RetryPolicy, calls: u64, now: Instant) -> bool {
        self.deposit(policy, calls, now);
        match self.millis.checked_sub(RESEND) {
            Some(rest) => {
                self.millis = rest;
                true
            }
            None => false,
        }
    }

    fn deposit(&mut self, policy: RetryPolicy, calls: u64, now: Instant) {
        let new_calls = calls.saturating_sub(self.calls);
        let by_calls = new_calls.saturating_mul(u64::from(policy.percent) * RESEND / 100);
        let elapsed = millis(now.since(self.paid_until));
        let by_time = elapsed.saturating_mul(u64::from(policy.reserve_per_sec));
        self.calls += new_calls;
        self.paid_until = self.paid_until + Duration::from_millis(elapsed);
        let most = u64::from(policy.burst) * RESEND;
        self.millis = self.millis.saturating_add(by_calls).saturating_add(by_time).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::RetryBudget;
    use crate::policy::RetryPolicy;
    use crate::time::Instant;
    use core::time::Duration;

    const START: Instant = Instant::ORIGIN;

    fn all(budget: &mut RetryBudget, policy: RetryPolicy, calls: u64, now: Instant) -> u32 {
        let mut taken = 0;
        while budget.withdraw(policy, calls, now) {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_tenth_of_the_calls_and_a_reserve() {
        let policy = RetryPolicy::default();
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, 0, START), 1, "the reserve of the first second");
        assert_eq!(all(&mut budget, policy, 9, START), 0);
        assert_eq!(all(&mut budget, policy, 10, START), 1);
        assert_eq!(all(&mut budget, policy, 60, START), 5);
        assert_eq!(all(&mut budget, policy, 60, START), 0, "a call pays in once");
        assert_eq!(all(&mut budget, policy, 59, START), 0, "a count that ran backwards pays nothing");
    }

    #[test]
    fn a_quiet_line_gets_one_a_second_however_often_it_asks() {
        let policy = RetryPolicy::default();
        let mut budget = RetryBudget::new(policy, START);
        let mut taken = 0;
        // Nine hundred microseconds at a time: the part of a millisecond must not get lost.
        for tick in 0..10_000 {
            let now = START + Duration::from_nanos(tick * 900_000);
            taken += u32::from(budget.withdraw(policy, 0, now));
        }
        assert_eq!(taken, 1 + 8, "the reserve to begin with, and one for each of 8.9991 s");
    }

    #[test]
    fn no_more_than_a_burst_is_saved_up() {
        let policy = RetryPolicy::default();
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, u64::MAX, START + Duration::from_secs(3600)), 10);
    }

    #[test]
    fn a_policy_of_nothing_allows_nothing() {
        let policy = RetryPolicy { percent: 0, reserve_per_sec: 0, ..RetryPolicy::default() };
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, 1000, START + Duration::from_secs(60)), 0);
        let policy = RetryPolicy { burst: 0, ..RetryPolicy::default() };
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, 1000, START + Duration::from_secs(60)), 0);
    }
}

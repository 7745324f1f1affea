//! The numbers and their defaults.

use core::time::Duration;

use crate::budget::{Account, TOKEN};

/// Declares a group of settings: its fields, each with a doc comment and its default. Times stand before everything else,
/// and are serialized as whole milliseconds.
macro_rules! settings {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$doc_of_time:meta])* $time:ident: Duration = $length:expr,)*
        $(; $($(#[$doc:meta])* $field:ident: $kind:ty = $default:expr,)*)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        pub struct $name {
            $(
                $(#[$doc_of_time])*
                #[cfg_attr(feature = "serde", serde(with = "crate::time::as_millis"))]
                pub $time: Duration,
            )*
            $($($(#[$doc])* pub $field: $kind,)*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($time: $length,)* $($($field: $default,)*)? }
            }
        }
    };
}

settings! {
    /// Everything about one server's line that a person may set.
    Settings {
        ;
        /// What the server keeps in its process.
        state: ServerState = ServerState::None,
        /// What a refused session says about the call that was refused (HTTP).
        session_refusal: SessionRefusal = SessionRefusal::Proof,
        /// Whether the user believes this server's tool annotations.
        trust_annotations: bool = false,
        /// Starting a generation.
        dial: DialPolicy = DialPolicy::default(),
        /// A call's time.
        call: CallPolicy = CallPolicy::default(),
        /// Looking for life.
        probe: ProbePolicy = ProbePolicy::default(),
        /// What failures cost and what service earns.
        budget: BudgetPolicy = BudgetPolicy::default(),
        /// The wait before a dial.
        backoff: BackoffPolicy = BackoffPolicy::default(),
        /// Life without a budget.
        park: ParkPolicy = ParkPolicy::default(),
        /// Ending a generation.
        close: ClosePolicy = ClosePolicy::default(),
        /// Sending calls of unknown outcome again.
        retry: RetryPolicy = RetryPolicy::default(),
        /// Sizes and counts.
        limits: Limits = Limits::default(),
    }
}

settings! {
    /// Starting a generation.
    DialPolicy {
        /// From the dial until the server's first byte: package runners download.
        start: Duration = Duration::from_secs(60),
        /// From the first byte to the end of the handshake.
        handshake: Duration = Duration::from_secs(30),
        /// How long a silent server is asked for its era before the other is tried on the same pipe.
        probe_wait: Duration = Duration::from_secs(2),
        /// The least time between two dials on a free path, so that it cannot spin.
        gap: Duration = Duration::from_millis(100),
    }
}

settings! {
    /// A call's time.
    CallPolicy {
        /// A call's deadline, extended by progress; where the agent owns the deadline, a quiet limit.
        limit: Duration = Duration::from_secs(300),
        /// What progress can extend a deadline to.
        cap: Duration = Duration::from_secs(600),
        /// With calls in flight and probes unanswered, silence for this long is a hang.
        hang_after: Duration = Duration::from_secs(1800),
        /// After the first give-up of a call that no older one is waited for with, silence for this long, to probes
        /// too, is a hang. Never shorter than the probes take.
        abandoned_after: Duration = Duration::from_secs(60),
        /// How long a call waits for a generation that is being dialled.
        wait_for_line: Duration = Duration::from_secs(5),
        /// HTTP: a refusal of the session that comes later than this after a request proves nothing about the call.
        refusal_within: Duration = Duration::from_secs(1),
    }
}

settings! {
    /// Looking for life.
    ProbePolicy {
        /// How long an idle line may be quiet before it is probed.
        keepalive: Duration = Duration::from_secs(30),
        /// How long a probe waits for any correlated reply.
        timeout: Duration = Duration::from_secs(5),
        ;
        /// How many unanswered probes in a row end an idle line.
        failures: u8 = 2,
    }
}

settings! {
    /// What failures cost and what service earns.
    BudgetPolicy {
        /// Time up that earns a token, in a generation that has answered a caller.
        uptime_per_token: Duration = Duration::from_secs(60),
        /// Time up that earns a token there.
        useful_uptime_per_token: Duration = Duration::from_secs(20),
        ;
        /// The most tokens a line can have. Every unplanned end takes one.
        tokens: u16 = 5,
        /// Milli-tokens earned per answered request of a caller.
        millis_per_answer: u32 = 100,
        /// A generation that answered this many callers was useful: its end is charged to the bucket of useful ones,
        /// unless its answers alone earned a token.
        useful_answers: u16 = 3,
        /// The most tokens in the bucket of useful generations.
        useful_tokens: u16 = 30,
    }
}

settings! {
    /// The wait before a dial: none for the first missing token, then doubling, with full jitter.
    BackoffPolicy {
        /// The longest wait for the second missing token.
        base: Duration = Duration::from_millis(100),
        /// The longest wait of all.
        cap: Duration = Duration::from_secs(30),
        /// After a useful generation, the longest wait for the second token missing from the bucket of those.
        useful_base: Duration = Duration::from_millis(50),
        /// After a useful generation, the longest wait of all.
        useful_cap: Duration = Duration::from_secs(1),
        /// The longest that a server's own Retry-After is believed.
        retry_after_cap: Duration = Duration::from_secs(30),
    }
}

settings! {
    /// Life without a budget: slow probes, and waking by use.
    ParkPolicy {
        /// The first probe of a parked line; doubles.
        probe: Duration = Duration::from_secs(30),
        /// The slowest probe; also that of a line which cannot work as configured or needs credentials.
        probe_cap: Duration = Duration::from_secs(300),
        /// How soon a call may wake a parked line; doubles with each wake that failed.
        wake: Duration = Duration::from_secs(5),
        /// The longest that use is kept from waking it.
        wake_cap: Duration = Duration::from_secs(60),
    }
}

settings! {
    /// Ending a generation.
    ClosePolicy {
        /// How long a planned end waits for calls in flight.
        drain: Duration = Duration::from_secs(30),
        /// After the seal, how long a verdict may wait for proof.
        settle: Duration = Duration::from_millis(30),
        /// After stdin was closed, how long until SIGTERM.
        stdin: Duration = Duration::from_secs(2),
        /// After SIGTERM, how long until SIGKILL.
        term: Duration = Duration::from_secs(2),
        /// After SIGKILL, how long until the tree is called stuck and killed again.
        kill: Duration = Duration::from_secs(5),
    }
}

settings! {
    /// Sending calls of unknown outcome again, where that is allowed at all.
    RetryPolicy {
        ;
        /// Re-sends earned per hundred calls.
        percent: u8 = 10,
        /// Re-sends earned per second whatever the traffic, so that a quiet line may retry too.
        reserve_per_sec: u8 = 1,
        /// The most re-sends that can be saved up.
        burst: u16 = 10,
        /// The most re-sends of one call of unknown outcome.
        per_call: u8 = 2,
    }
}

settings! {
    /// Sizes and counts.
    Limits {
        ;
        /// The longest message, in bytes.
        message: u32 = 16 * 1024 * 1024,
        /// The deepest nesting of a message.
        depth: u16 = 128,
        /// Calls in flight at once.
        in_flight: u16 = 128,
        /// Calls that wait their turn.
        queue: u16 = 256,
        /// How much of stderr is kept, in bytes.
        stderr: u32 = 64 * 1024,
    }
}

/// What a server keeps in its process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum ServerState {
    /// Nothing a caller would miss: a fresh process is as good as the old one.
    #[default]
    None,
    /// A browser, a login, a working directory: nothing may cross from one generation to the next unseen.
    Process,
}

/// What a refused session says about the call that was refused.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum SessionRefusal {
    /// A prompt refusal that a ping confirms proves that the call was not executed: it is sent again.
    #[default]
    Proof,
    /// It proves nothing: for servers that run a call, and deny its session right after.
    Unknown,
}

impl BudgetPolicy {
    pub(crate) const fn max_millis(&self, account: Account) -> u32 {
        match account {
            Account::Ends => self.tokens as u32 * TOKEN,
            Account::Useful => self.useful_tokens as u32 * TOKEN,
        }
    }

    pub(crate) const fn uptime_per_token(&self, account: Account) -> Duration {
        match account {
            Account::Ends => self.uptime_per_token,
            Account::Useful => self.useful_uptime_per_token,
        }
    }

    /// Which bucket pays for the end of a generation that answered so many callers. One whose answers earned a token
    /// has paid for itself.
    pub(crate) fn account(&self, answered: u64) -> Account {
        let earned = answered.saturating_mul(u64::from(self.millis_per_answer));
        if answered >= u64::from(self.useful_answers) && earned < u64::from(TOKEN) {
            Account::Useful
        } else {
            Account::Ends
        }
    }
}

impl BackoffPolicy {
    /// The wait for the second missing token of a bucket, and the longest.
    pub(crate) const fn steps(&self, account: Account) -> (Duration, Duration) {
        match account {
            Account::Ends => (self.base, self.cap),
            Account::Useful => (self.useful_base, self.useful_cap),
        }
    }
}

impl ClosePolicy {
    /// How long the whole ladder takes, if the server goes only at its end.
    pub const fn worst(&self) -> Duration {
        self.stdin.saturating_add(self.term).saturating_add(self.kill)
    }
}

impl ProbePolicy {
    /// How long it takes to find out that an idle line is dead, from the first probe on.
    pub(crate) const fn worst(&self) -> Duration {
        self.timeout.saturating_mul(self.failures as u32)
    }
}

//! The numbers and their defaults.

use core::time::Duration;

use crate::budget::{Account, TOKEN};
use crate::retry::RetryOn;

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
        #[non_exhaustive]
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
    /// All settings of one server: timeouts, retries, budgets and limits.
    Settings {
        ;
        /// What the server keeps in memory between two calls of an agent.
        state: ServerState = ServerState::Unknown,
        /// Which verdicts permit linetender to send a call again.
        retry_on: RetryOn = RetryOn::default(),
        /// Trust `readOnlyHint` and `idempotentHint` of this server's tools.
        trust_annotations: bool = false,
        /// Start and handshake timeouts.
        dial: DialPolicy = DialPolicy::default(),
        /// Call timeouts.
        call: CallPolicy = CallPolicy::default(),
        /// Health checks.
        probe: ProbePolicy = ProbePolicy::default(),
        /// Restart budget: what failures cost and what service earns back.
        budget: BudgetPolicy = BudgetPolicy::default(),
        /// Backoff between restarts.
        backoff: BackoffPolicy = BackoffPolicy::default(),
        /// Retry intervals after the budget is spent.
        park: ParkPolicy = ParkPolicy::default(),
        /// Shutdown timeouts.
        close: ClosePolicy = ClosePolicy::default(),
        /// Limits for retries of calls with unknown outcome.
        retry: RetryPolicy = RetryPolicy::default(),
        /// Size and concurrency limits.
        limits: Limits = Limits::default(),
    }
}

settings! {
    /// Start and handshake timeouts.
    DialPolicy {
        /// Start timeout: from the start until the server's first byte. Package runners may have to download first.
        start: Duration = Duration::from_secs(60),
        /// Handshake timeout: from the first byte to the end of the MCP handshake.
        handshake: Duration = Duration::from_secs(30),
        /// Protocol detection: how long to wait for `server/discover` before `initialize` is tried on the same pipe.
        probe_wait: Duration = Duration::from_secs(2),
        /// Minimum interval between two restarts that cost no budget, so that they cannot spin.
        gap: Duration = Duration::from_millis(100),
    }
}

settings! {
    /// Call timeouts.
    CallPolicy {
        /// Call timeout, extended by progress; where the agent sets the deadline, idle time before a health check.
        limit: Duration = Duration::from_secs(300),
        /// Maximum call timeout that progress can extend to.
        cap: Duration = Duration::from_secs(600),
        /// With calls in flight and health checks unanswered, silence for this long is a hang.
        hang_after: Duration = Duration::from_secs(1800),
        /// After a caller gave up on the oldest pending call, silence for this long (health checks unanswered too) is
        /// a hang. Never shorter than the health checks take.
        abandoned_after: Duration = Duration::from_secs(60),
        /// How long a call waits for a server that is starting or restarting.
        wait_for_line: Duration = Duration::from_secs(5),
        /// How long the time of a call stands still at most while the agent answers questions of the server.
        question_cap: Duration = Duration::from_secs(3600),
        /// HTTP: a call whose session was rejected later than this may have been executed.
        refusal_within: Duration = Duration::from_secs(1),
    }
}

settings! {
    /// Health checks.
    ProbePolicy {
        /// Keepalive interval: idle time before a health check.
        keepalive: Duration = Duration::from_secs(30),
        /// Timeout of one health check.
        timeout: Duration = Duration::from_secs(5),
        ;
        /// Consecutive failed health checks after which an idle connection is closed.
        failures: u8 = 2,
        /// HTTP: send health checks to an idle server too. To a server that another party runs they are use: it may be billed for
        /// them, or never scale to zero.
        over_http: bool = false,
    }
}

settings! {
    /// Restart budget: what failures cost and what service earns back.
    BudgetPolicy {
        /// Uptime that earns one token, once a request has been answered.
        uptime_per_token: Duration = Duration::from_secs(60),
        /// Uptime that earns one token in that bucket.
        useful_uptime_per_token: Duration = Duration::from_secs(20),
        ;
        /// Size of the budget. Every unplanned end of a connection takes one token.
        tokens: u16 = 5,
        /// Milli-tokens earned per answered request.
        millis_per_answer: u32 = 100,
        /// A connection that answered this many requests was useful: its end is charged to a second bucket, unless its
        /// answers alone earned a token.
        useful_answers: u16 = 3,
        /// Size of the bucket for useful connections.
        useful_tokens: u16 = 30,
    }
}

settings! {
    /// Backoff between restarts: none for the first missing token, then doubling, with full jitter.
    BackoffPolicy {
        /// Upper bound of the first backoff (second missing token).
        base: Duration = Duration::from_millis(100),
        /// Maximum backoff.
        cap: Duration = Duration::from_secs(30),
        /// Upper bound of the first backoff after a useful connection.
        useful_base: Duration = Duration::from_millis(50),
        /// Maximum backoff after a useful connection.
        useful_cap: Duration = Duration::from_secs(1),
        /// Maximum Retry-After that is honoured.
        retry_after_cap: Duration = Duration::from_secs(30),
    }
}

settings! {
    /// Retry intervals after the budget is spent (parked).
    ParkPolicy {
        /// First automatic retry interval of a parked server; doubles.
        probe: Duration = Duration::from_secs(30),
        /// Maximum automatic retry interval; also used after configuration errors and for missing credentials. A server
        /// with a command that has never answered is started after 2, 6, 18, 30 … times this.
        probe_cap: Duration = Duration::from_secs(300),
        /// Minimum interval between retries triggered by calls; doubles with each failure. A server with a command that has
        /// never answered is first started again after twice this.
        wake: Duration = Duration::from_secs(5),
        /// Maximum interval between retries triggered by calls, and the only one for a server with a command that has never
        /// answered.
        wake_cap: Duration = Duration::from_secs(60),
    }
}

settings! {
    /// Shutdown timeouts.
    ClosePolicy {
        /// Drain timeout: how long a planned shutdown waits for calls in flight.
        drain: Duration = Duration::from_secs(30),
        /// After a connection ended, how long to count which calls were not executed.
        settle: Duration = Duration::from_millis(30),
        /// From closing stdin to SIGTERM.
        stdin: Duration = Duration::from_secs(2),
        /// Close timeout: from SIGTERM to SIGKILL. After a signal that linetender passes on, this much longer than `stdin`.
        term: Duration = Duration::from_secs(2),
        /// Crash grace: for what a server leaves behind, from SIGTERM to SIGKILL.
        crash: Duration = Duration::from_secs(3),
        /// From SIGKILL until the process tree is reported as stuck and killed again.
        kill: Duration = Duration::from_secs(5),
        ;
        /// What ends with the server's process.
        tree: Tree = Tree::All,
    }
}

settings! {
    /// Limits for retries of calls with unknown outcome, where retries are allowed at all.
    RetryPolicy {
        ;
        /// Retries earned per hundred calls.
        percent: u8 = 10,
        /// Retries earned per second regardless of traffic.
        reserve_per_sec: u8 = 1,
        /// Maximum number of retries saved up.
        burst: u16 = 10,
        /// Maximum number of retries of one call with unknown outcome.
        per_call: u8 = 2,
    }
}

settings! {
    /// Size and concurrency limits.
    Limits {
        ;
        /// Maximum message size, in bytes.
        message: u32 = 16 * 1024 * 1024,
        /// Maximum nesting depth of a message.
        depth: u16 = 128,
        /// Maximum number of concurrent calls.
        in_flight: u16 = 128,
        /// Maximum number of queued calls.
        queue: u16 = 256,
        /// Bytes of stderr to keep.
        stderr: u32 = 64 * 1024,
    }
}

/// What a server keeps in memory between two calls of an agent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum ServerState {
    /// Nothing: a new process or session is as good as the old one.
    #[default]
    None,
    /// Perhaps something. After a restart, the agent's next call is refused with a notice, unless its tool is declared
    /// read-only or is one of `safe_tools`.
    Unknown,
    /// A browser, a login, a working directory. After a restart, the agent's next call is refused with a notice, and no
    /// call is sent again.
    Process,
}

/// What ends with a server's process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Tree {
    /// What is the server's. A process that left its tree on purpose while it lived (a tmux server, gpg-agent, a dev server that was
    /// started with `nohup setsid`) lives on. On Linux; elsewhere this is [`All`](Self::All).
    Server,
    /// Everything that it started.
    #[default]
    All,
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
        let ladder = self.stdin.saturating_add(self.term);
        ladder.saturating_add(self.crash).saturating_add(self.kill)
    }
}

impl ProbePolicy {
    /// How long it takes to find out that an idle line is dead, from the first probe on.
    pub(crate) const fn worst(&self) -> Duration {
        self.timeout.saturating_mul(self.failures as u32)
    }
}

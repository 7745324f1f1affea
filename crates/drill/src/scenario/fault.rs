//! What can happen to a server, to what lies between, or to the target itself.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A fault. `refuse` and `silence` end when every call under way has been told.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "does")]
pub enum Fault {
    /// Nothing more: a call of the load is the fault.
    #[default]
    None,
    /// SIGKILL to the process that was started.
    Kill,
    /// SIGKILL to the last process below it: for `npx` that is the server itself.
    KillLast,
    /// SIGSTOP to all of its processes; SIGCONT after so long, or never.
    Stop {
        /// In milliseconds.
        #[serde(default)]
        for_ms: Option<u64>,
    },
    /// SIGKILL to our own reaper.
    KillReaper,
    /// SIGKILL to the target, which is then started again by whoever supervises it.
    KillTarget,
    /// SIGTERM to the target, which is then started again.
    TermTarget,
    /// The server stops, and listens on the same port again.
    Restart,
    /// The same, and it speaks the other era from then on.
    Flip,
    /// The server forgets every session.
    ForgetSessions,
    /// Nobody listens.
    Refuse,
    /// Connections stay open, and nothing is read or written.
    Silence,
    /// Every connection is reset.
    Reset,
    /// The next so many calls meet this tool of the web server instead of an answer.
    Meet {
        /// Which tool.
        tool: String,
        /// Its arguments.
        #[serde(default)]
        args: Map<String, Value>,
        /// How many calls.
        times: u32,
    },
    /// What was broken at the start is mended.
    Mend,
    /// The agent takes back every call that is under way.
    TakeBack,
    /// So many callers ask for a new generation at once, so often, with a call that is answered between.
    Redial {
        /// How many.
        callers: u32,
        /// How often.
        #[serde(default = "once")]
        times: u32,
    },
    /// The server's list has another tool after its next start, and it is killed.
    ChangeAndKill,
}

fn once() -> u32 {
    1
}

impl Fault {
    /// Whether the target itself ends by it.
    pub(crate) const fn ends_target(&self) -> bool {
        matches!(self, Self::KillTarget | Self::TermTarget)
    }
}

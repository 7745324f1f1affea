//! One line of the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::holder::Verdicts;
use linetender::{Exit, LeftBehind, Plan, Why};
use linetender_wire::wall::{rfc3339, wall_clock};
use linetender_wire::{hide, visible};

/// Version of the entry format. Readers skip newer entries.
pub const VERSION: u32 = 1;

/// Maximum length of a line, newline included: short enough for an atomic append.
pub const LONGEST_LINE: usize = 16 * 1024;

/// What a line that is too long keeps of the text of its cause, or of a command.
const SHORTENED: usize = 1024;

/// One journal entry.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Entry {
    /// [`VERSION`].
    pub v: u32,
    /// Wall-clock time: RFC 3339, milliseconds, UTC.
    pub at: String,
    /// Process id of linetender.
    pub holder: u32,
    /// How agents connect: `run` or `serve`.
    pub door: String,
    /// The event.
    #[serde(flatten)]
    pub what: What,
}

/// A journal event.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum What {
    /// linetender started.
    Begin {
        /// Version of linetender.
        version: String,
        /// Command line, redacted.
        argv: String,
    },
    /// A line changed its state.
    State {
        /// Server name.
        server: String,
        /// Number of the newest generation (connection attempt).
        generation: u64,
        /// New state.
        state: String,
        /// Cause of the last end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Reason>,
        /// Restart budget left, in milli-tokens.
        budget_millis: u32,
        /// Budget left for connections that had served requests, in milli-tokens; absent if full.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        useful_millis: Option<u32>,
        /// What the end cost, in the state `ending`; absent if nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charge: Option<Charge>,
        /// Next automatic retry, relative to `at`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_try: Option<String>,
        /// Requests that ended since the last entry of this line, by verdict; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        calls: Option<Verdicts>,
    },
    /// linetender ended a process that a server had left behind.
    Ended {
        /// Server name.
        server: String,
        /// Its number.
        pid: i32,
        /// Name of its program.
        name: String,
    },
    /// A process left a server's tree on purpose, and outlives the server.
    Left {
        /// Server name.
        server: String,
        /// The process.
        #[serde(flatten)]
        process: LeftProcess,
    },
    /// A container of a server may still run.
    Container {
        /// Server name.
        server: String,
        /// The beginning of its id.
        container: String,
        /// Why it could not be ended. Absent for one that an earlier start left behind, and that was ended before the next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// linetender sent a request again by itself.
    Retry {
        /// Server name.
        server: String,
        /// Method.
        method: String,
        /// The tool, if it called one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// What permitted it: `not-executed`, `session-lost`, …
        reason: String,
        /// The generation of the earlier attempt.
        from: u64,
        /// The generation of this attempt.
        to: u64,
        /// Number of this attempt; the first re-send is 2.
        attempt: u32,
    },
    /// The last line of an audit that is on disk, each minute if there is a new one, and at the end.
    AuditHead {
        /// The audit's file.
        file: String,
        /// Number of the line.
        seq: u64,
        /// SHA-256 of the line.
        hash: String,
        /// When it was on disk.
        synced: String,
    },
    /// Entries are missing here.
    Gap {
        /// Number of missing entries.
        entries: u64,
        /// Reason.
        why: String,
    },
    /// linetender ended. Missing after SIGKILL.
    End {
        /// Reason.
        why: String,
    },
}

/// A process that outlives its server.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct LeftProcess {
    /// Its number.
    pub pid: i32,
    /// Name of its program.
    pub name: String,
    /// Its memory when it was named, in bytes.
    pub memory: u64,
    /// The command that ends it.
    pub command: String,
}

impl From<&LeftBehind> for LeftProcess {
    fn from(left: &LeftBehind) -> Self {
        let (name, command) = (visible::line(&left.name).into_owned(), left.command());
        Self { pid: left.pid, name, memory: left.memory, command }
    }
}

/// Cause of an end.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Reason {
    /// Headline.
    pub text: String,
    /// Kinds of causes: `exit`, `recycle`, …
    #[serde(default)]
    pub leaves: Vec<String>,
    /// The last lines of stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// The word for what was seen: `exited`, `connection-refused`, `hung`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Exit status of the server process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// The signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The HTTP status that was the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    /// The client program that ran the server somewhere else (`ssh`, `kubectl`), if what it started may outlive it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_side: Option<String>,
}

/// What an end was charged.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Charge {
    /// Whether a restart was left to pay with. If none was, the server was parked.
    pub paid: bool,
    /// Whether it is the larger budget, of connections that had served requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub useful: bool,
    /// What is left of that budget, in milli-tokens.
    pub left_millis: u32,
    /// Size of that budget, in milli-tokens.
    pub most_millis: u32,
}

impl Reason {
    /// Whether all of it was wanted.
    pub fn planned(&self) -> bool {
        let planned = |leaf: &String| Plan::ALL.iter().any(|plan| plan.name() == leaf);
        !self.leaves.is_empty() && self.leaves.iter().all(planned)
    }

    /// Whether an operator parked the server.
    pub fn parked_by_operator(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf == Plan::Park.name())
    }
}

impl From<&Why> for Reason {
    fn from(why: &Why) -> Self {
        let leaves = why.leaves.iter().map(|leaf| leaf.name().to_owned()).collect();
        let stderr = why.stderr.as_deref().map(|text| visible::block(&hide(text)).into_owned());
        let (status, signal) = match why.exit {
            Some(Exit::Status(status)) => (Some(status), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        Self {
            text: visible::line(&hide(&why.text)).into_owned(),
            leaves,
            stderr,
            seen: Some(why.seen.to_owned()),
            status,
            signal,
            http: why.http,
            far_side: None,
        }
    }
}

impl Entry {
    /// An entry with the current time.
    pub fn now(holder: u32, door: &str, what: What) -> Self {
        Self { v: VERSION, at: rfc3339(wall_clock()), holder, door: door.to_owned(), what }
    }

    /// The entry as a line, with its line break, no longer than [`LONGEST_LINE`]: stderr is cut first.
    pub fn line(&self) -> String {
        let whole = self.json();
        let over = whole.len().saturating_sub(LONGEST_LINE);
        if over == 0 {
            return whole;
        }
        let mut short = self.clone();
        short.cut_stderr(over);
        if short.json().len() > LONGEST_LINE {
            short.shorten();
        }
        short.json()
    }

    fn json(&self) -> String {
        // It has text and numbers only: nothing in it cannot be spelt.
        let line = serde_json::to_string(self).unwrap_or_default();
        // Whoever looks at the file with another tool than ours is shown no escapes either.
        format!("{}\n", visible::json(&line))
    }

    /// Takes `over` bytes away from the beginning of stderr: its end says most.
    fn cut_stderr(&mut self, over: usize) {
        if let What::State { cause: Some(Reason { stderr, .. }), .. } = &mut self.what {
            *stderr = stderr.take().and_then(|text| {
                // A byte of text takes one byte at least when it is spelt.
                let cut = over + '…'.len_utf8();
                let from = text.char_indices().map(|(at, _)| at).find(|at| *at >= cut)?;
                Some(format!("…{}", &text[from..]))
            });
        }
    }

    /// Shortens everything that others could make long.
    fn shorten(&mut self) {
        match &mut self.what {
            What::Begin { argv, .. } => shorten(argv),
            What::State { server, cause, .. } => {
                shorten(server);
                if let Some(Reason { text, stderr, .. }) = cause {
                    shorten(text);
                    *stderr = None;
                }
            }
            What::Retry { server, method, tool, .. } => {
                shorten(server);
                shorten(method);
                if let Some(tool) = tool {
                    shorten(tool);
                }
            }
            What::Ended { server, .. } | What::Left { server, .. } | What::Container { server, .. } => {
                shorten(server);
            }
            What::AuditHead { file, .. } => shorten(file),
            What::Gap { why, .. } | What::End { why } => shorten(why),
        }
    }
}

fn shorten(text: &mut String) {
    if text.len() > SHORTENED {
        let cut = (0..=SHORTENED).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, LONGEST_LINE, Reason, What};

    fn entry(text: &str, stderr: Option<String>) -> Entry {
        let leaves = vec!["exit".into()];
        let seen = Some("exited".into());
        let cause = Reason {
            text: text.into(),
            leaves,
            stderr,
            seen,
            status: None,
            signal: Some(9),
            http: None,
            far_side: None,
        };
        let (server, state) = ("s".into(), "ending".into());
        let what = What::State {
            server,
            generation: 3,
            state,
            cause: Some(cause),
            budget_millis: 4000,
            useful_millis: None,
            charge: None,
            next_try: Some("in 90 ms".into()),
            calls: None,
        };
        Entry::now(7, "run", what)
    }

    fn reason(line: &str) -> Reason {
        match serde_json::from_str::<Entry>(line).unwrap().what {
            What::State { cause: Some(reason), .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_entry_is_one_line_and_reads_as_it_was_written() {
        let entry = entry("killed by SIGKILL", Some("one\ntwo".into()));
        let line = entry.line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
    }

    #[test]
    fn a_long_entry_loses_the_beginning_of_stderr_first() {
        // Each of these takes twice its length when it is spelt.
        let stderr = "\"é\n".repeat(LONGEST_LINE / 3) + "the last word";
        let line = entry("killed by SIGKILL", Some(stderr)).line();
        assert!(line.len() <= LONGEST_LINE, "{}", line.len());
        let reason = reason(&line);
        assert_eq!(reason.text, "killed by SIGKILL");
        assert!(reason.stderr.is_none_or(|rest| rest.ends_with("the last word")));
    }

    #[test]
    fn stderr_that_is_only_a_little_too_long_keeps_its_end() {
        let line = entry("gone", Some("x".repeat(LONGEST_LINE) + "the last word")).line();
        assert!(line.len() <= LONGEST_LINE && line.len() > LONGEST_LINE - 64, "{}", line.len());
        assert!(reason(&line).stderr.unwrap().ends_with("xthe last word"));
    }

    #[test]
    fn no_text_makes_a_line_too_long() {
        let line = entry(&"\u{7}".repeat(LONGEST_LINE), None).line();
        assert!(line.len() <= LONGEST_LINE, "{}", line.len());
        let argv = "y".repeat(LONGEST_LINE);
        let line = Entry::now(7, "run", What::Begin { version: "1".into(), argv }).line();
        assert!(line.len() <= LONGEST_LINE, "{}", line.len());
    }
}

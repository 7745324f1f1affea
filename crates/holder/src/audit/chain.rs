//! How lines hang together: each has a number and the SHA-256 of the line before it, line break included.
//!
//! So whoever changes, removes or moves a line has to write every later line anew, and then their hashes differ from what
//! somebody else has kept of them: see [`Head`](super::Head).

use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use linetender_wire::visible;
use linetender_wire::wall::{rfc3339, wall_clock};

/// Version of the format of lines.
pub const VERSION: u32 = 1;

/// Maximum length of a line, line break included.
pub const LONGEST_LINE: usize = 64 * 1024;

/// What stands for the hash of the line before the first one.
const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The most bytes of a reason.
const REASON: usize = 1024;

/// Where a chain stands: the number and the hash of its last line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Tip {
    pub(super) seq: u64,
    pub(super) hash: String,
}

impl Tip {
    /// Of a chain that has no line yet.
    pub(super) fn before_all() -> Self {
        Self { seq: 0, hash: NOTHING.to_owned() }
    }

    /// Adds a line with these members to a text.
    pub(super) fn add(&mut self, body: &Body, text: &mut String) {
        let begin = text.len();
        let seq = self.seq.saturating_add(1);
        let _ = writeln!(text, "{{\"v\":{VERSION},\"seq\":{seq},\"prev\":\"{}\",{}", self.hash, body.0);
        *self = Self { seq, hash: sha256(&text.as_bytes()[begin..]) };
    }
}

/// The members of a line behind those that make it part of the chain, up to its closing brace.
#[derive(Clone, Debug)]
pub(super) struct Body(String);

impl Body {
    pub(super) fn of(members: &impl Serialize) -> Self {
        // They are text, numbers and checked JSON: nothing in them cannot be spelt.
        let json = serde_json::to_string(members).unwrap_or_default();
        // Whoever looks at the file with another tool than ours is shown no escapes either.
        let json = visible::json(&json);
        Self(json.strip_prefix('{').unwrap_or(&json).to_owned())
    }

    /// What linetender itself has to say.
    pub(super) fn own(what: &Own) -> Self {
        #[derive(Serialize)]
        struct Line<'a> {
            at: String,
            #[serde(flatten)]
            what: &'a Own,
        }
        Self::of(&Line { at: rfc3339(wall_clock()), what })
    }

    pub(super) fn gap(missed: u64, why: &str) -> Self {
        Self::own(&Own::Gap { missed, why: visible::first_bytes(why, REASON).to_owned() })
    }
}

/// Lines that are no calls.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(super) enum Own {
    /// A file begins. Its `prev` is the hash of the last line of the file before it.
    File { linetender: &'static str },
    /// A process writes from here on. The numbers of calls are its own.
    Open { pid: u32 },
    /// Calls have no line here.
    Gap { missed: u64, why: String },
    /// Before this line stands the beginning of one that a crash or a full disk has torn.
    Torn { bytes: u64, sha256: String },
}

/// What makes a line part of a chain, read back.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Link {
    pub(super) v: u32,
    pub(super) seq: u64,
    pub(super) prev: String,
    pub(super) what: String,
    /// Of a gap.
    #[serde(default)]
    pub(super) missed: u64,
    /// Of a torn line.
    #[serde(default)]
    pub(super) bytes: u64,
    /// Of a torn line.
    #[serde(default)]
    pub(super) sha256: String,
}

impl Link {
    /// A line, with or without its line break.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// Whether it comes next.
    pub(super) fn follows(&self, tip: &Tip) -> bool {
        tip.seq.checked_add(1) == Some(self.seq) && self.prev == tip.hash
    }
}

/// The SHA-256 of these bytes, in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(bytes);
    finished(hash)
}

/// The hash of what it was given, in hexadecimal digits.
pub(super) fn finished(hash: Context) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let hash = hash.finish();
    let digits = hash.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

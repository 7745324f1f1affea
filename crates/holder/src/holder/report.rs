//! What a holder says of itself: one JSON document with a version, so that it can grow.

use serde::{Deserialize, Serialize};

use super::Inner;
use crate::journal::Reason;
use linetender_wire::wall::rfc3339;

/// The version of the document. It changes when something that was there means something else; what is new does not
/// change it, and a reader passes over it.
pub const REPORT_VERSION: u32 = 1;

/// Where all lines of a holder stand.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// Who says so.
    pub holder: About,
    /// Its lines.
    pub lines: Vec<LineReport>,
}

/// A holder.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct About {
    /// Its process.
    pub pid: u32,
    /// By which door agents come to it: `run`, `serve`.
    pub door: String,
    /// Its version.
    pub version: String,
    /// The one server that it is to hold, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<String>,
    /// When it began: RFC 3339.
    pub began: String,
    /// How long ago that was.
    pub began_millis: u64,
}

/// A line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LineReport {
    /// Its server's name.
    pub server: String,
    /// The state's name.
    pub state: String,
    /// Its newest generation.
    pub generation: u64,
    /// Since when it stands there: RFC 3339.
    pub since: String,
    /// How long ago that was.
    pub since_millis: u64,
    /// Why a generation of it last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Reason>,
    /// When that was: RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// How long ago that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_millis: Option<u64>,
    /// What is left of its budget, in thousandths of a token.
    pub budget_millis: u32,
    /// The most that it can be.
    pub budget_most_millis: u32,
    /// The same for the ends of generations that had served their callers.
    #[serde(default)]
    pub useful_millis: u32,
    /// The most that it can be.
    #[serde(default)]
    pub useful_most_millis: u32,
    /// When it is tried next; nothing while it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<String>,
    /// What is wrong with a server that is up, in words: nothing heard from it, or no call answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// The server's process, if it is one of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
}

impl About {
    pub(super) fn of(holder: &Inner) -> Self {
        Self {
            pid: std::process::id(),
            door: holder.door.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            serves: holder.serves.clone(),
            began: rfc3339(holder.began.0),
            began_millis: u64::try_from(holder.began.1.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

//! Each agent's configuration, wrapped and put back, in memory.

use super::entry::{self, Entry};
use super::error::Syntax;
use super::judge::{Decision, judge};
use super::plan::{self, Choice, Format, Plan};
use super::program::Start;
use super::undo::{Undone, undo};

mod agents;
mod any;
mod changed;
mod flags;
mod sign_in;

/// A configuration, wrapped whole.
fn plan(format: Format, text: &str) -> Result<Plan, Syntax> {
    plan_by("linetender", format, text)
}

fn plan_by(start: impl Into<Start>, format: Format, text: &str) -> Result<Plan, Syntax> {
    let root = format.parse(text)?;
    let entries = entry::find(&root).unwrap_or_default();
    let start = start.into();
    let every = |_: &Entry<'_>| Choice::Wrap(start.clone());
    Ok(plan::wrap(text, &entries, every))
}

/// The same, started by a program of this name, or in this way.
fn wrapped_by(start: impl Into<Start>, format: Format, text: &str) -> String {
    plan_by(start, format, text).unwrap().apply(text)
}

fn wrapped(format: Format, text: &str) -> String {
    plan(format, text).unwrap().apply(text)
}

fn undone(format: Format, text: &str, backup: Option<&str>) -> Undone {
    let root = format.parse(text).unwrap();
    undo(format, text, &entry::find(&root).unwrap_or_default(), backup, |_| true)
}

/// How many entries are wrapped.
fn count(format: Format, text: &str) -> usize {
    let root = format.parse(text).unwrap();
    let entries = entry::find(&root).unwrap_or_default();
    entries.iter().filter(|entry| matches!(judge(entry), Decision::Wrapped(_))).count()
}

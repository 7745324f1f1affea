//! What a sweep reached, and, more to the point, what it did not.
//!
//! The tender says which input met which state; a subscriber here counts that. Verdicts, causes and states come from
//! what callers and people are told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use linetender::CallError;
use linetender_core::{Class, Delivery, Doubt, Evidence, Plan, ServerRefusal};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The states of a line.
const STATES: [&str; 10] =
    ["idle", "dialing", "up", "suspect", "draining", "ending", "waiting", "parked", "needs-auth", "closed"];

/// What can happen to one.
const INPUTS: [&str; 18] = [
    "started",
    "first-byte",
    "dialled",
    "lost",
    "trouble",
    "overdue",
    "probe-answered",
    "probe-failed",
    "probe-unsent",
    "drained",
    "no-reader",
    "gone",
    "open",
    "redial-if",
    "redial",
    "close",
    "knock",
    "timeout",
];

/// How often each thing was seen, by its group.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Coverage(BTreeMap<(&'static str, String), u64>);

impl Coverage {
    pub(crate) fn count(&mut self, group: &'static str, what: impl Into<String>) {
        *self.0.entry((group, what.into())).or_default() += 1;
    }

    pub(crate) fn verdict(&mut self, error: &CallError) {
        self.count("verdict", verdict(error.delivery));
        self.count("error", error.kind.to_string());
    }

    /// Adds what another world reached.
    pub fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            *self.0.entry(what.clone()).or_default() += times;
        }
    }

    /// How often something was seen.
    pub fn times(&self, group: &'static str, what: &str) -> u64 {
        self.0.get(&(group, what.to_owned())).copied().unwrap_or(0)
    }

    /// What there is and was never reached.
    pub fn never(&self) -> Vec<(&'static str, String)> {
        let reached: BTreeSet<_> = self.0.keys().cloned().collect();
        all().into_iter().filter(|what| !reached.contains(what)).collect()
    }
}

fn verdict(delivery: Delivery) -> String {
    match delivery {
        Delivery::NotExecuted(evidence) => format!("not executed: {evidence:?}"),
        Delivery::Refused(refusal) => format!("refused: {refusal:?}"),
        Delivery::Unknown(doubt) => format!("unknown: {doubt:?}"),
        Delivery::Answered => "answered".to_owned(),
    }
}

/// Everything that a sweep could reach, as far as anybody knows.
fn all() -> Vec<(&'static str, String)> {
    let doubts = [Doubt::Deadline, Doubt::Cancelled, Doubt::Lost].map(Delivery::Unknown);
    let evidence = Evidence::ALL.map(Delivery::NotExecuted).into_iter();
    let refusals = ServerRefusal::ALL.map(Delivery::Refused);
    let verdicts = evidence.chain(refusals).chain(doubts).chain([Delivery::Answered]);
    let causes = Class::ALL.map(Class::name).into_iter().chain(Plan::ALL.map(Plan::name));
    let cells = STATES.iter().flat_map(|state| INPUTS.iter().map(move |input| format!("{state} × {input}")));
    let cells = cells.map(|cell| ("cell", cell));
    let states = STATES.iter().map(|state| ("state", (*state).to_owned()));
    states
        .chain(verdicts.map(|delivery| ("verdict", verdict(delivery))))
        .chain(causes.map(|cause| ("cause", cause.to_owned())))
        .chain(cells)
        .collect()
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for ((group, what), times) in &self.0 {
            if *group != last {
                writeln!(f, "{group}:")?;
                last = group;
            }
            writeln!(f, "  {times:>9}  {what}")?;
        }
        writeln!(f, "never reached:")?;
        let mut by_group: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (group, what) in self.never() {
            by_group.entry(group).or_default().push(what);
        }
        for (group, never) in by_group {
            writeln!(f, "  {group}: {}", never.join(", "))?;
        }
        Ok(())
    }
}

/// Counts the cells that the tender tells of.
#[derive(Clone, Default)]
pub(crate) struct Cells(pub(crate) Arc<Mutex<Coverage>>);

#[derive(Default)]
struct Cell {
    state: String,
    input: String,
}

impl Visit for Cell {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "state" => value.clone_into(&mut self.state),
            "input" => value.clone_into(&mut self.input),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Subscriber for Cells {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "linetender::cell"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut cell = Cell::default();
        event.record(&mut cell);
        let what = format!("{} × {}", cell.state, cell.input);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count("cell", what);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

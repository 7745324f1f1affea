//! What the measurements of several endpoints come to, beside each other.

use std::fmt;

use serde_json::{Value, json};

use super::Load;
use super::endpoint::Measured;
use crate::figures::{interval, median};

/// Rounds in which each endpoint had its turn. The first endpoint is what the others add to, the last what is held against them.
#[derive(Debug)]
pub struct Table {
    load: Load,
    names: Vec<String>,
    rounds: Vec<Vec<Measured>>,
}

/// One endpoint's figures; times in microseconds. Everything that compares was compared in each round, and is the median of that.
#[derive(Debug)]
pub struct Row {
    /// The endpoint.
    pub name: String,
    /// The median of the rounds' medians, and of their 99th percentiles.
    pub p50: f64,
    /// See above.
    pub p99: f64,
    /// Calls in a second.
    pub rate: f64,
    /// What it adds to the first endpoint's median.
    pub adds: Spread,
    /// That, beside what the second one adds: mostly the least that is possible.
    pub adds_to_second: Option<Spread>,
    /// The last endpoint's median beside this one's.
    pub last_to_this: Spread,
    /// What its process needed of the processor for one call.
    pub processor: Option<f64>,
}

/// A median, and the 95 % interval of it.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// Where the interval begins and ends.
    pub between: (f64, f64),
}

impl Table {
    pub(super) fn new(load: Load, names: Vec<String>) -> Self {
        Self { load, names, rounds: Vec::new() }
    }

    pub(super) fn push(&mut self, round: Vec<Measured>) {
        self.rounds.push(round);
    }

    /// The head of the Markdown table that its lines are lines of.
    pub fn head(endpoints: &[String]) -> String {
        let name = |endpoint: Option<&String>| {
            let name =
                endpoint.map_or("", |endpoint| endpoint.split(['=', ':', '@']).next().unwrap_or_default());
            name.to_owned()
        };
        let (first, second, last) = (name(endpoints.first()), name(endpoints.get(1)), name(endpoints.last()));
        format!(
            "| bytes | in flight | endpoint | p50 µs | p99 µs | calls/s | adds to {first} µs | adds, to what {second} adds | {last} to it, p50 | processor µs |\n|---|---|---|---|---|---|---|---|---|---|"
        )
    }

    /// The endpoints, in order.
    pub fn rows(&self) -> Vec<Row> {
        let last = self.names.len() - 1;
        let added = |round: &[Measured], at: usize| round[at].p50 - round[0].p50;
        let row = |(at, name): (usize, &String)| Row {
            name: name.clone(),
            p50: median(&self.each(|round| round[at].p50)),
            p99: median(&self.each(|round| round[at].p99)),
            rate: median(&self.each(|round| round[at].rate)),
            adds: self.spread(|round| added(round, at)),
            adds_to_second: (at > 1).then(|| self.spread(|round| added(round, at) / added(round, 1))),
            last_to_this: self.spread(|round| round[last].p50 / round[at].p50),
            processor: self
                .rounds
                .first()
                .and_then(|round| round[at].processor)
                .map(|_| median(&self.each(|round| round[at].processor.unwrap_or_default()))),
        };
        self.names.iter().enumerate().map(row).collect()
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let Load { bytes, in_flight, calls } = self.load;
        let endpoints: Vec<_> = self.rows().iter().map(Row::to_json).collect();
        json!({
            "bytes": bytes, "in_flight": in_flight, "calls": calls, "rounds": self.rounds.len(), "endpoints": endpoints,
        })
    }

    /// A figure of every round.
    fn each(&self, figure: impl Fn(&[Measured]) -> f64) -> Vec<f64> {
        self.rounds.iter().map(|round| figure(round)).collect()
    }

    fn spread(&self, figure: impl Fn(&[Measured]) -> f64) -> Spread {
        let values = self.each(figure);
        Spread { median: median(&values), between: interval(&values) }
    }
}

impl Row {
    fn to_json(&self) -> Value {
        json!({
            "endpoint": self.name,
            "p50_us": self.p50,
            "p99_us": self.p99,
            "calls_per_second": self.rate,
            "adds_us": self.adds.to_json(),
            "adds_to_second": self.adds_to_second.map(Spread::to_json),
            "last_to_this": self.last_to_this.to_json(),
            "processor_us": self.processor,
        })
    }
}

impl Spread {
    fn to_json(self) -> Value {
        json!({ "median": self.median, "low": self.between.0, "high": self.between.1 })
    }
}

/// As lines of a Markdown table.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { bytes, in_flight, .. } = self.load;
        for row in self.rows() {
            let adds = format!("{:.1}", row.adds);
            let share = row.adds_to_second.map_or_else(String::new, |share| format!("{share:.2}"));
            let processor = row.processor.map_or_else(String::new, |micros| format!("{micros:.1}"));
            writeln!(
                f,
                "| {bytes} | {in_flight} | {} | {:.1} | {:.1} | {:.0} | {adds} | {share} | {:.2} | {processor} |",
                row.name, row.p50, row.p99, row.rate, row.last_to_this,
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision().unwrap_or(1);
        let (low, high) = self.between;
        write!(f, "{:.places$} ({low:.places$} … {high:.places$})", self.median)
    }
}

//! The slowest requests of late.

use std::sync::Arc;
use std::time::Duration;

use linetender::{Outcome, UnderWay, Verdict};
use tokio::time::Instant;

/// How many are kept.
const KEPT: usize = 16;

/// After this long another may take its place.
const OLD: Duration = Duration::from_secs(15 * 60);

/// The most of a tool's or a method's name that is kept.
const NAME: usize = 128;

/// A request that took long.
#[derive(Clone, Debug)]
pub struct Slow {
    /// When it ended.
    pub ended: Instant,
    /// How long it took.
    pub took: Duration,
    /// Its tool, or its method.
    pub what: Box<str>,
    /// How it ended.
    pub verdict: Verdict,
    /// Whom it was for.
    pub principal: Option<Arc<str>>,
    /// The last generation that had it.
    pub generation: Option<u64>,
}

/// Them, the slowest first.
#[derive(Debug, Default)]
pub(super) struct Slowest(Vec<Slow>);

impl Slowest {
    pub(super) fn saw(&mut self, now: Instant, call: &UnderWay, outcome: &Outcome<'_>) {
        let took = outcome.times.total();
        if self.0.len() >= KEPT {
            let old = self.0.iter().position(|slow| now.duration_since(slow.ended) > OLD);
            match old {
                Some(old) => drop(self.0.remove(old)),
                None if self.0.last().is_some_and(|last| last.took < took) => drop(self.0.pop()),
                None => return,
            }
        }
        let what = call.tool.as_deref().unwrap_or(&call.method);
        let slow = Slow {
            ended: now,
            took,
            what: what.chars().take(NAME).collect::<String>().into(),
            verdict: outcome.verdict,
            principal: call.principal.clone(),
            generation: outcome.generation,
        };
        let at = self.0.partition_point(|other| other.took >= took);
        self.0.insert(at, slow);
    }

    pub(super) fn list(&self, now: Instant) -> Vec<Slow> {
        self.0.iter().filter(|slow| now.duration_since(slow.ended) <= OLD).cloned().collect()
    }
}

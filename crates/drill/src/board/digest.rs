//! What each target came to, added up over its rows.
//!
//! Sums over different rows compare nothing. So rows over stdio and over HTTP are never added together, and what is added
//! up are the rows that everybody on a side played; the others are told row by row.

use super::times::Times;
use crate::results::{Calls, Results, Row, Target};

/// How a server is reached, in the order of the page.
const WAYS: [(&str, &str); 2] = [("stdio", "a server over stdio"), ("http", "a server over HTTP")];

/// Everybody who stood before servers that are reached in one way.
pub(super) struct Side<'a> {
    /// `stdio` or `http`.
    pub(super) over: &'static str,
    /// The same in words.
    pub(super) words: &'static str,
    pub(super) digests: Vec<Digest<'a>>,
    /// Those that could not be started even once, and why. They are not compared.
    pub(super) unstarted: Vec<(&'a Target, &'a str)>,
    /// Which rows the sums are of.
    pub(super) summed: Summed,
}

/// Which rows are added up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Summed {
    /// Those that everybody played, so many.
    Common(usize),
    /// There are no such rows: all that each played.
    Own,
}

/// A target, over the rows of one side.
pub(super) struct Digest<'a> {
    pub(super) target: &'a Target,
    /// The rows that are added up.
    pub(super) played: Vec<&'a Row>,
    pub(super) calls: Calls,
    pub(super) back: Times,
    pub(super) told: Times,
    pub(super) orphans: u32,
    pub(super) reconnects: u32,
}

/// The sides on which anything was played.
pub(super) fn sides(results: &Results) -> Vec<Side<'_>> {
    let side = |(over, words)| Side::of(results, over, words);
    WAYS.map(side).into_iter().filter(|side| !side.digests.is_empty() || !side.unstarted.is_empty()).collect()
}

/// What makes two rows of a side the same.
pub(super) fn key(row: &Row) -> (&str, &str, &str) {
    (&row.row, &row.server, &row.era)
}

impl<'a> Side<'a> {
    fn of(results: &'a Results, over: &'static str, words: &'static str) -> Self {
        let played = |target: &'a Target| -> Vec<&'a Row> {
            target.rows.iter().filter(|row| row.over == over && row.skipped.is_none()).collect()
        };
        let mut all: Vec<_> = results.targets.iter().map(|target| (target, played(target))).collect();
        all.retain(|(_, rows)| !rows.is_empty());
        let unstarted = all
            .extract_if(.., |(_, rows)| rows.iter().all(|row| row.could_not_start()))
            .map(|(target, rows)| (target, rows.first().map_or("", |row| row.why_not_started())))
            .collect();
        let has = |rows: &[&Row], wanted| rows.iter().any(|row| key(row) == wanted);
        let common: Vec<_> = match all.split_first() {
            Some(((_, first), others)) => {
                let keys = first.iter().map(|row| key(row));
                keys.filter(|key| others.iter().all(|(_, rows)| has(rows, *key))).collect()
            }
            None => Vec::new(),
        };
        let summed = if common.is_empty() { Summed::Own } else { Summed::Common(common.len()) };
        let digest = |(target, mut rows): (_, Vec<&'a Row>)| {
            rows.retain(|row| summed == Summed::Own || common.contains(&key(row)));
            Digest::of(target, rows)
        };
        Self { over, words, digests: all.into_iter().map(digest).collect(), unstarted, summed }
    }
}

impl<'a> Digest<'a> {
    fn of(target: &'a Target, played: Vec<&'a Row>) -> Self {
        let mut calls = Calls::default();
        for row in &played {
            calls.add(&row.calls);
        }
        Self {
            target,
            calls,
            back: Times::of(played.iter().flat_map(|row| row.back_ms.iter().copied())),
            told: Times::of(played.iter().flat_map(|row| row.told_ms.iter().copied().map(Some))),
            orphans: played.iter().map(|row| row.orphans).sum(),
            reconnects: played.iter().map(|row| row.reconnects).sum(),
            played,
        }
    }

    /// Of the calls that could have been answered, the share that was not, whatever their callers were told.
    pub(super) fn lost(&self) -> f64 {
        lost(&self.calls)
    }

    /// Callers who were told of a failure, but not whether their call ran and why; some without a word.
    pub(super) fn unexplained(&self) -> u64 {
        self.calls.unexplained + self.calls.empty
    }

    pub(super) fn kept(&self) -> usize {
        self.played.iter().filter(|row| row.kept).count()
    }

    /// Times until it was back, in front of servers of one kind: how long those take to start is most of it.
    pub(super) fn back_of(&self, server: &str) -> Times {
        let rows = self.played.iter().filter(|row| row.server == server);
        Times::of(rows.flat_map(|row| row.back_ms.iter().copied()))
    }
}

/// The kinds of servers on a side, in the order in which they come.
pub(super) fn servers<'a>(side: &Side<'a>) -> Vec<&'a str> {
    let mut kinds = Vec::new();
    for row in side.digests.iter().flat_map(|digest| &digest.played) {
        if !kinds.contains(&row.server.as_str()) {
            kinds.push(&row.server);
        }
    }
    kinds
}

/// Of the calls that could have been answered, the share that was not.
pub(super) fn lost(calls: &Calls) -> f64 {
    share(calls.lost(), calls.answerable())
}

/// A share, of nothing too.
#[expect(clippy::cast_precision_loss, reason = "counts of calls")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

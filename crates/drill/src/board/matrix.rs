//! Rows against targets: who kept what.

use super::digest::{Side, key};
use crate::results::Row;

/// How many findings of a row are shown for a target; the first ones say enough.
pub(super) const MOST_FINDINGS: usize = 5;

/// A row of the catalogue in front of one kind of server, in one era.
pub(super) struct Played<'a> {
    pub(super) row: &'a Row,
    /// Each target of the side, in its order.
    pub(super) verdicts: Vec<Verdict<'a>>,
}

/// What a target made of a row.
pub(super) enum Verdict<'a> {
    Kept(&'a Row),
    Broken(&'a Row),
    /// It did not come up, so nothing was tried.
    NotStarted(&'a str),
    Skipped(&'a str),
    /// It was not asked to.
    Absent,
}

/// Every row that anybody played on this side, in the order of the catalogue.
pub(super) fn matrix<'a>(side: &Side<'a>) -> Vec<Played<'a>> {
    let mut rows: Vec<&Row> = Vec::new();
    for row in side.digests.iter().flat_map(|digest| &digest.target.rows) {
        if row.over == side.over && !rows.iter().any(|known| key(known) == key(row)) {
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| key(one).cmp(&key(other)));
    let verdicts = |row: &Row| {
        let verdict = |rows: &'a [Row]| {
            rows.iter()
                .find(|own| own.over == side.over && key(own) == key(row))
                .map_or(Verdict::Absent, Verdict::of)
        };
        side.digests.iter().map(|digest| verdict(&digest.target.rows)).collect()
    };
    let played = |row| Played { row, verdicts: verdicts(row) };
    let all = rows.into_iter().map(played);
    // A row that everybody skipped tells nothing.
    all.filter(|line| line.verdicts.iter().any(Verdict::is_played)).collect()
}

impl<'a> Verdict<'a> {
    fn of(row: &'a Row) -> Self {
        match &row.skipped {
            Some(why) => Self::Skipped(why),
            None if row.could_not_start() => Self::NotStarted(row.why_not_started()),
            None if row.kept => Self::Kept(row),
            None => Self::Broken(row),
        }
    }

    /// The row, if it was played.
    pub(super) fn played(&self) -> Option<&'a Row> {
        match self {
            Self::Kept(row) | Self::Broken(row) => Some(row),
            Self::NotStarted(_) | Self::Skipped(_) | Self::Absent => None,
        }
    }

    fn is_played(&self) -> bool {
        self.played().is_some()
    }
}

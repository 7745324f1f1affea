//! The tables, as cells: the page and the Markdown file draw the same ones.

use super::digest::{Digest, Side, Summed, share};
use super::times::Moment;
use super::words::{count, moment, percent};
use crate::results::Results;

/// A table. The first column says whose row it is.
pub(super) struct Table {
    pub(super) head: Vec<&'static str>,
    pub(super) lines: Vec<Line>,
}

/// What is said of one target.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) ours: bool,
    pub(super) cells: Vec<Cell>,
}

/// One thing that is said.
#[derive(Clone)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) mark: Mark,
}

/// How it looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    Plain,
    /// Nobody on this side is better, whoever it is.
    Best,
    /// A promise of linetender's that did not hold.
    Broken,
}

/// A column of the headline. Targets are compared in it; less is better.
struct Column {
    head: &'static str,
    value: fn(&Digest) -> Value,
}

/// What a column says of a target.
enum Value {
    /// Nothing to compare by.
    Calls(u64),
    /// What must not be: anything but nothing breaks a promise.
    Wrongs(u64),
    Share(f64),
    Time(Moment),
    Rows {
        kept: usize,
        played: usize,
    },
}

const HEADLINE: [Column; 10] = [
    Column { head: "calls", value: |own| Value::Calls(own.calls.made) },
    Column { head: "lost", value: |own| Value::Share(own.lost()) },
    Column { head: "ran twice", value: |own| Value::Wrongs(own.calls.ran_twice) },
    Column { head: "ran again", value: |own| Value::Calls(own.calls.ran_again_by_refusal) },
    Column { head: "hung", value: |own| Value::Wrongs(own.calls.hung) },
    Column { head: "unexplained", value: |own| Value::Wrongs(own.unexplained()) },
    Column { head: "told wrong", value: |own| Value::Wrongs(own.calls.wrong) },
    Column { head: "back, p50", value: |own| Value::Time(own.back.at(0.5)) },
    Column { head: "back, p99", value: |own| Value::Time(own.back.at(0.99)) },
    Column { head: "rows kept", value: |own| Value::Rows { kept: own.kept(), played: own.played.len() } },
];

/// What the words of the headline mean.
pub(super) const MEANINGS: [(&str, &str); 9] = [
    (
        "lost",
        "of the calls that somebody could have answered, how many got no answer from the server, for whatever reason, told or \
         not. A call that was at work when its server died is nobody’s to answer, and is not counted.",
    ),
    (
        "ran twice",
        "by the server’s own book: calls that it ran more than once. The server in Node keeps none.",
    ),
    (
        "ran again",
        "calls that ran twice, and are not counted as such: their server ran them, then said that it had not, in a way in which MCP or HTTP \
         let it say so only before it runs anything. linetender can be told not to believe that (retry_on).",
    ),
    ("hung", "callers who were told nothing within the bound."),
    (
        "unexplained",
        "callers who were told of a failure, but not whether their call ran, and why; or without a word.",
    ),
    ("told wrong", "told “not executed” and it ran, or answered and it never ran."),
    (
        "back",
        "from the fault to the first call that works again, over all runs. It is asked again only when all that was under way has been told, or is given up as hung; a run that is not back within the bound from there on counts as never.",
    ),
    ("nobody’s", "calls that nobody could have answered, whatever their callers were told."),
    ("rows kept", "rows of the fault catalogue in which nothing happened that must not."),
];

/// Whose work this is: a reader should know who chose the questions.
pub(super) const AUTHORS: &str = "linetender’s own authors made this comparison: they chose the faults, the bounds and each \
    target’s settings, and wrote the judge.";

/// A side in one sentence, if there is anybody to compare with.
pub(super) fn conclusion(side: &Side) -> Option<String> {
    if side.summed == Summed::Own {
        return None;
    }
    let (ours, others): (Vec<_>, Vec<_>) = side.digests.iter().partition(|own| own.target.ours);
    let (least, most) = (ours.iter().map(|own| own.kept()).min()?, ours.iter().map(|own| own.kept()).max()?);
    let best = others.iter().max_by_key(|own| own.kept())?;
    let fewest = others.iter().min_by(|one, other| one.lost().total_cmp(&other.lost()))?;
    let worst = ours.iter().map(|own| own.lost()).max_by(f64::total_cmp)?;
    let kept = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    Some(format!(
        "In front of {}, linetender kept {kept} of {} rows, and of the others {} kept the most: {}. Of the calls that could have \
         been answered linetender lost {}, and the best of the others {} ({}).",
        side.words,
        best.played.len(),
        best.target.name,
        best.kept(),
        if worst == 0.0 { "none".to_owned() } else { format!("at most {}", percent(worst)) },
        if fewest.lost() == 0.0 { "none".to_owned() } else { percent(fewest.lost()) },
        fewest.target.name,
    ))
}

/// Which rows a side's sums are of.
pub(super) fn summed(side: &Side) -> String {
    match side.summed {
        Summed::Common(1) => "Over the one row that all of them played.".to_owned(),
        Summed::Common(rows) => format!("Over the {rows} rows that all of them played."),
        Summed::Own => "No row was played by all of them: each is summed over its own.".to_owned(),
    }
}

/// Who did how well.
pub(super) fn headline(side: &Side) -> Table {
    let best = HEADLINE.map(|column| {
        let ranks = side.digests.iter().filter_map(|own| (column.value)(own).rank());
        ranks.filter(|rank| rank.is_finite()).min_by(f64::total_cmp)
    });
    let line = |own: &Digest| {
        let cells = HEADLINE.iter().zip(best).map(|(column, best)| (column.value)(own).cell(best));
        Line::of(own, cells.collect())
    };
    Table {
        head: HEADLINE.map(|column| column.head).to_vec(),
        lines: side.digests.iter().map(line).collect(),
    }
}

/// What callers were told.
pub(super) fn told(side: &Side) -> Table {
    let line = |own: &Digest| {
        let calls = &own.calls;
        let numbers = [
            calls.made,
            calls.answered,
            calls.not_executed,
            calls.refused,
            calls.unknown,
            calls.unexplained,
            calls.empty,
            calls.hung,
            calls.doomed,
        ];
        Line::of(own, numbers.map(|number| Cell::plain(count(number))).to_vec())
    };
    let head = vec![
        "calls",
        "answered",
        "not executed",
        "refused",
        "unknown",
        "unexplained",
        "not a word",
        "hung",
        "nobody’s",
    ];
    Table { head, lines: side.digests.iter().map(line).collect() }
}

/// How long it took.
pub(super) fn times(side: &Side) -> Table {
    let line = |own: &Digest| {
        let [told, back] = [&own.told, &own.back];
        let cells = [
            moment(told.at(0.5)),
            moment(told.at(0.99)),
            moment(back.at(0.5)),
            moment(back.at(0.99)),
            format!("{} of {}", back.never, back.len()),
            count(own.reconnects.into()),
            count(own.orphans.into()),
        ];
        Line::of(own, cells.map(Cell::plain).to_vec())
    };
    let head = vec![
        "told, p50",
        "told, p99",
        "back, p50",
        "back, p99",
        "never back",
        "agent reconnected",
        "orphans",
    ];
    Table { head, lines: side.digests.iter().map(line).collect() }
}

/// What was drilled, and how it was set up.
pub(super) fn targets(results: &Results) -> Table {
    let lines = results.targets.iter().map(|target| Line {
        name: target.name.clone(),
        version: String::new(),
        ours: target.ours,
        cells: [&target.version, &target.speaks, &target.settings]
            .map(|text| Cell::plain(text.clone()))
            .to_vec(),
    });
    Table { head: vec!["version", "agent speaks", "settings"], lines: lines.collect() }
}

impl Line {
    fn of(own: &Digest, cells: Vec<Cell>) -> Self {
        let target = own.target;
        Self { name: target.name.clone(), version: target.version.clone(), ours: target.ours, cells }
    }
}

impl Cell {
    fn plain(text: String) -> Self {
        Self { text, mark: Mark::Plain }
    }
}

impl Value {
    /// By what it is compared, if it can be.
    fn rank(&self) -> Option<f64> {
        match self {
            Self::Calls(_) => None,
            // Nobody is the best at what simply must not be.
            Self::Wrongs(_) => None,
            Self::Share(share) => Some(*share),
            Self::Time(moment) => moment.length(),
            Self::Rows { kept, played } => Some(1.0 - share(*kept as u64, *played as u64)),
        }
    }

    fn cell(&self, best: Option<f64>) -> Cell {
        let text = match self {
            Self::Calls(number) | Self::Wrongs(number) => count(*number),
            Self::Share(share) => percent(*share),
            Self::Time(time) => moment(*time),
            Self::Rows { kept, played } => format!("{kept} of {played}"),
        };
        let mark = match self {
            Self::Wrongs(1..) => Mark::Broken,
            Self::Time(Moment::Never) => Mark::Broken,
            _ if self.rank().is_some() && self.rank() == best => Mark::Best,
            _ => Mark::Plain,
        };
        Cell { text, mark }
    }
}

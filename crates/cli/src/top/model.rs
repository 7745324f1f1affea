//! Everything that is on the screen. Drawing reads it; looks and keys change it.

use linetender_holder::holder::{Act, UnderWayReport, Verdicts};
use linetender_holder::journal::Entry;

use super::looks::Looked;
use super::row::{Before, Key, Row, rows};

/// The longest filter.
const FILTER: usize = 64;

/// What `linetender top` shows.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Sorted, and not filtered.
    rows: Vec<Row>,
    before: Before,
    /// How many linetender processes there are; `None` before the first look.
    pub(super) processes: Option<usize>,
    /// Sockets that others could have put there.
    pub(super) ignored: usize,
    selected: Option<Key>,
    /// Where the selected one was last, should it be gone.
    selected_at: usize,
    pub(super) view: View,
    pub(super) over: Over,
    pub(super) filter: String,
    pub(super) sort: Sort,
    /// Which of the spans the strips show.
    pub(super) span: usize,
    pub(super) notice: Option<Notice>,
    /// Orders that have not been answered.
    pub(super) busy: usize,
    pub(super) detail: Option<Detail>,
    pub(super) colours: bool,
    /// Columns and rows of the terminal.
    pub(super) size: (u16, u16),
}

/// What is shown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum View {
    #[default]
    All,
    One {
        key: Key,
        scroll: usize,
    },
}

/// What is shown over it, and has the keys.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help {
        scroll: usize,
    },
    /// The filter is being typed.
    Filter,
    Confirm(Order),
}

/// What a process is to be told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Order {
    pub(super) pid: u32,
    pub(super) act: Act,
}

/// Something to say at the bottom.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// What is known of one server beyond the report.
#[derive(Clone, Debug)]
pub(super) struct Detail {
    pub(super) key: Key,
    pub(super) calls: Vec<UnderWayReport>,
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sort {
    pub(super) by: By,
    pub(super) is_reversed: bool,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum By {
    /// What needs somebody first.
    #[default]
    Trouble,
    Name,
    Calls,
    Latency,
    Unknown,
    Memory,
}

impl By {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Name => "name",
            Self::Calls => "calls/s",
            Self::Latency => "p99",
            Self::Unknown => "unknown",
            Self::Memory => "memory",
        }
    }
}

impl Model {
    pub(super) fn new(colours: bool) -> Self {
        Self { colours, span: 1, ..Self::default() }
    }

    /// Takes in what a look has found.
    pub(super) fn looked(&mut self, looked: Looked) {
        let (rows, before) = rows(&looked.found, &looked.trees, &self.before, &self.rows);
        (self.rows, self.before) = (rows, before);
        self.processes = Some(looked.found.len());
        self.ignored = looked.ignored;
        self.detail = looked.detail.or_else(|| self.detail.take());
        self.arrange();
    }

    /// The rows that the filter leaves.
    pub(super) fn shown(&self) -> Vec<&Row> {
        let filter = self.filter.to_lowercase();
        let is_shown = |row: &&Row| {
            let has = |text: &str| text.to_lowercase().contains(&filter);
            filter.is_empty() || has(&row.name) || has(&row.state) || has(&row.key.pid.to_string())
        };
        self.rows.iter().filter(is_shown).collect()
    }

    pub(super) fn row(&self, key: &Key) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// All rows, whatever the filter.
    pub(super) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// The place of the selected row among those that are shown.
    pub(super) fn selected_at(&self) -> usize {
        let shown = self.shown();
        let at = self.selected.as_ref().and_then(|key| shown.iter().position(|row| row.key == *key));
        at.unwrap_or(self.selected_at).min(shown.len().saturating_sub(1))
    }

    /// The row that keys are about.
    pub(super) fn subject(&self) -> Option<&Row> {
        match &self.view {
            View::One { key, .. } => self.row(key),
            View::All => self.shown().get(self.selected_at()).copied(),
        }
    }

    pub(super) fn select(&mut self, at: usize) {
        let shown = self.shown();
        let at = at.min(shown.len().saturating_sub(1));
        let key = shown.get(at).map(|row| row.key.clone());
        (self.selected_at, self.selected) = (at, key);
    }

    /// By another column; the same one again: the other way round.
    pub(super) fn sort_by(&mut self, by: By) {
        self.sort = Sort { by, is_reversed: self.sort.by == by && !self.sort.is_reversed };
        self.arrange();
    }

    pub(super) fn type_filter(&mut self, character: char) {
        if self.filter.chars().count() < FILTER && !linetender::visible::is_hidden(character) {
            self.filter.push(character);
        }
    }

    /// Tool calls by verdict, of all rows.
    pub(super) fn verdicts(&self) -> Verdicts {
        self.rows.iter().fold(Verdicts::default(), |sum, row| {
            let calls = row.calls();
            Verdicts {
                answered: sum.answered + calls.answered,
                tool_error: sum.tool_error + calls.tool_error,
                refused: sum.refused + calls.refused,
                not_executed: sum.not_executed + calls.not_executed,
                unknown: sum.unknown + calls.unknown,
                cancelled: sum.cancelled + calls.cancelled,
            }
        })
    }

    fn arrange(&mut self) {
        let at = self.selected_at();
        let Sort { by, is_reversed } = self.sort;
        // What has most of it comes first; names settle the rest, so that rows do not dance.
        self.rows.sort_by(|one, other| {
            let order = match by {
                By::Trouble => {
                    other.stand.max(super::stand::Stand::Up).cmp(&one.stand.max(super::stand::Stand::Up))
                }
                By::Name => one.name.cmp(&other.name),
                By::Calls => other.rate.unwrap_or(0.0).total_cmp(&one.rate.unwrap_or(0.0)),
                By::Latency => other.counts.p99_micros.cmp(&one.counts.p99_micros),
                By::Unknown => other.calls().unknown.cmp(&one.calls().unknown),
                By::Memory => other.memory().cmp(&one.memory()),
            };
            let order = if is_reversed { order.reverse() } else { order };
            order.then_with(|| one.name.cmp(&other.name)).then_with(|| one.key.cmp(&other.key))
        });
        if self.selected.as_ref().is_none_or(|key| self.row(key).is_none()) {
            self.select(at);
        }
    }
}

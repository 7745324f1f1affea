//! From what linetender processes report to the rows that are shown: one for each server of each process.

use std::collections::{BTreeMap, HashMap};

use linetender::visible;
use linetender_holder::holder::{
    About, FleetReport, Found, LineReport, Reply, Report, ServerReport, Silence, Verdicts,
};
use linetender_holder::processes::Tree;

use super::stand::Stand;

/// The most servers of a silent process that are named.
const NAMED: usize = 3;

/// Which row: it stays the same while its numbers and its place change.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    pub(super) pid: u32,
    /// As the process spells it, for asking; `None` for the process itself.
    pub(super) server: Option<String>,
}

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    /// What it is called, fit to be printed.
    pub(super) name: String,
    pub(super) stand: Stand,
    pub(super) state: String,
    pub(super) since_millis: Option<u64>,
    /// What a person should know first: health, next try, last error.
    pub(super) words: String,
    /// How agents connect, and since when the process runs.
    pub(super) holder: Option<About>,
    /// Which gateway of a fleet runs it, in words.
    pub(super) runs_at: Option<String>,
    /// Its connections, the most urgent one first.
    pub(super) lines: Vec<LineReport>,
    pub(super) counts: ServerReport,
    /// Tool calls that ended, per second.
    pub(super) rate: Option<f64>,
    pub(super) trees: Vec<Tree>,
}

/// What was counted at the last look, and how old the process was then: its own clock measures the time between.
pub(super) type Before = HashMap<Key, (u64, u64)>;

impl Row {
    pub(super) fn memory(&self) -> Option<u64> {
        (!self.trees.is_empty()).then(|| self.trees.iter().map(|tree| tree.memory_bytes).sum())
    }

    pub(super) const fn calls(&self) -> &Verdicts {
        &self.counts.tool_calls
    }

    /// Restarts left of how many, in thousandths: of the bucket that is the emptier one, which parks a server first.
    pub(super) fn budget(&self) -> Option<(u32, u32)> {
        let line = self.lines.first()?;
        let share = |(left, most): (u32, u32)| f64::from(left) / f64::from(most.max(1));
        let (fresh, useful) =
            ((line.budget_millis, line.budget_most_millis), (line.useful_millis, line.useful_most_millis));
        Some(if useful.1 > 0 && share(useful) < share(fresh) { useful } else { fresh })
    }
}

/// The rows of everything that was found, and what the next look compares with.
pub(super) fn rows(
    found: &[Found],
    trees: &BTreeMap<u32, Vec<Tree>>,
    before: &Before,
    shown: &[Row],
) -> (Vec<Row>, Before) {
    let (mut rows, mut after) = (Vec::new(), Before::new());
    for Found { pid, reply } in found {
        match reply {
            Reply::Report(report) if report.lines.is_empty() => rows.push(without_lines(report)),
            Reply::Report(report) => {
                let trees = trees.get(pid).map(Vec::as_slice).unwrap_or_default();
                for row in of_report(report, trees, before) {
                    after.insert(row.key.clone(), (row.calls().total(), report.holder.began_millis));
                    rows.push(row);
                }
            }
            Reply::Silent(silence) => rows.push(silent(*pid, *silence, shown)),
        }
    }
    (rows, after)
}

fn of_report(report: &Report, trees: &[Tree], before: &Before) -> Vec<Row> {
    let mut by_server: BTreeMap<&str, Vec<LineReport>> = BTreeMap::new();
    for line in &report.lines {
        by_server.entry(&line.server).or_default().push(line.clone());
    }
    let counts: HashMap<&str, &ServerReport> =
        report.servers.iter().map(|server| (server.server.as_str(), server)).collect();
    let row = |(server, mut lines): (&str, Vec<LineReport>)| {
        lines.sort_by_key(|line| (std::cmp::Reverse(Stand::of(&line.state)), line.since_millis));
        let first = &lines[0];
        let key = Key { pid: report.holder.pid, server: Some(server.to_owned()) };
        let counts = counts.get(server).map(|counts| (*counts).clone()).unwrap_or_default();
        let total = counts.tool_calls.total();
        let rate = before.get(&key).and_then(|(calls, age)| {
            let millis = report.holder.began_millis.checked_sub(*age).filter(|millis| *millis > 0)?;
            #[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
            Some(total.checked_sub(*calls)? as f64 * 1000.0 / millis as f64)
        });
        Row {
            name: match (lines.len(), report.fleet.as_ref().and_then(|fleet| elsewhere(fleet, server))) {
                (1, Some(node)) => format!("{} @{}", visible::line(server), visible::line(node)),
                (1, None) => visible::line(server).into_owned(),
                (many, _) => format!("{} ×{many}", visible::line(server)),
            },
            stand: Stand::of(&first.state),
            state: visible::line(&first.state).into_owned(),
            since_millis: Some(first.since_millis),
            words: words(first),
            holder: Some(report.holder.clone()),
            runs_at: report.fleet.as_ref().and_then(|fleet| runs_at(fleet, server)),
            rate,
            counts,
            trees: trees.iter().filter(|tree| tree.server == server).cloned().collect(),
            key,
            lines,
        }
    };
    by_server.into_iter().map(row).collect()
}

/// The other gateway that runs a server of the fleet.
fn elsewhere<'a>(fleet: &'a FleetReport, server: &str) -> Option<&'a str> {
    let placed = fleet.servers.iter().find(|placed| placed.server == server && !placed.here)?;
    placed.runs_at.as_deref()
}

fn runs_at(fleet: &FleetReport, server: &str) -> Option<String> {
    let placed = fleet.servers.iter().find(|placed| placed.server == server)?;
    let at = placed.runs_at.as_deref().map_or("no gateway".to_owned(), |node| format!("gateway {node}"));
    let moves = if placed.moves { ", moves" } else { "" };
    let away = if fleet.connected { "" } else { ", NATS is not connected" };
    let gateways = fleet.nodes.len();
    let text = format!(
        "{at}{moves}; fleet {}, {gateways} gateway{}{away}",
        fleet.fleet,
        if gateways == 1 { "" } else { "s" }
    );
    Some(visible::line(&text).into_owned())
}

/// What a person should know of a line that is not well, or was not.
fn words(line: &LineReport) -> String {
    let cause = line.cause.as_ref().map(|cause| cause.text.as_str());
    let next = line.next_try.as_ref().map(|next| format!("next try {next}"));
    let text = match (&line.health, Stand::of(&line.state)) {
        (Some(health), _) => health.clone(),
        (None, Stand::Up | Stand::Idle | Stand::Closed) => cause.unwrap_or_default().to_owned(),
        (None, _) => next.into_iter().chain(cause.map(str::to_owned)).collect::<Vec<_>>().join(": "),
    };
    visible::line(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// A shim whose agent has not asked for anything yet.
fn without_lines(report: &Report) -> Row {
    Row {
        name: report
            .holder
            .serves
            .as_deref()
            .map_or_else(|| "-".to_owned(), |name| visible::line(name).into_owned()),
        holder: Some(report.holder.clone()),
        runs_at: None,
        ..bare(report.holder.pid, Stand::Idle, "idle", "no request from the agent yet".to_owned())
    }
}

/// A process that gives no answer. Which servers it had, the last report says.
fn silent(pid: u32, silence: Silence, shown: &[Row]) -> Row {
    let (state, words) = match silence {
        Silence::Stopped => {
            ("stopped", format!("the linetender process is stopped; to resume it: kill -CONT {pid}"))
        }
        Silence::NoAnswer => ("silent", "the linetender process does not answer within 1 s".to_owned()),
        Silence::NotUnderstood => ("unknown", "the process runs another version of linetender".to_owned()),
    };
    let of_it: Vec<&Row> = shown.iter().filter(|row| row.key.pid == pid).collect();
    let name = match of_it.as_slice() {
        [] => format!("process {pid}"),
        // It was silent at the last look too.
        [row] if row.key.server.is_none() => row.name.clone(),
        rows => {
            let mut names: Vec<_> = rows.iter().take(NAMED).map(|row| row.name.clone()).collect();
            names.extend((rows.len() > NAMED).then(|| format!("{} more", rows.len() - NAMED)));
            names.join(", ")
        }
    };
    Row { name, ..bare(pid, Stand::Silent, state, words) }
}

fn bare(pid: u32, stand: Stand, state: &str, words: String) -> Row {
    Row {
        key: Key { pid, server: None },
        name: "-".to_owned(),
        stand,
        state: state.to_owned(),
        since_millis: None,
        words,
        holder: None,
        runs_at: None,
        lines: Vec::new(),
        counts: ServerReport::default(),
        rate: None,
        trees: Vec::new(),
    }
}

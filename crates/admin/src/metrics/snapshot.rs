//! What is counted at one moment, by server: several connections to one server are summed, or the worst of them is told.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use linetender::State;
use linetender_holder::Holder;
use linetender_holder::holder::FleetReport;
use linetender_holder::processes::Tree;
use linetender_holder::tally::Counted;

/// The states that a line can be in.
pub(super) const STATES: [State; 9] = [
    State::Idle,
    State::Dialing,
    State::Up,
    State::Suspect,
    State::Draining,
    State::Ending,
    State::Waiting,
    State::Parked,
    State::NeedsAuth,
];

/// The longest server name in a label.
const NAME: usize = 128;

/// What is counted.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) version: String,
    pub(super) uptime: Duration,
    pub(super) memory: Option<u64>,
    pub(super) journal_lost: Option<u64>,
    /// What is known of the fleet that this gateway is in.
    pub(super) fleet: Option<FleetReport>,
    /// By name, as it stands in labels.
    pub(super) servers: BTreeMap<String, Server>,
}

/// What is known of one server.
#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) counted: Option<Counted>,
    pub(super) lines: Option<Lines>,
    /// Bytes and number of its processes, if it is a local one that runs.
    pub(super) processes: Option<(u64, u64)>,
}

/// Where its connections stand.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) by_state: [u64; STATES.len()],
    pub(super) budget: f64,
    pub(super) next_try: Option<Duration>,
}

impl Snapshot {
    pub(super) fn of(holder: &Holder, trees: Vec<Tree>) -> Self {
        let mut servers: BTreeMap<String, Server> = BTreeMap::new();
        for (name, counted) in holder.counted() {
            servers.entry(label(&name)).or_default().counted = Some(counted);
        }
        for line in holder.standings() {
            let Some(at) = STATES.iter().position(|state| *state == line.state) else { continue };
            let lines = servers.entry(label(&line.server)).or_default().lines.get_or_insert(Lines {
                by_state: [0; STATES.len()],
                budget: 1.0,
                next_try: None,
            });
            lines.by_state[at] += 1;
            lines.budget = lines.budget.min(line.budget);
            lines.next_try = lines.next_try.max(line.next_try);
        }
        for tree in trees {
            let (bytes, count) =
                servers.entry(label(&tree.server)).or_default().processes.get_or_insert((0, 0));
            *bytes += tree.memory_bytes;
            *count += tree.processes.len() as u64;
        }
        let about = holder.about();
        Self {
            version: about.version,
            uptime: Duration::from_millis(about.began_millis),
            memory: own_memory(),
            journal_lost: holder.journal_lost(),
            fleet: holder.fleet(),
            servers,
        }
    }
}

impl Lines {
    /// Whether all of them serve, or would at the first call.
    pub(super) fn are_up(&self) -> bool {
        let is_up = |state: State| state.is_live() || state == State::Idle;
        STATES.iter().zip(self.by_state).all(|(state, count)| count == 0 || is_up(*state))
    }
}

/// A name that is no longer than a label should be. Two that differ still do.
pub(super) fn label(name: &str) -> String {
    if name.len() <= NAME {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("{}…{:016x}", linetender::visible::first_bytes(name, NAME), hasher.finish())
}

/// Resident memory of this process.
// proc_pid_status(5): VmRSS, in kB.
fn own_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().split(' ').next()?.parse().ok()?;
    Some(kib * 1024)
}

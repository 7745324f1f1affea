//! Every metric by name. What stands here is promised: docs/metrics.md has the same names, and a test compares them.

/// What a metric is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// It only grows; its series end in `_total`.
    Counter,
    /// It is what it is now.
    Gauge,
    /// Durations by bucket.
    Histogram,
    /// Its labels are what it says; its series ends in `_info`.
    Info,
}

/// A family of series.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Metric {
    /// Name of the family, without the `_total` or `_info` of its series.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

impl Metric {
    const fn new(
        name: &'static str,
        kind: Kind,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self { name, kind, labels, help }
    }

    /// The name of its series, for a histogram without `_bucket`, `_sum` and `_count`.
    pub fn series(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Info => format!("{}_info", self.name),
            Kind::Gauge | Kind::Histogram => self.name.to_owned(),
        }
    }
}

const SERVER: &[&str] = &["server"];

pub(super) const BUILD: Metric =
    Metric::new("linetender_build", Kind::Info, &["version"], "Version of linetender");
pub(super) const UPTIME: Metric =
    Metric::new("linetender_uptime_seconds", Kind::Gauge, &[], "Time since the gateway started");
pub(super) const MEMORY: Metric = Metric::new(
    "linetender_resident_memory_bytes",
    Kind::Gauge,
    &[],
    "Resident memory of the gateway itself, without its servers",
);
pub(super) const JOURNAL_LOST: Metric = Metric::new(
    "linetender_journal_lost_entries",
    Kind::Counter,
    &[],
    "Journal entries that could not be written; absent if no journal is kept",
);
pub(super) const CALLS: Metric = Metric::new(
    "linetender_calls",
    Kind::Counter,
    &["server", "kind", "verdict"],
    "Requests that ended, by verdict; kind is tool for tool calls and other for the rest",
);
pub(super) const NOT_EXECUTED: Metric = Metric::new(
    "linetender_calls_not_executed",
    Kind::Counter,
    &["server", "reason"],
    "Requests that linetender counted as not executed, by what it counted",
);
pub(super) const REFUSED: Metric = Metric::new(
    "linetender_calls_refused",
    Kind::Counter,
    &["server", "reason"],
    "Requests that the server or a proxy refused, by what it answered; linetender cannot check that they were not executed",
);
pub(super) const UNKNOWN: Metric = Metric::new(
    "linetender_calls_unknown",
    Kind::Counter,
    &["server", "reason"],
    "Requests that may or may not have been executed, by why that is not known",
);
pub(super) const RETRIES: Metric = Metric::new(
    "linetender_retries",
    Kind::Counter,
    &["server", "reason"],
    "Requests that linetender sent again, by what permitted it",
);
pub(super) const OWN: Metric = Metric::new(
    "linetender_calls_own",
    Kind::Counter,
    SERVER,
    "Requests that linetender ended without the server",
);
pub(super) const UNDER_WAY: Metric =
    Metric::new("linetender_calls_under_way", Kind::Gauge, SERVER, "Requests that have not ended");
pub(super) const AT_SERVER: Metric = Metric::new(
    "linetender_call_server_seconds",
    Kind::Histogram,
    SERVER,
    "Time that answered requests were with the server",
);
pub(super) const WAITED: Metric = Metric::new(
    "linetender_call_wait_seconds",
    Kind::Histogram,
    SERVER,
    "Time that sent requests waited in the queue and for the server to be there",
);
pub(super) const SENT: Metric =
    Metric::new("linetender_sent_bytes", Kind::Counter, SERVER, "Bytes of the params of requests");
pub(super) const RECEIVED: Metric =
    Metric::new("linetender_received_bytes", Kind::Counter, SERVER, "Bytes of the answers to requests");
pub(super) const UP: Metric = Metric::new(
    "linetender_server_up",
    Kind::Gauge,
    SERVER,
    "1 if every connection to the server serves or would at the first call, 0 if one does not",
);
pub(super) const LINES: Metric = Metric::new(
    "linetender_server_lines",
    Kind::Gauge,
    &["server", "state"],
    "Supervised connections to the server, by state",
);
pub(super) const STARTS: Metric =
    Metric::new("linetender_server_starts", Kind::Counter, SERVER, "Connections to the server that came up");
pub(super) const ENDS: Metric = Metric::new(
    "linetender_server_ends",
    Kind::Counter,
    &["server", "cause"],
    "Connections to the server that ended unplanned, by cause",
);
pub(super) const PLANNED_ENDS: Metric = Metric::new(
    "linetender_server_planned_ends",
    Kind::Counter,
    SERVER,
    "Connections to the server that ended on purpose",
);
pub(super) const BUDGET: Metric = Metric::new(
    "linetender_server_budget_ratio",
    Kind::Gauge,
    SERVER,
    "Restart budget left, from 0 to 1; the least of the server's connections",
);
pub(super) const NEXT_TRY: Metric = Metric::new(
    "linetender_server_next_try_seconds",
    Kind::Gauge,
    SERVER,
    "Time until the next automatic try, the longest of the server's connections; absent if none is planned",
);
pub(super) const SERVER_MEMORY: Metric = Metric::new(
    "linetender_server_resident_memory_bytes",
    Kind::Gauge,
    SERVER,
    "Resident memory of the processes of a local server",
);
pub(super) const PROCESSES: Metric =
    Metric::new("linetender_server_processes", Kind::Gauge, SERVER, "Processes of a local server");

pub(super) const FLEET_CONNECTED: Metric = Metric::new(
    "linetender_fleet_connected",
    Kind::Gauge,
    &[],
    "Whether this gateway is connected to the NATS of its fleet",
);
pub(super) const FLEET_NODES: Metric =
    Metric::new("linetender_fleet_gateways", Kind::Gauge, &[], "Gateways of the fleet that are there");
pub(super) const FLEET_HERE: Metric = Metric::new(
    "linetender_fleet_server_here",
    Kind::Gauge,
    SERVER,
    "Whether this gateway is the one that runs a server of the fleet",
);
pub(super) const FLEET_SOMEWHERE: Metric = Metric::new(
    "linetender_fleet_server_placed",
    Kind::Gauge,
    SERVER,
    "Whether any gateway is known to run a server of the fleet",
);

/// All of them, in the order in which they are written.
pub const METRICS: &[Metric] = &[
    BUILD,
    UPTIME,
    MEMORY,
    JOURNAL_LOST,
    CALLS,
    NOT_EXECUTED,
    REFUSED,
    UNKNOWN,
    RETRIES,
    OWN,
    UNDER_WAY,
    AT_SERVER,
    WAITED,
    SENT,
    RECEIVED,
    UP,
    LINES,
    STARTS,
    ENDS,
    PLANNED_ENDS,
    BUDGET,
    NEXT_TRY,
    SERVER_MEMORY,
    PROCESSES,
    FLEET_CONNECTED,
    FLEET_NODES,
    FLEET_HERE,
    FLEET_SOMEWHERE,
];

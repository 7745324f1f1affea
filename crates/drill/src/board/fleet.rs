//! What is said of a fleet: the page and the Markdown file say the same.

use crate::results::fleet::{Fault, Fleet, Spread};

/// The title of its part.
pub(super) const TITLE: &str = "When a gateway dies";

/// A machine that stands still for longer, in seconds, is worth a word.
const STALL: f64 = 0.5;

/// The heads of its table.
pub(super) const HEAD: [&str; 6] = [
    "fault",
    "times",
    "takeover, p50 / max (s)",
    "all well again, p50 / max (s)",
    "longest stateless gap (s)",
    "connections broken",
];

/// What was done, and what came of it.
pub(super) fn sentences(fleet: &Fleet) -> Vec<String> {
    let calls = &fleet.calls;
    let mut told = vec![
        format!(
            "Three gateways of linetender as one fleet, three NATS servers, {} servers of which half are processes with a memory, {} agents \
             behind a round-robin balancer without health checks: {} s of faults, lease {} s, seed {}{}.",
            fleet.servers,
            fleet.agents,
            fleet.seconds,
            fleet.lease_seconds,
            fleet.seed,
            if fleet.debug { ", debug build" } else { "" }
        ),
        format!(
            "Of {} calls {} ran twice, {} hung, {} were told what is not so; {} servers had processes on two gateways at once ({} looks).",
            calls.answered + calls.unknown + calls.not_executed,
            fleet.twice,
            fleet.hung,
            fleet.wrong_verdicts,
            fleet.trees_on_two_nodes,
            fleet.looks
        ),
    ];
    if let Some(Spread { count, p50, max, .. }) = fleet.takeover_seconds {
        told.push(format!(
            "Failover of a gateway, from the fault to the first answer of a server that moved to another one: p50 {p50:.1} s, at most \
             {max:.1} s, of {count}. A server's own start is part of it: p99 {:.1} s.",
            fleet.start_p99_seconds
        ));
    }
    if fleet.longest_stall_seconds > STALL {
        told.push(format!(
            "The machine had other work: all of it stood still for up to {:.1} s, which is part of the gaps and times below.",
            fleet.longest_stall_seconds
        ));
    }
    told.extend(fleet.missing.iter().map(|missing| format!("Left out: {missing}.")));
    if !fleet.findings.is_empty() {
        told.push(format!("{} findings; the first: {}", fleet.findings.len(), fleet.findings[0]));
    }
    told
}

/// The rows of its table.
pub(super) fn rows(fleet: &Fleet) -> Vec<Vec<String>> {
    let spread = |spread: Option<Spread>| {
        spread.map_or("–".to_owned(), |Spread { p50, max, .. }| format!("{p50:.1} / {max:.1}"))
    };
    let row = |fault: &Fault| {
        vec![
            fault.name.clone(),
            fault.times.to_string(),
            spread(fault.takeover_seconds),
            spread(fault.recovery_seconds),
            format!("{:.2}", fault.stateless_gap_seconds),
            fault.broken.to_string(),
        ]
    };
    fleet.faults.iter().map(row).collect()
}

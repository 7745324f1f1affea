//! What a process takes up, as the system counts it.

use std::fs;
use std::time::Duration;

use linetender_badserver::process::descriptors;

/// What a process holds at this moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Held {
    /// Memory that is resident, and the part of it that counts once where processes share it; in KiB.
    pub(super) rss: u64,
    pub(super) pss: u64,
    pub(super) threads: u64,
    pub(super) descriptors: usize,
}

pub(super) fn held(pid: u32) -> Result<Held, String> {
    let status = read(pid, "status")?;
    let rss = number(&status, "VmRSS:");
    Ok(Held {
        rss,
        // Of a process that hides (`linetender` does) only root learns what it shares: all of it is counted then.
        pss: read(pid, "smaps_rollup").map_or(rss, |rollup| number(&rollup, "Pss:")),
        threads: number(&status, "Threads:"),
        descriptors: descriptors(&pid.to_string()),
    })
}

/// How long its threads have run, to the nanosecond: clock ticks are too coarse for a few hundred calls.
pub(super) fn processor(pid: u32) -> Result<Duration, String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| format!("{pid}: {error}"))?;
    let ran = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Ok(Duration::from_nanos(ran.sum()))
}

fn read(pid: u32, file: &str) -> Result<String, String> {
    fs::read_to_string(format!("/proc/{pid}/{file}")).map_err(|error| format!("{pid}: {error}"))
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

//! What this process has: descendants, descriptors, tasks, memory.

use rustix::process::{Pid, Signal, kill_process};

/// A look at ourselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) processes: usize,
    pub(super) descriptors: usize,
    pub(super) tasks: usize,
    pub(super) kib: u32,
}

impl Own {
    pub(super) fn look() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let tasks =
            tokio::runtime::Handle::try_current().map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        Self { processes: descendants("self").len(), descriptors, tasks, kib }
    }
}

/// Everything below a process, zombies included.
pub(super) fn descendants(of: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
        let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in listed.split_ascii_whitespace() {
            found.extend(child.parse::<i32>());
            found.extend(descendants(child));
        }
    }
    found
}

/// Whether a process lives. A zombie does not; somebody else has to bury it.
pub(super) fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

pub(super) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

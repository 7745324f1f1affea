//! Processes, from outside: what this one has, what is below another, what carries a mark. Where there is no `/proc`, nothing is
//! found.

#[cfg(unix)]
mod signal;

#[cfg(unix)]
pub use signal::{kill, send, unread};

/// A look at ourselves.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Processes below this one, zombies included.
    pub processes: usize,
    /// Open descriptors.
    pub descriptors: usize,
    /// Live tasks of the runtime.
    pub tasks: usize,
    /// Resident memory.
    pub kib: u32,
}

impl Own {
    /// As it is now.
    pub fn look() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        let descriptors = descriptors("self");
        let tasks =
            tokio::runtime::Handle::try_current().map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        Self { processes: descendants("self").len(), descriptors, tasks, kib }
    }
}

/// Everything below a process, zombies included.
pub fn descendants(of: &str) -> Vec<i32> {
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
pub fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Whether it has this in its environment, as `NAME=value`: wherever it went, it could not shake that off.
pub fn carries(pid: i32, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

/// Everything that carries this mark and lives, whoever its parent is.
pub fn marked(mark: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|pid| carries(*pid, mark) && lives(*pid)).collect()
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// How many descriptors it has open. Those of a process that hides (`linetender` does) only root can list; how many there are the
/// kernel tells everybody (Linux 6.2 and later).
pub fn descriptors(of: &str) -> usize {
    let folder = format!("/proc/{of}/fd");
    let told = || std::fs::metadata(&folder).map_or(0, |about| usize::try_from(about.len()).unwrap_or(0));
    std::fs::read_dir(&folder).map_or_else(|_| told(), Iterator::count)
}

/// The ports of those on this machine who take a connection to this port on loopback for open, as far as the kernel tells.
pub fn connected_to(port: u16) -> Vec<u16> {
    const ESTABLISHED: &str = "01";
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port_of = |end: &str| u16::from_str_radix(end.rsplit(':').next()?, 16).ok();
    let client = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (here, there) = (port_of(fields.next()?)?, port_of(fields.next()?)?);
        (there == port && fields.next()? == ESTABLISHED).then_some(here)
    };
    table.lines().filter_map(client).collect()
}

//! Processes, from outside: what this one has, what is below another, what carries a mark. Where there is no `/proc`, much of it is
//! not found.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{descendants, descriptors, go_on, kill, lives, send, stop, unread};
#[cfg(windows)]
pub(crate) use windows::stop_this;
#[cfg(windows)]
pub use windows::{descendants, descriptors, go_on, kill, lives, stop};

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

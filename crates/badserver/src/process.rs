//! Processes, from outside: what this one has, what is below another, what carries a mark. Where there is no `/proc`, much of it is
//! not found.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{
    ask_to_end, carries, descendants, descriptors, go_on, kill, lives, marked, parent, send, stop, unread,
};
#[cfg(windows)]
pub(crate) use windows::stop_this;
#[cfg(windows)]
pub use windows::{
    ask_to_end, carries, descendants, descriptors, go_on, kill, lives, marked, parent, stop, unread,
};

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

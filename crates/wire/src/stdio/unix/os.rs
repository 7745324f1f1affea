//! What the kernel lists of processes, in `/proc`.

use rustix::process::Pid;

/// Whether the kernel lists our children.
pub(crate) fn lists_children() -> bool {
    std::fs::read_to_string(CHILDREN).is_ok()
}

const CHILDREN: &str = "/proc/thread-self/children";

/// The processes whose parent we are, adopted orphans included.
pub(crate) fn children() -> Vec<Pid> {
    let listed = std::fs::read_to_string(CHILDREN).unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// The processes whose parent this one is.
pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    listed_below(&format!("/proc/{}/task", pid.as_raw_nonzero()))
}

/// The same for a process with several threads: each has a list of its own.
pub(crate) fn all_children() -> Vec<Pid> {
    listed_below("/proc/self/task")
}

fn listed_below(tasks: &str) -> Vec<Pid> {
    let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let mut found = Vec::new();
    for children in listed {
        let children = children.split_ascii_whitespace();
        found.extend(children.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    found
}

/// Whether a process runs: neither dead nor unheard of.
pub(crate) fn lives(pid: Pid) -> bool {
    look(pid).is_some()
}

/// A living process.
pub(crate) fn look(pid: Pid) -> Option<Process> {
    parse(pid, &std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
}

/// The living processes of our session, and our children in any other: what can be found without being a subreaper.
pub(crate) fn family() -> Vec<Pid> {
    let us = rustix::process::getpid();
    processes(|process| process.pid != us && (process.session == us || process.parent == us))
}

/// The living processes of a session.
pub(crate) fn session(leader: Pid) -> Vec<Pid> {
    processes(|process| process.pid != leader && process.session == leader)
}

/// True if it ignores SIGHUP, as `nohup` makes programs do.
pub(crate) fn ignores_hangup(pid: Pid) -> bool {
    let ignored = field(pid, "SigIgn:").and_then(|set| u64::from_str_radix(&set, 16).ok());
    ignored.is_some_and(|set| set & 1 != 0)
}

/// How much memory it has, in bytes.
pub(crate) fn memory(pid: Pid) -> Option<u64> {
    let resident = field(pid, "VmRSS:")?;
    Some(resident.split(' ').next()?.parse::<u64>().ok()? * 1024)
}

/// What `/proc/PID/status` says under this name.
fn field(pid: Pid, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// What its program is called, in up to 15 bytes.
pub(crate) fn name_of(pid: Pid) -> Option<String> {
    let name = std::fs::read(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// What its descriptors are. Nothing of another user's, or of one that hides.
pub(crate) fn links_of(pid: Pid) -> impl Iterator<Item = String> {
    let listed = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten();
    listed.flatten().filter_map(|entry| link_of(entry.path()))
}

/// Where a link leads.
pub(crate) fn link_of(path: impl AsRef<std::path::Path>) -> Option<String> {
    std::fs::read_link(path).ok()?.into_os_string().into_string().ok()
}

pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    pub(crate) group: Pid,
    pub(crate) session: Pid,
    /// When it started: two that had the same number differ in this.
    pub(crate) start: u64,
}

fn processes(wanted: impl Fn(&Process) -> bool) -> Vec<Pid> {
    let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = listed.filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        parse(pid, &std::fs::read_to_string(entry.path().join("stat")).ok()?)
    });
    stats.filter(wanted).map(|process| process.pid).collect()
}

/// The line of `/proc/PID/stat`, behind the name: state, parent, group, session, …, start. `None` for the dead.
fn parse(pid: Pid, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    let group = Pid::from_raw(fields.next()?.parse().ok()?)?;
    let session = Pid::from_raw(fields.next()?.parse().ok()?)?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Process { pid, parent, group, session, start })
}

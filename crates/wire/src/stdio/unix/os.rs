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

/// The same for a process with several threads: each has a list of its own.
pub(crate) fn all_children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
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
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| parse(pid, &stat).is_some())
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

struct Process {
    pid: Pid,
    parent: Pid,
    session: Pid,
}

fn processes(wanted: impl Fn(&Process) -> bool) -> Vec<Pid> {
    let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = listed.filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        parse(pid, &std::fs::read_to_string(entry.path().join("stat")).ok()?)
    });
    stats.filter(wanted).map(|process| process.pid).collect()
}

/// The line of `/proc/PID/stat`, behind the name: state, parent, group, session. `None` for the dead.
fn parse(pid: Pid, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    let session = Pid::from_raw(fields.nth(1)?.parse().ok()?)?;
    Some(Process { pid, parent, session })
}

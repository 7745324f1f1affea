//! The one seam to the operating system: what safe crates do not offer.

#![allow(
    unsafe_code,
    reason = "an inherited descriptor can only be adopted by its number; everything else is safe"
)]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::process::Pid;

/// Takes over a descriptor that our parent left for us at `wanted`, and one at `also`, keeps them from our children, and closes
/// whatever else above stderr was left open by accident. Only the reaper does this, before it owns any other descriptor.
pub(crate) fn adopt_inherited<const N: usize>(
    wanted: RawFd,
    also: [Option<RawFd>; N],
) -> io::Result<(OwnedFd, [Option<OwnedFd>; N])> {
    let (mut found, mut others) = (None, [const { None }; N]);
    for fd in open_descriptors() {
        if fd <= 2 {
            continue;
        }
        // SAFETY: the reaper calls this once, first thing, single-threaded; nothing in this process owns a descriptor
        // above 2 yet, so what is open was inherited and is ours to own. The listing's own descriptor is closed by
        // then, and closing it again would only fail.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        if fd == wanted {
            found = Some(owned);
        } else if let Some(at) = also.iter().position(|also| *also == Some(fd)) {
            others[at] = Some(owned);
        }
    }
    let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    for kept in others.iter().flatten().chain([&found]) {
        rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((found, others))
}

/// Closes what was left open above stderr. Only for a program that has opened nothing itself yet.
pub(crate) fn close_inherited() {
    for fd in open_descriptors().into_iter().filter(|fd| *fd > 2) {
        // SAFETY: as above: whoever calls this owns no descriptor above 2 yet.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

/// Without `/proc`, how many numbers are looked at: what our parent opened has low ones.
const LOOKED_AT: RawFd = 1024;

fn open_descriptors() -> Vec<RawFd> {
    let Ok(listed) = std::fs::read_dir("/proc/self/fd") else {
        // SAFETY: the number is only asked about, and nothing else runs in this process that could close it meanwhile.
        let open = |fd: &RawFd| rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(*fd) }).is_ok();
        return (0..LOOKED_AT).filter(open).collect();
    };
    let names = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    let mut numbers: Vec<RawFd> = names.collect();
    // The listing had a descriptor of its own, which is closed by now: only what is still there counts.
    numbers.retain(|fd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok());
    numbers
}

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

//! The calls of macOS that safe crates do not offer.

#![allow(
    unsafe_code,
    reason = "libproc has no safe interface here, and a kqueue cannot know that what it watches stays open"
)]

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use libc::{c_int, c_void, pid_t};
use rustix::buffer::spare_capacity;
use rustix::event::kqueue::{Event, EventFilter, EventFlags, kevent};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::stdio::unix::descent::{Lineage, Look, Process, Start};

/// How many numbers a list has room for at first, and at last.
const ROOM: usize = 64;
const MOST: usize = 1 << 17;

/// The processes whose parent has this number.
pub(super) fn children(of: Pid) -> Vec<Pid> {
    // SAFETY: the call fills at most as many bytes as it is told that there are.
    list(|buffer, bytes| unsafe { libc::proc_listchildpids(of.as_raw_nonzero().get(), buffer, bytes) })
}

/// The members of a group.
pub(super) fn group(group: Pid) -> Vec<Pid> {
    // SAFETY: as above.
    list(|buffer, bytes| unsafe { libc::proc_listpgrppids(group.as_raw_nonzero().get(), buffer, bytes) })
}

/// Everybody of the user that we run as.
const PROC_UID_ONLY: u32 = 4;

/// The living processes of this user in a session, but for its leader, whose number nobody else can have: it leads, or nobody has
/// waited for it.
pub(in super::super) fn session(leader: Pid) -> Vec<Process> {
    let user = rustix::process::geteuid().as_raw();
    // SAFETY: as above.
    let users = list(|buffer, bytes| unsafe { libc::proc_listpids(PROC_UID_ONLY, user, buffer, bytes) });
    let is_in = |pid: Pid| rustix::process::getsid(Some(pid)) == Ok(leader);
    let mut found = Vec::new();
    for pid in users.into_iter().filter(|pid| *pid != leader) {
        // It is asked for again: another may have got the number in between. Who was looked at before that is signalled by nobody.
        if is_in(pid)
            && let Look::Lives { start, .. } = look(pid)
            && is_in(pid)
        {
            found.push(Process { pid, start });
        }
    }
    found
}

/// The numbers that the call wrote. Systems differ in what it returns, numbers or bytes, so that is not counted on: the room is
/// empty before, no process has the number 0, and a list that leaves no room may be longer.
fn list(call: impl Fn(*mut c_void, c_int) -> c_int) -> Vec<Pid> {
    let mut room = ROOM;
    loop {
        let mut numbers: Vec<pid_t> = vec![0; room];
        let bytes = c_int::try_from(room * size_of::<pid_t>()).unwrap_or(c_int::MAX);
        if call(numbers.as_mut_ptr().cast(), bytes) <= 0 {
            return Vec::new();
        }
        let is_full = numbers.last().is_some_and(|last| *last != 0);
        if is_full && room < MOST {
            room *= 4;
            continue;
        }
        return numbers.into_iter().filter(|number| *number > 0).filter_map(Pid::from_raw).collect();
    }
}

/// What there is under a number now. One that ended and was not waited for counts as gone.
pub(super) fn look(pid: Pid) -> Look {
    let info = match info(pid) {
        Ok(info) => info,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Look::Others,
        Err(_) => return Look::Gone,
    };
    if info.pbi_status == libc::SZOMB {
        return Look::Gone;
    }
    let number = |number: u32| i32::try_from(number).ok().and_then(Pid::from_raw);
    Look::Lives {
        start: Start { seconds: info.pbi_start_tvsec, micros: info.pbi_start_tvusec },
        parent: number(info.pbi_ppid),
        group: number(info.pbi_pgid),
    }
}

/// What is told of everybody's processes, and never changes but with the program that one runs. Not in Apple's public headers; where
/// there is none, nothing is told.
const PROC_PIDUNIQIDENTIFIERINFO: c_int = 17;

/// As the kernel has it: `struct proc_uniqidentifierinfo`.
#[repr(C)]
struct UniqueInfo {
    program: [u8; 16],
    own: u64,
    parent: u64,
    versions: [i32; 2],
    reserved: [u64; 2],
}

/// The lineage of what is under a number, also if it has ended and nobody has waited for it.
pub(super) fn lineage(pid: Pid) -> Option<Lineage> {
    /// Zombies too.
    const DEAD_TOO: u64 = 1;
    let mut info = MaybeUninit::<UniqueInfo>::zeroed();
    let bytes = c_int::try_from(size_of::<UniqueInfo>()).unwrap_or(c_int::MAX);
    let number = pid.as_raw_nonzero().get();
    // SAFETY: there is room for the bytes that it is told of, and they are all zero before, which is a value of the type.
    let (written, info) = unsafe {
        let buffer = info.as_mut_ptr().cast();
        let written = libc::proc_pidinfo(number, PROC_PIDUNIQIDENTIFIERINFO, DEAD_TOO, buffer, bytes);
        (written, info.assume_init())
    };
    (written == bytes && info.own != 0).then_some(Lineage { own: info.own, parent: info.parent })
}

/// Whether a process was stopped by a signal.
pub(super) fn is_stopped(pid: Pid) -> bool {
    info(pid).is_ok_and(|info| info.pbi_status == libc::SSTOP)
}

fn info(pid: Pid) -> io::Result<libc::proc_bsdinfo> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>();
    let bytes = c_int::try_from(size).unwrap_or(c_int::MAX);
    let number = pid.as_raw_nonzero().get();
    // SAFETY: there is room for the bytes that it is told of, and they are all zero before, which is a value of the type.
    let (written, info) = unsafe {
        let buffer = info.as_mut_ptr().cast();
        let written = libc::proc_pidinfo(number, libc::PROC_PIDTBSDINFO, 0, buffer, bytes);
        (written, info.assume_init())
    };
    if written < bytes { Err(io::Error::last_os_error()) } else { Ok(info) }
}

/// Adds something to be heard of. It is heard of until it ends.
pub(super) fn add(queue: &OwnedFd, filter: EventFilter) -> Result<(), Errno> {
    let change = Event::new(filter, EventFlags::ADD, std::ptr::null_mut());
    let mut none: [Event; 0] = [];
    loop {
        // SAFETY: the only descriptor that is ever added is the control socket, which lives as long as the queue.
        return match unsafe { kevent(queue, &[change], &mut none, Some(Duration::ZERO)) } {
            Ok(_) => Ok(()),
            Err(Errno::INTR) => continue,
            Err(error) => Err(error),
        };
    }
}

/// Waits until something is heard, or this time is over.
pub(super) fn wait(queue: &OwnedFd, events: &mut Vec<Event>, patience: Duration) -> Result<(), Errno> {
    // SAFETY: nothing is added here.
    unsafe { kevent(queue, &[], spare_capacity(events), Some(patience)) }.map(drop)
}

/// Whether this is the thread that `main` runs on.
pub(in super::super) fn on_main_thread() -> bool {
    // SAFETY: the call takes nothing and changes nothing.
    unsafe { libc::pthread_main_np() == 1 }
}

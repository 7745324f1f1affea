//! The reaper: a process between us and a server, so that nothing of the server's tree outlives either.
//!
//! It leads a session of its own and is the subreaper of everything below it, so a grandchild that leaves its group or
//! forks twice still ends up as its child. It watches us by pidfd (and the control socket, second), and the server by
//! pidfd. When either is gone, when it is told to, or when its [`Lifeline`](super::Lifeline) is over, it kills what is left and goes. It is single-threaded, uses a
//! megabyte, and reads nothing but one-byte orders.
//!
//! Where the kernel refuses a pidfd (old kernels, seccomp) it watches its parent by the control socket and the server by a
//! thread that waits for it. Where it may not be a subreaper, or has no `/proc` to find orphans in, it kills the server's
//! group and session: a process that has left both escapes.
//!
//! A server runs as the same user, so it can stop its reaper, or kill it. When we are gone, the kernel wakes a stopped reaper
//! (`PR_SET_PDEATHSIG` with SIGCONT: that it also fires when only the *thread* that spawned the reaper ends does no harm
//! then). What a killed one leaves behind comes to us, if this process adopts ([`super::guard::adopt_orphans`]).
//!
//! The server itself has no such signal: it misses grandchildren, and they are found by their parent as long as that lives.

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};

use super::asked::{exit_of, let_go_of_pipes, nap_for, send};
use super::handed::{CONTROL_FD, HELD, HELD_FD, LIFELINE, LIFELINE_FD};
use super::reaper_program::MARKER;
use super::{asked, inherited, os, signals};
use crate::stdio::control::{KILL, Record, TERM, VERSION};

/// The hidden subcommand by which a binary of ours knows that it is to be a reaper.
pub const SUBCOMMAND: &str = asked::SUBCOMMAND;

/// There are reapers on this system.
pub(super) const EXISTS: bool = true;

/// What it is called in a list of processes.
const NAME: &CStr = c"lt-reaper";

/// How long it tries to kill a tree that will not die when its parent is gone, in milliseconds. While there is a parent, it
/// never stops trying.
const GIVE_UP: u32 = 10_000;

/// How many processes that stay behind are named.
const LEFT_NAMED: usize = 8;

/// How often it tells its parent that it is still killing, in milliseconds: a reaper that says nothing is taken for stopped.
const TELL_BUSY: u32 = 1000;

/// How often it looks for dead orphans while nothing happens.
const BURY: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Becomes the reaper if the arguments say so. A host program calls this first thing in `main`, before it has threads: not
/// inside `#[tokio::main]`, and not in a `#[test]`.
///
/// This call is also how a program says that it can be started as a reaper: without it linetender never starts the
/// program that it runs in, and looks for `linetender-reaper` or `linetender` on `PATH` instead. A call that comes too
/// late (inside an async runtime, or on another thread than the main one) does not count, and the error of a line that
/// finds no reaper says so.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(done) = linetender_wire::stdio::reaper::run_if_asked() {
///         return done;
///     }
///     // … the program itself …
///     ExitCode::SUCCESS
/// }
/// ```
#[must_use]
pub fn run_if_asked() -> Option<ExitCode> {
    asked::run(reap)
}

struct Reaper {
    control: OwnedFd,
    /// Watched by the control socket alone where there are no pidfds.
    parent: Option<OwnedFd>,
    parent_pid: Pid,
    server: Pid,
    /// Whether every orphan of the tree becomes our child.
    adopts: bool,
    /// When this is over, everything goes.
    lifeline: Option<OwnedFd>,
}

/// Why the server has to go, if it is not gone already.
enum Wake {
    Order(u8),
    ParentGone,
    ServerGone,
    TimeOver,
}

fn reap(parent: Pid, program: &OsString, args: &[OsString]) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "our parent says there what it left for us")]
    let has = |name: &str| std::env::var_os(name).is_some();
    let also = [has(HELD).then_some(HELD_FD), has(LIFELINE).then_some(LIFELINE_FD)];
    // What is held is held until we end, and not by the server.
    let (control, [_held, lifeline]) = inherited::adopt(CONTROL_FD, also)?;
    // What our parent ignores or blocks is its own business: with SIGCHLD ignored there are no exit statuses.
    signals::reset();
    // Whoever kills all processes of our name must not kill the one that cleans up after them.
    let _ = rustix::thread::set_name(NAME);
    // A failed setsid means that we lead a group already; the tree is found by parentage anyway.
    let _ = rustix::process::setsid();
    // Orphans that cannot be found must not become our children: we would wait for them for ever.
    let adopts = os::lists_children() && {
        let us = Some(rustix::process::getpid());
        rustix::process::set_child_subreaper(us).is_ok()
    };
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    // If the parent died in between, its number may be somebody else's now: it is not our parent any more.
    let parent_fd = rustix::process::pidfd_open(parent, PidfdFlags::empty()).ok();
    if rustix::process::getppid() != Some(parent) {
        return Ok(());
    }
    let _ = send(Record::Ready(VERSION), &control);
    // Everything that can fail comes before the server: from then on there is somebody to clean up after.
    let null = File::options().read(true).write(true).open("/dev/null");
    // In a root without devices an empty file in memory is as good.
    let empty = || memfd_create("null", MemfdFlags::CLOEXEC).map(File::from);
    let null = match null.or_else(|error| empty().map_err(|_| error)) {
        Ok(null) => null,
        Err(error) => return send(Record::Refused(error.raw_os_error().unwrap_or(0)), &control),
    };
    if lifeline.as_ref().is_some_and(is_over) {
        let _ = send(Record::Expired, &control);
        return send(Record::Clear, &control);
    }
    let mut command = Command::new(program);
    command.args(args).env_remove(MARKER).env_remove(HELD).env_remove(LIFELINE).process_group(0);
    let spawned = command.spawn();
    let server = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return send(Record::Failed(error.raw_os_error().unwrap_or(0)), &control),
    };
    // If nobody listens any more, the loop below finds out.
    let _ = send(Record::Spawned(server.as_raw_nonzero().get()), &control);
    let reaper = Reaper { control, parent: parent_fd, parent_pid: parent, server, adopts, lifeline };
    let watched =
        let_go_of_pipes(&null).and_then(|()| exit_watch(server)).and_then(|ended| reaper.watch(&ended));
    watched.or_else(|_| reaper.clear())
}

fn is_over(lifeline: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(lifeline, PollFlags::IN)], Some(&now)), Ok(1..))
}

/// A descriptor that polls as ready once the server has ended. The server can still be waited for then.
fn exit_watch(server: Pid) -> io::Result<OwnedFd> {
    if let Ok(pidfd) = rustix::process::pidfd_open(server, PidfdFlags::empty()) {
        return Ok(pidfd);
    }
    let (ended, held) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    std::thread::Builder::new().spawn(move || {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(rustix::process::waitid(WaitId::Pid(server), how), Err(rustix::io::Errno::INTR)) {}
        drop(held);
    })?;
    Ok(ended)
}

impl Reaper {
    fn watch(&self, ended: &OwnedFd) -> io::Result<()> {
        loop {
            match self.wait(ended)? {
                Wake::Order(TERM) => {
                    let _ = rustix::process::kill_process_group(self.server, Signal::TERM);
                }
                Wake::ServerGone => {
                    self.report_exit();
                    return self.clear();
                }
                Wake::TimeOver => {
                    let _ = send(Record::Expired, &self.control);
                    return self.clear();
                }
                Wake::Order(KILL) | Wake::Order(_) | Wake::ParentGone => return self.clear(),
            }
        }
    }

    fn wait(&self, ended: &OwnedFd) -> io::Result<Wake> {
        loop {
            let mut fds = [
                PollFd::new(ended, PollFlags::IN),
                PollFd::new(&self.control, PollFlags::IN),
                // Without a pidfd of the parent, or a timer, the socket stands in their place.
                PollFd::new(self.parent.as_ref().unwrap_or(&self.control), PollFlags::IN),
                PollFd::new(self.lifeline.as_ref().unwrap_or(&self.control), PollFlags::IN),
            ];
            match poll(&mut fds, Some(&BURY)) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(0) if rustix::process::getppid() != Some(self.parent_pid) => return Ok(Wake::ParentGone),
                Ok(0) => {
                    self.bury_orphans();
                    continue;
                }
                other => other?,
            };
            let [server, control, parent, lifeline] = fds.map(|fd| !fd.revents().is_empty());
            if server {
                return Ok(Wake::ServerGone);
            }
            if parent && self.parent.is_some() {
                return Ok(Wake::ParentGone);
            }
            if lifeline && self.lifeline.is_some() {
                return Ok(Wake::TimeOver);
            }
            if control {
                let mut order = [0];
                return match rustix::io::read(self.control.as_fd(), &mut order) {
                    Ok(1) => Ok(Wake::Order(order[0])),
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
                    Ok(_) | Err(_) => Ok(Wake::ParentGone),
                };
            }
        }
    }

    /// Helpers that the server left to themselves are our children now. Whoever adopts has to bury.
    fn bury_orphans(&self) {
        for child in os::children() {
            if child != self.server {
                let _ = rustix::process::waitpid(Some(child), WaitOptions::NOHANG);
            }
        }
    }

    fn report_exit(&self) {
        if let Ok(Some((_, status))) = rustix::process::waitpid(Some(self.server), WaitOptions::NOHANG) {
            let _ = send(Record::Exited(exit_of(status)), &self.control);
        }
    }

    /// What is left of the tree, as far as it can be found.
    fn below(&self) -> Vec<Pid> {
        if self.adopts { os::children() } else { os::family() }
    }

    /// What is left, if all of it is other users': something that the server started with `sudo`, say. It cannot be killed,
    /// and may live for ever. The server itself is waited for in any case, or there would be two.
    fn only_others(&self) -> Option<Vec<Pid>> {
        let below = self.below();
        let is_others = |child: &Pid| {
            *child != self.server
                && rustix::process::test_kill_process(*child) == Err(rustix::io::Errno::PERM)
        };
        (!below.is_empty() && below.iter().all(is_others)).then_some(below)
    }

    /// Kills everything below us until nothing is left, and says so.
    fn clear(&self) -> io::Result<()> {
        let mut waited = 0;
        let mut told = 0;
        loop {
            let _ = rustix::process::kill_process_group(self.server, Signal::KILL);
            for child in self.below() {
                let _ = rustix::process::kill_process(child, Signal::KILL);
            }
            loop {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    // An orphan of the one that just died is ours by now: look again before believing there is none.
                    Ok(Some((pid, status))) if pid == self.server => {
                        let _ = send(Record::Exited(exit_of(status)), &self.control);
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) if self.adopts || self.below().is_empty() => {
                        return send(Record::Clear, &self.control);
                    }
                    Err(_) => break,
                }
            }
            if let Some(others) = self.only_others() {
                for child in others.iter().take(LEFT_NAMED) {
                    send(Record::Left(child.as_raw_nonzero().get()), &self.control)?;
                }
                return send(Record::Clear, &self.control);
            }
            // Between two looks: a tree takes a moment to die. The wait is short at first, then longer.
            let nap = if waited < 20 { 1 } else { 20 };
            waited += nap;
            nap_for(Duration::from_millis(nap.into()));
            if waited - told >= TELL_BUSY {
                told = waited;
                if send(Record::Busy, &self.control).is_err() && waited >= GIVE_UP {
                    return Ok(());
                }
            }
        }
    }
}

//! The reaper: a process between us and a server, so that nothing of the server's tree outlives either.
//!
//! It leads a session of its own and is the subreaper of everything below it, so a grandchild that leaves its group or
//! forks twice still ends up as its child. It watches us by pidfd (and the control socket, second), and the server by
//! pidfd. When we are gone, or when it is told to, it ends the server by its `ladder`; when the server is gone, it ends what is
//! left; when its [`Lifeline`](super::Lifeline) is over, it kills all of it at once. Then it goes. It is single-threaded, uses a
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

mod clear;
mod ladder;
mod left;

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};
use rustix::time::{ClockId, clock_gettime};

use self::ladder::{Ladder, Rung, Time};
use self::left::Left;
use super::asked::{exit_of, let_go_of_pipes, send};
use super::handed::{CONTROL_FD, ENDS, Ends, HELD, HELD_FD, LIFELINE, LIFELINE_FD};
use super::reaper_program::MARKER;
use super::{asked, inherited, os, signals};
use crate::stdio::control::{CLOSE, INT, LOOK, Record, TERM, UP, VERSION};

/// The hidden subcommand by which a binary of ours knows that it is to be a reaper.
pub const SUBCOMMAND: &str = asked::SUBCOMMAND;

/// There are reapers on this system.
pub(super) const EXISTS: bool = true;

/// What it is called in a list of processes.
const NAME: &CStr = c"lt-reaper";

/// How often it looks at its children while nothing happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

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
    /// Nobody gives orders any more.
    is_alone: bool,
    server: Pid,
    /// Whether every orphan of the tree becomes our child.
    adopts: bool,
    /// When this is over, everything goes.
    lifeline: Option<OwnedFd>,
    ladder: Ladder,
    left: Left,
    /// A server that is not up by then is taken for one that is.
    up_at: Time,
}

/// What it woke up for.
enum Wake {
    Order(u8),
    ParentGone,
    ServerGone,
    TimeOver,
    Nothing,
}

/// Now, by a clock that nobody sets.
fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn reap(parent: Pid, program: &OsString, args: &[OsString]) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "our parent says there what it left for us")]
    let has = |name: &str| std::env::var_os(name).is_some();
    #[expect(clippy::disallowed_methods, reason = "the same")]
    let ends = std::env::var(ENDS).map_or_else(|_| Ends::default(), |text| Ends::decode(&text));
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
    // A server that writes while it saves its work must not meet a broken pipe because our parent is gone already.
    let _read_ends = [1, 2].map(|end| {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        File::options().read(true).custom_flags(nonblocking).open(format!("/proc/self/fd/{end}"))
    });
    let mut command = Command::new(program);
    command.args(args).process_group(0);
    for ours in [MARKER, HELD, LIFELINE, ENDS] {
        command.env_remove(ours);
    }
    #[expect(clippy::disallowed_methods, reason = "a reaper has this one child, and knows its number")]
    let spawned = command.spawn();
    let server = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return send(Record::Failed(error.raw_os_error().unwrap_or(0)), &control),
    };
    // If nobody listens any more, the loop below finds out.
    let _ = send(Record::Spawned(server.as_raw_nonzero().get()), &control);
    let left = if ends.spares && adopts { Left::sparing() } else { Left::nothing() };
    let (ladder, up_at) = (Ladder::new(ends), now() + ends.start);
    let mut reaper = Reaper {
        control,
        parent: parent_fd,
        parent_pid: parent,
        is_alone: false,
        server,
        adopts,
        lifeline,
        ladder,
        left,
        up_at,
    };
    let watched =
        let_go_of_pipes(&null).and_then(|()| exit_watch(server)).and_then(|ended| reaper.watch(&ended));
    watched.or_else(|_| reaper.clear(now()))
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
    /// Watches until there is a reason to end everything, and ends everything.
    fn watch(&mut self, ended: &OwnedFd) -> io::Result<()> {
        let mut look_at = now() + LOOK_INTERVAL;
        loop {
            let time = now();
            match self.ladder.due(time) {
                Some(Rung::Term) => self.signal_server(Signal::TERM),
                Some(Rung::Kill) => return self.clear(time),
                None => {}
            }
            if time >= look_at {
                look_at = time + LOOK_INTERVAL;
                self.left.look(self.server);
            }
            let until = self.ladder.next().map_or(look_at, |next| next.min(look_at));
            match self.wait(ended, until.saturating_sub(time))? {
                Wake::Nothing => {}
                Wake::Order(UP) => self.up_at = time,
                Wake::Order(LOOK) => self.left.look(self.server),
                Wake::Order(CLOSE) => {
                    self.left.look(self.server);
                    self.ladder.close(time);
                    let _ = send(Record::Closing, &self.control);
                }
                Wake::Order(order @ (INT | TERM)) => {
                    self.left.look(self.server);
                    self.signal_server(if order == INT { Signal::INT } else { Signal::TERM });
                    self.ladder.signal(time);
                    let _ = send(Record::Closing, &self.control);
                }
                // It saves its work. One that still starts may finish that: whoever left did not wait for it.
                Wake::ParentGone => {
                    self.is_alone = true;
                    self.left.look(self.server);
                    self.ladder.close(time.max(self.up_at));
                }
                Wake::ServerGone => {
                    self.report_exit();
                    return self.clear(self.ladder.kill_rest_at(time));
                }
                Wake::TimeOver => {
                    let _ = send(Record::Expired, &self.control);
                    // Another may start it elsewhere.
                    self.left = Left::nothing();
                    return self.clear(time);
                }
                Wake::Order(_) => {
                    self.left.look(self.server);
                    return self.clear(self.ladder.kill_rest_at(time));
                }
            }
        }
    }

    fn wait(&mut self, ended: &OwnedFd, patience: Duration) -> io::Result<Wake> {
        // Without a pidfd of the parent, or a timer, the server's stands in their place; and when the parent is gone, too.
        let control = if self.is_alone { ended } else { &self.control };
        let parent = self.parent.as_ref().filter(|_| !self.is_alone);
        let mut fds = [
            PollFd::new(ended, PollFlags::IN),
            PollFd::new(control, PollFlags::IN),
            PollFd::new(parent.unwrap_or(ended), PollFlags::IN),
            PollFd::new(self.lifeline.as_ref().unwrap_or(ended), PollFlags::IN),
        ];
        // A millisecond more, so that what is due then is.
        let patience = patience + Duration::from_millis(1);
        let tv_sec = i64::try_from(patience.as_secs()).unwrap_or(i64::MAX);
        match poll(&mut fds, Some(&Timespec { tv_sec, tv_nsec: patience.subsec_nanos().into() })) {
            Err(rustix::io::Errno::INTR) => return Ok(Wake::Nothing),
            Ok(0) if !self.is_alone && rustix::process::getppid() != Some(self.parent_pid) => {
                return Ok(Wake::ParentGone);
            }
            Ok(0) => return Ok(Wake::Nothing),
            other => other?,
        };
        let [server, control, parent, lifeline] = fds.map(|fd| !fd.revents().is_empty());
        Ok(if server {
            Wake::ServerGone
        } else if lifeline {
            Wake::TimeOver
        } else if control {
            // An order that came before the end of whoever gave it.
            let mut order = [0];
            match rustix::io::read(self.control.as_fd(), &mut order) {
                Ok(1) => Wake::Order(order[0]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Wake::Nothing,
                Ok(_) | Err(_) => Wake::ParentGone,
            }
        } else if parent {
            Wake::ParentGone
        } else {
            Wake::Nothing
        })
    }

    /// Signals the server's group, but for what left on purpose and is in it all the same.
    fn signal_server(&self, signal: Signal) {
        if self.left.living().iter().all(|left| left.group != self.server) {
            let _ = rustix::process::kill_process_group(self.server, signal);
            return;
        }
        for process in self.tree().into_iter().filter(|process| process.group == self.server) {
            let _ = rustix::process::kill_process(process.pid, signal);
        }
    }

    fn report_exit(&self) {
        if let Ok(Some((_, status))) = rustix::process::waitpid(Some(self.server), WaitOptions::NOHANG) {
            let _ = send(Record::Exited(exit_of(status)), &self.control);
        }
    }
}

//! The reaper of macOS: a process between us and a server, so that nothing of the server's tree outlives either.
//!
//! It hears of us, of the control socket and of the server by a kqueue. When we or the server are gone, or when it is told to, it
//! kills what it knows of the tree and goes. Orphans do not come to it there: it learns of the server's descendants while their
//! parents live, as [`descent`](super::super::descent) has it.
//!
//! A server runs as the same user, so it can stop its reaper, or kill it. Nobody wakes a stopped one when we are gone.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::Pid;

use super::kernel::Watching;
use super::queue;
use crate::stdio::control::{Record, VERSION};
use crate::stdio::unix::asked::{let_go_of_pipes, send};
use crate::stdio::unix::descent::Reaping;
use crate::stdio::unix::handed::{CONTROL_FD, ENDS, HELD, HELD_FD};
use crate::stdio::unix::reaper_program::MARKER;
use crate::stdio::unix::{asked, inherited, signals};

/// The hidden subcommand by which a binary of ours knows that it is to be a reaper.
pub const SUBCOMMAND: &str = asked::SUBCOMMAND;

/// There are reapers on this system.
pub(in super::super) const EXISTS: bool = true;

/// Becomes the reaper if the arguments say so. A host program calls this first thing in `main`, before it has threads: not
/// inside `#[tokio::main]`, and not in a `#[test]`.
///
/// This call is also how a program says that it can be started as a reaper: without it linetender never starts the
/// program that it runs in, and looks for `linetender-reaper` or `linetender` on `PATH` instead. A call that comes too
/// late (inside an async runtime, or on another thread than the main one) does not count, and the error of a line that
/// finds no reaper says so.
#[must_use]
pub fn run_if_asked() -> Option<ExitCode> {
    asked::run(reap)
}

fn reap(parent: Pid, program: &OsString, args: &[OsString]) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "our parent says there what it left for us")]
    let holds = std::env::var_os(HELD).is_some();
    // What is held is held until we end, and not by the server.
    let (control, [_held]) = inherited::adopt(CONTROL_FD, [holds.then_some(HELD_FD)])?;
    // What our parent ignores or blocks is its own business: with SIGCHLD ignored there are no exit statuses.
    signals::reset();
    // A failed setsid means that we lead a group already.
    let _ = rustix::process::setsid();
    if rustix::process::getppid() != Some(parent) {
        return Ok(());
    }
    let _ = send(Record::Ready(VERSION), &control);
    // Everything that can fail comes before the server: from then on there is somebody to clean up after.
    let needed = File::options().read(true).write(true).open("/dev/null").and_then(|null| {
        let queue = queue::open()?;
        let watching = Watching::of(control.try_clone()?, parent, queue)?;
        Ok((null, watching))
    });
    let (null, mut watching) = match needed {
        Ok(needed) => needed,
        Err(error) => return send(Record::Refused(error.raw_os_error().unwrap_or(0)), &control),
    };
    let mut command = Command::new(program);
    command.args(args).env_remove(MARKER).env_remove(HELD).env_remove(ENDS).process_group(0);
    #[expect(clippy::disallowed_methods, reason = "a reaper has this one child, and knows its number")]
    let spawned = command.spawn();
    let server = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => return send(Record::Failed(error.raw_os_error().unwrap_or(0)), &control),
    };
    watching.serve(server);
    // If nobody listens any more, the loop below finds out.
    let _ = send(Record::Spawned(server.as_raw_nonzero().get()), &control);
    let mut reaping = Reaping::of(server, watching);
    // With a copy of the pipes that stays open nobody would hear that the server closed them: it goes instead.
    if let_go_of_pipes(&null).is_err() {
        reaping.end();
    } else {
        reaping.run();
    }
    Ok(())
}

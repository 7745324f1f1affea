//! What every reaper does, whatever it finds its tree by: it learns from its arguments what it is to run, lets go of the server's
//! pipes, and reports.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, WaitStatus};

use super::{descriptors, guard, reaper_program};
use crate::seen::Exit;
use crate::stdio::control::Record;

/// The hidden subcommand by which a binary of ours knows that it is to be a reaper.
pub(super) const SUBCOMMAND: &str = "__linetender-reap";

/// Reaps if the arguments say so.
pub(super) fn run(reap: impl FnOnce(Pid, &OsString, &[OsString]) -> io::Result<()>) -> Option<ExitCode> {
    reaper_program::say_able();
    let mut args = std::env::args_os().skip(1);
    if args.next()? != SUBCOMMAND {
        return None;
    }
    let parent = args.next().and_then(|pid| pid.to_str().and_then(|pid| pid.parse().ok()));
    let soft = args.next().and_then(|soft| soft.to_str().and_then(|soft| soft.parse().ok()));
    let argv: Vec<OsString> = args.collect();
    guard::hide();
    if let Some(soft) = soft {
        descriptors::set_back(soft);
    }
    Some(match (parent.and_then(Pid::from_raw), argv.split_first()) {
        (Some(parent), Some((program, args))) => match reap(parent, program, args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // Before the server has them, the parent reads these pipes: it can show this.
                eprintln!("linetender-reaper: {error}");
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::FAILURE,
    })
}

/// The server has the pipes; a copy of ours would keep end of file and POLLERR from ever coming.
pub(super) fn let_go_of_pipes(null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

/// Reports, whole.
pub(super) fn send(record: Record, control: &OwnedFd) -> io::Result<()> {
    let bytes = record.encode();
    let mut sent = 0;
    while sent < bytes.len() {
        match send_some(control, &bytes[sent..]) {
            Ok(more) => sent += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn send_some(control: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::net::send(control, bytes, rustix::net::SendFlags::NOSIGNAL)
}

/// SIGPIPE stays ignored in a reaper.
#[cfg(not(target_os = "linux"))]
fn send_some(control: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    rustix::net::send(control, bytes, rustix::net::SendFlags::empty())
}

/// Sleeps without a banned call: nothing to poll is a sleep.
pub(super) fn nap_for(time: Duration) {
    let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
    let _ = poll(&mut [], Some(&time));
}

pub(super) fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Exit::Signal(signal),
        (status, None) => Exit::Status(status.unwrap_or(0)),
    }
}

//! How a server is started: by its reaper, or by us.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::mpsc;

use super::handed::{CONTROL_FD, ENDS, Ends, HELD, HELD_FD, LIFELINE, LIFELINE_FD};
use super::stdin::{ToServer, to_server};
use super::tree::Tree;
use super::{descriptors, guard, local, reaper, reaper_program, signals};
use crate::seam::{Event, Listener};
use crate::seen::Seen;
use crate::stdio::child::{Child, Env, Launch, Program, Reaper, check_dir};
use crate::stdio::keeper::plain;
use crate::stdio::platform::Started;
use crate::stdio::process::Process;
use crate::tasks::spawn_last;

/// Starts a process of this machine's, below its reaper if it gets one.
pub(in crate::stdio) fn start(
    launch: &Launch,
    listener: Arc<dyn Listener>,
    events: mpsc::Sender<Event>,
) -> Result<Child, Seen> {
    match &launch.reaper {
        Reaper::Binary(reaper) if reaper::EXISTS => start_under(launch, Some(reaper), listener, events),
        Reaper::Find if reaper::EXISTS => {
            start_under(launch, Some(&reaper_program::find()?), listener, events)
        }
        _ if launch.lifeline.is_some() => {
            Err(Seen::NoReaper { reason: "a server with a lease needs one".to_owned() })
        }
        _ => start_under(launch, None, listener, events),
    }
}

fn start_under(
    launch: &Launch,
    reaper: Option<&PathBuf>,
    listener: Arc<dyn Listener>,
    events: mpsc::Sender<Event>,
) -> Result<Child, Seen> {
    reaper_program::check_mark()?;
    signals::keep_exit_statuses();
    let failed = |error: io::Error| Seen::NoProcess { reason: error.to_string() };
    let (control, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
    control.set_nonblocking(true).map_err(failed)?;
    let control = UnixStream::from_std(control).map_err(failed)?;
    check_dir(&launch.program)?;
    let (platform, (stdin, stdout, stderr)) = if let Some(reaper) = reaper {
        let process = spawn(launch, reaper, theirs.into());
        let mut process = process.map_err(|error| no_reaper(reaper, &error))?;
        let pipes = pipes(&mut process).map_err(failed)?;
        (Some(Tree { process, program: reaper.clone() }), pipes)
    } else {
        (None, spawn_here(launch, theirs).map_err(failed)?)
    };
    Ok(Child::of(Started { platform, stdin, stdout, stderr, control }, launch, listener, events))
}

/// A command with the server's surroundings.
fn command(program: &Program, run: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(run);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = &program.dir {
        command.current_dir(dir);
    }
    // Of two values under one name the later one holds.
    match &program.env {
        Env::Ours => {}
        Env::OursAnd(variables) => {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
        }
        Env::Only(variables) => {
            command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        }
    }
    command
}

/// A command of ours beside the server: it is killed, with its process group, when nobody waits for it.
pub(in crate::stdio) struct Helper {
    pub(in crate::stdio) process: Process,
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It was not waited for, so the number is its own.
        if let Some(group) = self.process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Starts `PROGRAM… WORDS…` in the server's surroundings. Nobody hears what it prints, but for stderr.
pub(in crate::stdio) fn helper(program: &Program, words: &[&str]) -> io::Result<Helper> {
    let (run, args) = program.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = command(program, run);
    command.args(args).args(words).stdin(Stdio::null()).stdout(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    signals::keep_exit_statuses();
    signals::reset_in(command.as_std_mut());
    Ok(Helper { process: Process::spawn(&mut command)? })
}

/// A reaper that is not there or may not be run is the configuration's fault; that there is no room for one is not.
fn no_reaper(reaper: &Path, error: &io::Error) -> Seen {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
            let reason = format!("cannot run {}: {}", reaper.display(), plain(error));
            Seen::NoReaper { reason }
        }
        _ => Seen::NoProcess { reason: error.to_string() },
    }
}

/// Starts the reaper, which starts the server on the same pipes.
fn spawn(launch: &Launch, reaper: &Path, control: OwnedFd) -> io::Result<Process> {
    let mut command = command(&launch.program, reaper);
    let soft = descriptors::before().map_or_else(|| "-".to_owned(), |soft| soft.to_string());
    command.env(reaper_program::MARKER, std::process::id().to_string());
    command.env(ENDS, Ends::of(&launch.close, launch.start).encode());
    command.arg(reaper::SUBCOMMAND).arg(std::process::id().to_string()).arg(soft).args(&launch.program.argv);
    let mut mappings = vec![FdMapping { parent_fd: control, child_fd: CONTROL_FD }];
    if let Some(held) = guard::held_by_reapers() {
        command.env(HELD, "1");
        mappings.push(FdMapping { parent_fd: held.try_clone()?, child_fd: HELD_FD });
    }
    if let Some(lifeline) = &launch.lifeline {
        command.env(LIFELINE, "1");
        mappings.push(FdMapping { parent_fd: lifeline.handed()?, child_fd: LIFELINE_FD });
    }
    command.as_std_mut().fd_mappings(mappings).map_err(io::Error::other)?;
    Process::root(&mut command)
}

/// Starts the server itself, and plays the reaper's part here. That it could not be started is for the keeper to tell.
fn spawn_here(launch: &Launch, control: std::os::unix::net::UnixStream) -> io::Result<Pipes> {
    control.set_nonblocking(true)?;
    let control = UnixStream::from_std(control)?;
    let (run, args) = launch.program.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = command(&launch.program, run);
    signals::reset_in(command.as_std_mut());
    let started = Process::root(command.args(args).process_group(0));
    let (pipes, started) = match started {
        Ok(mut server) => (pipes(&mut server)?, Ok(server)),
        Err(error) => {
            // Pipes that lead nowhere: everything after this is as if the server had died at once.
            let (to, (from, errors)) = (pipe::pipe()?.0, (pipe::pipe()?.1, pipe::pipe()?.1));
            ((to_server(to), from, errors), Err(error))
        }
    };
    spawn_last(local::watch(started, control));
    Ok(pipes)
}

/// Our ends of a server's stdin, stdout and stderr.
type Pipes = (ToServer, pipe::Receiver, pipe::Receiver);

fn pipes(process: &mut Process) -> io::Result<Pipes> {
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    let stdin = process.stdin.take().ok_or_else(missing)?.into_owned_fd()?;
    let stdout = process.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
    let stderr = process.stderr.take().ok_or_else(missing)?.into_owned_fd()?;
    Ok((
        to_server(pipe::Sender::from_owned_fd(stdin)?),
        pipe::Receiver::from_owned_fd(stdout)?,
        pipe::Receiver::from_owned_fd(stderr)?,
    ))
}

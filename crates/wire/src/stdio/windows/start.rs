//! How a server is started: found, spelt, and put into its job before it runs.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::OwnedHandle;
use std::path::{Component, Path, Prefix};
use std::sync::Arc;

use tokio::sync::mpsc;
use windows_sys::Win32::Foundation::{ERROR_CANCELLED, ERROR_FILE_NOT_FOUND, ERROR_INVALID_PARAMETER};

use super::down::Down;
use super::pipes::Pipe;
use super::process::{Order, Process};
use super::server::{NotBegun, Server, Tree, begin};
use super::up::Up;
use super::{command_line, environment, interpreter, program};
use crate::redact::Redacted;
use crate::seam::{Event, Listener};
use crate::seen::Seen;
use crate::stdio::child::{Child, Launch, Program, check_dir};
use crate::stdio::platform::Started;
use crate::tasks::spawn_last;
use crate::windows::Job;
use crate::windows::wide::wide;

/// More than all records of a server's life take.
const CONTROL: usize = 256;

/// The longest path of a folder that a process can be in: 260 characters with a separator and a zero behind it.
const DEEPEST: usize = 258;

/// Starts a process of this machine's, in a job of its own. Which reaper is wanted makes no difference: the job is one.
pub(in crate::stdio) fn start(
    launch: &Launch,
    listener: Arc<dyn Listener>,
    events: mpsc::Sender<Event>,
) -> Result<Child, Seen> {
    if launch.lifeline.is_some() {
        return Err(Seen::NoReaper { reason: "this system has no leases on servers".to_owned() });
    }
    check_dir(&launch.program)?;
    let failed = |error: io::Error| Seen::NoProcess { reason: error.to_string() };
    let (stdin, stdout, stderr) =
        (Pipe::down().map_err(failed)?, Pipe::up().map_err(failed)?, Pipe::up().map_err(failed)?);
    let job = Job::new().map_err(failed)?;
    let (program, theirs) = (launch.program.clone(), [stdin.theirs, stdout.theirs, stderr.theirs]);
    let platform = Tree::default();
    let (control, reaper) = tokio::io::duplex(CONTROL);
    // That it could not be started is for the keeper to tell.
    let start = move |tree: &Tree| created(&program, theirs, job, tree);
    spawn_last(begin(start, platform.clone(), reaper));
    let (stdin, stdout, stderr) = (Down::new(stdin.ours), Up::new(stdout.ours), Up::new(stderr.ours));
    Ok(Child::of(Started { platform, stdin, stdout, stderr, control }, launch, listener, events))
}

/// The process of a program, in this job.
fn created(program: &Program, theirs: [OwnedHandle; 3], job: Job, tree: &Tree) -> Result<Server, NotBegun> {
    let found = order(program, theirs).map_err(NotBegun::Unfit)?;
    let order = found.ok_or(NotBegun::Code(ERROR_FILE_NOT_FOUND.cast_signed()))?;
    // A successor may run by now.
    if tree.is_given_up() {
        return Err(NotBegun::Code(ERROR_CANCELLED.cast_signed()));
    }
    let process = Process::create(order, &job);
    let process = process.map_err(|error| {
        NotBegun::Code(error.raw_os_error().unwrap_or(ERROR_INVALID_PARAMETER.cast_signed()))
    })?;
    Ok(Server { process, job })
}

/// What the system is told; `None` if there is no such program.
///
/// # Errors
/// If the program cannot be given these arguments: that is the configuration's fault.
fn order(wanted: &Program, [stdin, stdout, stderr]: [OwnedHandle; 3]) -> Result<Option<Order>, Seen> {
    let Some((name, args)) = wanted.argv.split_first() else {
        return Err(Seen::NoProcess { reason: "no program is named".to_owned() });
    };
    wanted.dir.as_deref().map_or(Ok(()), check_depth)?;
    let Some(found) = program::find(wanted) else { return Ok(None) };
    let spell = || -> io::Result<Order> {
        let (program, line) = if program::is_batch(&found) {
            wanted.dir.as_deref().map_or(Ok(()), check_shell_dir)?;
            (interpreter::path()?, command_line::of_batch(&found, args)?)
        } else {
            let line = command_line::of_program(name, args)?;
            (found, line)
        };
        Ok(Order {
            program: wide(program.as_os_str())?,
            line,
            env: environment::block(&wanted.env)?,
            dir: wanted.dir.as_ref().map(|dir| wide(dir.as_os_str())).transpose()?,
            stdin,
            stdout,
            stderr,
        })
    };
    spell().map(Some).map_err(|error| unfit(name, &error))
}

fn unfit(name: &OsStr, error: &io::Error) -> Seen {
    Seen::NotRunnable {
        program: Redacted::head(&name.to_string_lossy(), 200),
        searched: Redacted::default(),
        reason: error.to_string(),
    }
}

/// A process cannot be in a folder with a longer path, and the system would say that of the program.
fn check_depth(dir: &Path) -> Result<(), Seen> {
    if dir.as_os_str().encode_wide().count() <= DEEPEST {
        return Ok(());
    }
    let reason = format!("its path is longer than {DEEPEST} characters, and Windows runs no program there");
    Err(Seen::NoDir { dir: Redacted::head(&dir.to_string_lossy(), 200), reason })
}

/// `cmd.exe` cannot be in a folder without a drive's letter: it says so, and runs the script in the system's own folder. Where nobody
/// asked for a folder that is as good as any; whoever did would have a server that works in the wrong one.
fn check_shell_dir(dir: &Path) -> io::Result<()> {
    let dir = std::path::absolute(dir)?;
    match dir.components().next() {
        Some(Component::Prefix(prefix)) if matches!(prefix.kind(), Prefix::Disk(_)) => Ok(()),
        _ => {
            let dir = dir.display();
            let why =
                format!("a batch file cannot run in the folder {dir}: give it one on a drive with a letter");
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}

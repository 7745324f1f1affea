//! How a server is started: found, spelt, and put into its job before it runs.

use std::ffi::OsStr;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::sync::Arc;

use tokio::sync::mpsc;
use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_INVALID_PARAMETER};

use super::down::Down;
use super::pipes::Pipe;
use super::process::{Order, Process};
use super::server::{Server, Tree, watch};
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
    // That it could not be started is for the keeper to tell.
    let started = match order(&launch.program, [stdin.theirs, stdout.theirs, stderr.theirs])? {
        None => Err(ERROR_FILE_NOT_FOUND.cast_signed()),
        Some(order) => match Process::create(order, &job) {
            Ok(process) => Ok(Arc::new(Server { process, job })),
            Err(error) => Err(error.raw_os_error().unwrap_or(ERROR_INVALID_PARAMETER.cast_signed())),
        },
    };
    let platform = Tree(started.as_ref().ok().cloned());
    let (control, theirs) = tokio::io::duplex(CONTROL);
    spawn_last(watch(started, theirs));
    let (stdin, stdout, stderr) = (Down::new(stdin.ours), stdout.ours, stderr.ours);
    Ok(Child::of(Started { platform, stdin, stdout, stderr, control }, launch, listener, events))
}

/// What the system is told; `None` if there is no such program.
///
/// # Errors
/// If the program cannot be given these arguments: that is the configuration's fault.
fn order(wanted: &Program, [stdin, stdout, stderr]: [OwnedHandle; 3]) -> Result<Option<Order>, Seen> {
    let Some((name, args)) = wanted.argv.split_first() else {
        return Err(Seen::NoProcess { reason: "no program is named".to_owned() });
    };
    let Some(found) = program::find(wanted) else { return Ok(None) };
    let spell = || -> io::Result<Order> {
        let (program, line) = if program::is_batch(&found) {
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

//! A command of ours beside the server.

use std::io;
use std::process::Stdio;

use tokio::process::Command;
use windows_sys::Win32::System::Threading::CREATE_NO_WINDOW;

use crate::stdio::child::{Env, Program};
use crate::stdio::process::Process;

/// It is killed when nobody waits for it.
pub(in crate::stdio) struct Helper {
    pub(in crate::stdio) process: Process,
}

/// Starts `PROGRAM… WORDS…` in the server's surroundings. Nobody hears what it prints, but for stderr.
pub(in crate::stdio) fn helper(program: &Program, words: &[&str]) -> io::Result<Helper> {
    let (run, args) = program.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(run);
    command.args(args).args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    if let Some(dir) = &program.dir {
        command.current_dir(dir);
    }
    match &program.env {
        Env::Ours => {}
        Env::OursAnd(variables) => {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
        }
        Env::Only(variables) => {
            command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        }
    }
    Ok(Helper { process: Process::spawn(command.creation_flags(CREATE_NO_WINDOW).kill_on_drop(true))? })
}

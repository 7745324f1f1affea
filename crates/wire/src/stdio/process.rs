//! The one way to start a child process.
//!
//! A process that adopts the orphans of its servers (`guard::adopt_orphans`) tells them by what it did not start. A child that is
//! started past this module is taken for an orphan: its status and its life are lost. clippy.toml bans every other way.

use std::io;
use std::ops::{Deref, DerefMut};

use tokio::process::{Child, Command};

use super::system::orphans::{self, Started};

/// What a process is started for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::stdio) enum Role {
    /// A reaper, or a server without one. What it leaves behind when it is killed is the server's.
    #[cfg(unix)]
    Root,
    /// A command of ours. What it leaves behind is no server's.
    Command,
}

/// A child process of this one. Its status is its owner's alone.
#[derive(Debug)]
pub struct Process {
    child: Child,
    started: Started,
}

impl Process {
    /// Starts a command of ours. All that is set on the command holds, `kill_on_drop` too.
    ///
    /// # Errors
    /// If the system cannot start it.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        Self::begin(command, Role::Command)
    }

    /// Starts what a server runs below, or the server.
    #[cfg(unix)]
    pub(in crate::stdio) fn root(command: &mut Command) -> io::Result<Self> {
        Self::begin(command, Role::Root)
    }

    fn begin(command: &mut Command, role: Role) -> io::Result<Self> {
        let (child, started) = orphans::start(command, role)?;
        Ok(Self { child, started })
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child has no number once it was waited for.
        self.started.end(self.child.id().is_none());
    }
}

//! A process that outlives its server, because it left the server's tree on purpose.

use super::system;

/// A process that left its server's tree on purpose, and lives on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftBehind {
    /// Its number.
    pub pid: i32,
    /// What its program is called, in up to 15 bytes.
    pub name: String,
    /// Its memory when it was looked at, in bytes.
    pub memory: u64,
    /// When it started: another that has its number later differs in this.
    start: u64,
}

impl LeftBehind {
    /// The process under this number now. `None` if there is none, or where the system has no such processes.
    pub(super) fn of(pid: i32) -> Option<Self> {
        system::look(pid).map(|(start, name, memory)| Self { pid, name, memory, start })
    }

    /// The same process now, if it still lives.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        Self::of(self.pid).filter(|now| now.start == self.start)
    }

    /// The command that ends it.
    pub fn command(&self) -> String {
        format!("kill {}", self.pid)
    }
}

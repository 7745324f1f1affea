//! What linetender's own commands look at in a configured server.

use std::ffi::OsString;

use linetender_core::Settings;

use super::{Deadline, Server, StdioServer, Target};

#[doc(hidden)] // for linetender's commands
impl<W> Server<W> {
    /// Its program and arguments; none if it has an address.
    pub fn argv(&self) -> &[OsString] {
        match &self.target {
            Target::Stdio { program, .. } => &program.argv,
            Target::Http(_) => &[],
        }
    }

    /// Every number that it obeys.
    pub const fn settings(&self) -> &Settings {
        self.policy.settings()
    }

    /// The tools that may be executed again when their outcome is unknown.
    pub fn safe_tools(&self) -> impl Iterator<Item = &str> {
        self.safe_tools.iter().map(String::as_str)
    }

    /// Whose the deadline of an agent's calls is.
    pub const fn calls_end(&self) -> Deadline {
        self.deadline
    }
}

#[doc(hidden)] // for linetender's commands
impl StdioServer {
    /// The same program with other arguments: everything else stays.
    #[must_use]
    pub fn with_argv(mut self, argv: Vec<OsString>) -> Self {
        if let Target::Stdio { program, .. } = &mut self.target {
            program.argv = argv;
        }
        self
    }
}

//! Soaks that need signals, or the keeper of `run --share`.

use std::path::PathBuf;
use std::process::ExitCode;

/// What could not be run.
const MISUSED: u8 = 2;

/// How it would be run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many agents.
    pub agents: usize,
    /// How many principals.
    pub principals: usize,
    /// Whether the ratio of p99 is a finding.
    pub strict: bool,
}

impl Options {
    /// It is not run here.
    #[must_use]
    pub fn new(_: PathBuf, _: u64, _: u64) -> Self {
        Self::default()
    }
}

/// Says so.
pub fn gateway(_: &Options, _: bool) -> ExitCode {
    not_here("gateway")
}

/// Says so.
pub fn shared(_: u32, _: u64) -> ExitCode {
    not_here("shared")
}

fn not_here(name: &str) -> ExitCode {
    eprintln!("linetender: `drill soak {name}` is not available on Windows: run it on Linux");
    ExitCode::from(MISUSED)
}

//! `linetender drill fleet` needs network namespaces.

use std::process::ExitCode;

/// Not available on Windows: it makes network namespaces.
#[derive(Debug, clap::Args)]
pub(crate) struct Fleet {
    /// What it would be given
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<String>,
}

impl Fleet {
    pub(super) fn run(&self) -> Result<ExitCode, String> {
        let given = self.ignored.join(" ");
        Err(format!(
            "`drill fleet {given}` is not available on Windows: it makes network namespaces; run it on Linux"
        ))
    }
}

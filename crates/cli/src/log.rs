//! Where the log goes: a file or stderr, and never stdout, which belongs to the agent.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;

/// Starts the log.
pub(crate) fn start(file: Option<&Path>) -> io::Result<()> {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).with_target(false).with_ansi(false);
    match file {
        Some(file) => {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(file)?;
            log.with_writer(Mutex::new(file)).init();
        }
        None => log.with_writer(io::stderr).init(),
    }
    Ok(())
}

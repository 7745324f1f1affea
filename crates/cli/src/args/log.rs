//! The log of commands that run lines.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::log::Level;

const LOG: &str = "Log";

/// Where the log goes, how much of it there is, and its form.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogFlags {
    /// Write the log to this file instead of stderr
    #[arg(long = "log", value_name = "FILE", help_heading = LOG)]
    pub(crate) file: Option<PathBuf>,

    /// How much is logged: off, error, warn, info, debug or trace. This is about linetender's own messages; those of the
    /// libraries that it uses stay at info. `TARGET=LEVEL,…` sets others
    #[arg(long = "log-level", value_name = "LEVEL", env = "LINETENDER_LOG", hide_env_values = true, default_value = "info", help_heading = LOG)]
    pub(crate) level: Level,

    /// Log lines as text, or as JSON objects
    #[arg(long = "log-format", value_name = "FORMAT", env = "LINETENDER_LOG_FORMAT", hide_env_values = true, value_enum, default_value_t, help_heading = LOG)]
    pub(crate) format: LogFormat,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

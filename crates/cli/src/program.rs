//! What only this program can do for whoever asks at its socket or its admin address.

use std::fmt;

use linetender_holder::holder::{FleetReport, Program};

use crate::stop;

/// A gateway that goes by a file.
pub(crate) struct Serves {
    /// Says what it knows of its fleet, if it is in one.
    pub(crate) fleet: Box<dyn Fn() -> Option<FleetReport> + Send + Sync>,
}

impl fmt::Debug for Serves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serves")
    }
}

/// A shim, which goes by its arguments.
#[derive(Debug)]
pub(crate) struct Runs;

impl Program for Serves {
    fn fleet(&self) -> Option<FleetReport> {
        (self.fleet)()
    }

    /// There is one way in which it is asked to, whoever asks.
    fn reload(&self) -> Result<String, String> {
        stop::reload().map_err(|error| error.to_string())?;
        Ok("the configuration is read again; the log says what changed".to_owned())
    }

    fn log_level(&self, level: &str) -> Result<(), String> {
        crate::log::set_level(level)
    }
}

impl Program for Runs {
    fn reload(&self) -> Result<String, String> {
        Err("`linetender run` has no configuration file: its agent starts it with arguments".to_owned())
    }

    fn log_level(&self, level: &str) -> Result<(), String> {
        crate::log::set_level(level)
    }
}

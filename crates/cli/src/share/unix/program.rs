//! What the keeper can do for whoever asks at its socket.

use linetender_gateway::keeper::{Keeper, Shared};
use linetender_holder::holder::{Program, SharedReport};

/// The keeper of shared servers.
#[derive(Debug)]
pub(crate) struct Keeps(pub(crate) Keeper);

impl Program for Keeps {
    fn reload(&self) -> Result<String, String> {
        Err("the keeper has no configuration file: `linetender run --share` says what it runs".to_owned())
    }

    fn log_level(&self, level: &str) -> Result<(), String> {
        crate::log::set_level(level)
    }

    fn shared(&self) -> Vec<SharedReport> {
        let report = |Shared { name, agents, apart }| SharedReport { server: name, agents, apart };
        self.0.shared().into_iter().map(report).collect()
    }
}

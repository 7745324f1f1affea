//! The config file: its text, and what that says.

use std::path::{Path, PathBuf};

use linetender_gateway::config::{self, Config, Problem, Settings};
pub(crate) use linetender_holder::trusted::config_text as text;

use super::still::Look;
use crate::places;

/// The config file: the one that was named, else the first that is where one would be. Why there is none.
pub(crate) fn path(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let usual: Vec<_> =
        std::iter::once(PathBuf::from(places::CONFIG)).chain(places::usual_config()).collect();
    usual.iter().find(|path| path.exists()).cloned().ok_or_else(|| {
        let looked: Vec<_> = usual.iter().map(|path| path.display().to_string()).collect();
        format!("no config file found (looked for {}); pass one with --config FILE", looked.join(", "))
    })
}

/// A config file as it is now, and when it was written.
pub(super) fn look(path: &Path) -> Look {
    // Before its text: whoever writes in between is seen by the next look.
    let written = std::fs::metadata(path).and_then(|about| about.modified()).ok();
    Look { text: text(path), written }
}

/// What it says, to a gateway that runs already if there are settings in force. What nobody understands in it is told.
pub(crate) fn read(path: &Path, text: &str, in_force: Option<&Settings>) -> Result<Config, Box<Problem>> {
    let name = path.display().to_string();
    let config = match in_force {
        Some(settings) => config::load_again(settings, &name, text, &variable),
        None => config::load(&name, text, &variable),
    }?;
    for warning in &config.warnings {
        let (line, column) = (warning.line(), warning.column());
        tracing::warn!(file = name, line, column, advice = warning.advice(), "{warning}");
    }
    Ok(config)
}

#[expect(clippy::disallowed_methods, reason = "this is where the config file's variables come from")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

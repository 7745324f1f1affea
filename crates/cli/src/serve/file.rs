//! The config file: its text, and what that says.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use linetender_gateway::config::{self, Config, Problem, Settings};
use linetender_holder::trusted;

use super::still::Look;
use crate::places;

/// No config file is larger; what is, is something else.
const LARGEST: u64 = 16 << 20;

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

/// A config file as it is now, or a sentence about why it cannot be read. It says which programs are started, so it is read
/// only if nobody but this user and root could have written it.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    let read = trusted::read_named(path).and_then(|(file, _)| {
        let mut text = String::new();
        file.take(LARGEST + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LARGEST {
            return Err(io::Error::other(format!("larger than {} MiB", LARGEST >> 20)));
        }
        Ok(text)
    });
    read.map_err(|error| match error.raw_os_error() {
        Some(_) => format!("cannot read {}: {error}", path.display()),
        None => format!("cannot use {} as config: it {error}", path.display()),
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

//! What stands in a configuration as the program: linetender by its name, or where this very one is.

use std::path::{Path, PathBuf};

use crate::places;

/// What Linux puts behind the path of a program whose file was replaced while it ran, as an update does.
const REPLACED: &str = " (deleted)";

/// `linetender`, so that the configuration can be shared; where that would not be found, this very program.
pub(super) fn program() -> String {
    const NAME: &str = "linetender";
    let on_path = places::path().iter().any(|folder| folder.join(NAME).is_file());
    own().filter(|_| !on_path).unwrap_or_else(|| NAME.to_owned())
}

/// Where this program is, whatever it is called.
pub(super) fn own() -> Option<String> {
    std::env::current_exe().ok().map(plain).map(|path| path.display().to_string())
}

/// The path where the next one will be started.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|path| path.strip_suffix(REPLACED)) {
        Some(plain) if !path.exists() => Path::new(plain).to_owned(),
        _ => path,
    }
}

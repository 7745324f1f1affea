//! What stands in a configuration as the program: linetender by its name, or where this very one is.

use std::path::{Path, PathBuf};

use super::agents::Reader;
use crate::places;

/// What Linux puts behind the path of a program whose file was replaced while it ran, as an update does.
const REPLACED: &str = " (deleted)";

/// The folders that are on the `PATH` of programs that a desktop starts.
const ON_EVERY_PATH: &[&str] =
    if cfg!(target_os = "macos") { &["/usr/bin", "/bin"] } else { &["/usr/local/bin", "/usr/bin", "/bin"] };

/// `linetender`, so that the configuration can be shared; its whole path where whoever reads the file would not find it by that
/// name; and if it is not on our own `PATH` either, this very program.
pub(super) fn program(reader: Reader) -> String {
    const NAME: &str = "linetender";
    let Some(folder) = places::path().into_iter().find(|folder| folder.join(NAME).is_file()) else {
        return own().unwrap_or_else(|| NAME.to_owned());
    };
    let found = match reader {
        Reader::Shell => true,
        Reader::Desktop => ON_EVERY_PATH.iter().any(|common| folder == Path::new(common)),
    };
    // Not where links lead to: that may be the folder of one version.
    if found || !folder.is_absolute() { NAME.to_owned() } else { folder.join(NAME).display().to_string() }
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

//! With a shell, `env` and modes.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use linetender_badserver::AS_SERVER;
use tokio::process::Command;

use crate::scenario::{Broken, Scenario, Until};

/// The variables that say where a target keeps what it keeps.
pub(crate) const PLACES: [&str; 2] = ["XDG_STATE_HOME", "XDG_RUNTIME_DIR"];

/// The processes of a server with a grandchild: its reaper is one.
pub(crate) const OF_A_SERVER: usize = 3;

/// Starts the server once a file is there; before that it says why not, and counts how often it was asked.
const UNTIL_FIXED: &str =
    r#"echo start >> "$0/starts"; [ -e "$0/fixed" ] || { echo "no API key" >&2; exit 3; }; exec "$@""#;

/// Starts the server once a file is there; before that it is a program that writes back what it reads.
const ECHO_UNTIL_FIXED: &str = r#"echo start >> "$0/starts"; [ -e "$0/fixed" ] || exec cat; exec "$@""#;

/// The system and its version.
pub(crate) fn name() -> String {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let version = release.split('.').take(2).collect::<Vec<_>>().join(".");
    format!("{} {version}", system.sysname().to_string_lossy())
}

/// Why this system cannot play a scenario.
pub(crate) fn lacks(scenario: &Scenario) -> Option<&'static str> {
    let is_piped = scenario.load.iter().any(|load| load.until == Until::Piped);
    (cfg!(not(target_os = "linux")) && is_piped)
        .then_some("nothing on this system tells what lies unread in a pipe")
}

/// Whether a cause says this.
pub(crate) fn is_said(word: &str, cause: &str) -> bool {
    cause.contains(word)
}

/// A bad server, to be told what is wrong with it.
pub(crate) fn bad(linetender: &Path) -> Vec<String> {
    vec![linetender.display().to_string(), AS_SERVER.to_owned()]
}

/// The command, marked by `NAME=value`. Some targets keep their environment to themselves; what a command sets for itself nobody can.
pub(crate) fn marked(mark: &str, argv: Vec<String>) -> Vec<String> {
    if argv.is_empty() {
        return argv;
    }
    ["env".to_owned(), mark.to_owned()].into_iter().chain(argv).collect()
}

/// The command, which begins to work once a file is there.
pub(crate) fn broken(how: Broken, dir: &Path, argv: Vec<String>) -> Vec<String> {
    let shell = |script: &str| {
        let words = ["sh", "-c", script].map(str::to_owned);
        words.into_iter().chain([dir.display().to_string()]).chain(argv.clone()).collect()
    };
    match how {
        Broken::Missing => vec![dir.join("late-server").display().to_string()],
        Broken::Exits => shell(UNTIL_FIXED),
        Broken::Echoes => shell(ECHO_UNTIL_FIXED),
        Broken::Down => argv,
    }
}

/// Puts the program there that was missing. Made elsewhere and then moved: nobody may start half of it, or one that is still being
/// written.
pub(crate) fn late_server(dir: &Path, argv: &[String]) -> io::Result<()> {
    let words: Vec<_> = argv.iter().map(|word| format!("'{word}'")).collect();
    let draft = dir.join("draft");
    std::fs::write(&draft, format!("#!/bin/sh\nexec {}\n", words.join(" ")))?;
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&draft, dir.join("late-server"))
}

/// As it is: signals are sent to one process.
pub(crate) fn own_group(command: &mut Command) -> &mut Command {
    command
}

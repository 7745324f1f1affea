//! Without a shell: the bad server has flags for what scripts do elsewhere.

use std::io;
use std::path::Path;

use linetender_badserver::AS_SERVER;
use tokio::process::Command;

use crate::scenario::{Broken, Fault, Kind, Scenario, Until};

/// The variables that say where a target keeps what it keeps.
pub(crate) const PLACES: [&str; 2] = ["LOCALAPPDATA", "APPDATA"];

/// The processes of a server with a grandchild.
pub(crate) const OF_A_SERVER: usize = 2;

/// `CREATE_NEW_PROCESS_GROUP`: a Ctrl-Break for the target is not one for the drill.
const NEW_GROUP: u32 = 0x200;

/// The system.
pub(crate) fn name() -> String {
    "Windows".to_owned()
}

/// Why this system cannot play a scenario.
pub(crate) fn lacks(scenario: &Scenario) -> Option<&'static str> {
    if scenario.load.iter().any(|load| load.until == Until::Piped) {
        return Some("nothing on Windows tells what lies unread in a pipe");
    }
    match scenario.fault {
        Fault::KillReaper => {
            Some("there is no reaper on Windows: a server is in a Job Object of the kernel's")
        }
        Fault::TermTarget => Some("there is no SIGTERM on Windows, and a Ctrl-Break needs a console"),
        _ if scenario.server.kind != Kind::Bad => Some("real servers are not set up for Windows"),
        _ => None,
    }
}

/// Whether a cause says this. There is no SIGKILL: what the drill kills has a status that says so.
pub(crate) fn is_said(word: &str, cause: &str) -> bool {
    cause.contains(word) || word == "SIGKILL" && cause.contains("status 9")
}

/// A bad server, to be told what is wrong with it. The program of its own, if it is beside this one: it has no console.
pub(crate) fn bad(linetender: &Path) -> Vec<String> {
    let own = linetender.with_file_name("badserver.exe");
    if own.is_file() {
        return vec![own.display().to_string()];
    }
    vec![linetender.display().to_string(), AS_SERVER.to_owned()]
}

/// The command of a bad server, which marks itself by `NAME=value`.
pub(crate) fn marked(mark: &str, mut argv: Vec<String>) -> Vec<String> {
    if !argv.is_empty() {
        argv.extend(["--mark".to_owned(), mark.to_owned()]);
    }
    argv
}

/// The command, which begins to work once a file is there.
pub(crate) fn broken(how: Broken, dir: &Path, mut argv: Vec<String>) -> Vec<String> {
    let until = ["--until-fixed".to_owned(), dir.display().to_string()];
    match how {
        Broken::Missing => return vec![dir.join("late-server").display().to_string()],
        Broken::Exits => argv.extend(until),
        Broken::Echoes => argv.extend(until.into_iter().chain(["--echoes".to_owned()])),
        Broken::Down => {}
    }
    argv
}

/// Puts the program there that was missing: a batch file, as those of npm are. Moved to its place whole.
pub(crate) fn late_server(dir: &Path, argv: &[String]) -> io::Result<()> {
    let words: Vec<_> = argv.iter().map(|word| format!("\"{word}\"")).collect();
    let draft = dir.join("draft");
    std::fs::write(&draft, format!("@{}\r\n", words.join(" ")))?;
    std::fs::rename(&draft, dir.join("late-server.cmd"))
}

/// In a group of its own.
pub(crate) fn own_group(command: &mut Command) -> &mut Command {
    command.creation_flags(NEW_GROUP)
}

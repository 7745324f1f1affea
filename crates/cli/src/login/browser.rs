//! The person's browser, if there is one here.

use std::io::{self, IsTerminal as _};
use std::process::Stdio;

use linetender::Process;
use tokio::process::Command;

use crate::places;

/// The program that opens addresses.
const OPENER: &[&str] = if cfg!(windows) {
    // Not `start`, which is the shell's: it would take an address apart.
    &["rundll32.exe", "url.dll,FileProtocolHandler"]
} else if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open"]
};

/// Opens it at this address. Never from a script: nobody would look at it. Why it was not opened.
pub(super) fn open(url: &str) -> Result<(), &'static str> {
    if !io::stderr().is_terminal() {
        return Err("none was opened: linetender was not started from a terminal");
    }
    if !places::has_display() {
        return Err("none was opened: this terminal has no display");
    }
    let mut command = Command::new(OPENER[0]);
    command.args(&OPENER[1..]).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Process::spawn(&mut command);
    started.map(drop).map_err(|_| "none was opened: the program that opens addresses cannot be started")
}

//! The address that the browser was sent back to, pasted by a person: for a machine that has no browser.

use std::io::{self, BufRead as _, Read as _};
use std::time::Duration;

use linetender_auth::{Loopback, Pending};
use tokio::sync::mpsc;

use super::target::Failed;
use super::{span, tell};

/// The longest line that is read.
const LONGEST: u64 = 64 * 1024;

/// Reads it from stdin. A browser that comes back on this machine counts as well.
pub(super) async fn redirected(
    pending: &Pending,
    loopback: &Loopback,
    within: Duration,
) -> Result<String, Failed> {
    tell(&format!(
        "After the login the browser shows an error, at an address that begins with {}.\nPaste that whole address here within {}, and press Enter:",
        loopback.redirect_uri(),
        span(within)
    ));
    let mut lines = lines();
    let pasted = async {
        while let Some(line) = lines.recv().await {
            let line = line.map_err(|error| Failed::new(format!("cannot read from stdin: {error}")))?;
            let line = line.trim().to_owned();
            if pending.is_ours(&line) {
                return Ok(line);
            }
            if !line.is_empty() {
                tell(
                    "That address does not belong to this login. Paste the whole address from the browser's address bar:",
                );
            }
        }
        Err(Failed::new("stdin ended before the address of this login was pasted".to_owned()))
    };
    tokio::select! {
        pasted = pasted => pasted,
        came = loopback.wait(pending, within) => came.map_err(Failed::from),
    }
}

/// The lines of stdin, from a thread of their own: it ends with the process.
fn lines() -> mpsc::Receiver<io::Result<String>> {
    let (into, lines) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = input.by_ref().take(LONGEST).read_line(&mut line);
            match read {
                Ok(0) => return,
                Ok(_) if into.blocking_send(Ok(line)).is_ok() => {}
                Ok(_) => return,
                Err(error) => {
                    let _ = into.blocking_send(Err(error));
                    return;
                }
            }
        }
    });
    lines
}

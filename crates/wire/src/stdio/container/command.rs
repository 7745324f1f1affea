//! A command of the client's about a container, bounded in length by what is read, and in time by whoever waits: it is killed
//! when nobody waits for it any more.

use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::super::child::Program;
use super::super::system;
use crate::redact::Redacted;

/// How much of what it says is kept.
const SAID: usize = 8 * 1024;

/// How long reading goes on after its end, if another process holds its stderr open. All that it said is there by then.
const REST: Duration = Duration::from_millis(500);

/// How much of that is shown.
const SHOWN: usize = 300;

/// What became of it.
pub(super) struct Said {
    pub(super) success: bool,
    status: String,
    stderr: String,
}

impl Said {
    pub(super) fn has_any(&self, words: &[&str]) -> bool {
        let stderr = self.stderr.to_lowercase();
        words.iter().any(|word| stderr.contains(word))
    }

    pub(super) fn words(&self) -> String {
        let said = Redacted::tail(self.stderr.trim(), SHOWN);
        if said.is_empty() { self.status.clone() } else { said.to_string() }
    }
}

/// Runs `CLIENT WORDS…` in the surroundings of the server, and waits for it.
pub(super) async fn run(client: &Program, words: &[&str]) -> io::Result<Said> {
    let mut helper = system::helper(client, words)?;
    let (stderr, mut said) = (helper.process.stderr.take(), Vec::new());
    let status = {
        let mut reading = pin!(read(stderr, &mut said));
        let mut is_read = false;
        let status = loop {
            tokio::select! {
                status = helper.process.wait() => break status,
                () = &mut reading, if !is_read => is_read = true,
            }
        };
        if !is_read {
            let _ = timeout(REST, reading).await;
        }
        status?
    };
    let stderr = String::from_utf8_lossy(&said).into_owned();
    Ok(Said { success: status.success(), status: status.to_string(), stderr })
}

/// Reads all of what it says, so that it never waits for a reader, and keeps the end.
async fn read(from: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..length]);
        kept.drain(..kept.len().saturating_sub(SAID));
    }
}

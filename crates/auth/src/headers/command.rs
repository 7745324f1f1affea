//! A command that prints credentials. It is bounded in time and length, and started without a shell.

use std::process::Stdio;
use std::time::Duration;

use linetender_wire::Redacted;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::printed;
use crate::secret::Secret;

/// How long it may take.
const WITHIN: Duration = Duration::from_secs(10);

/// How much it may print, and how much of what it complains about is read.
const LONGEST: u64 = 64 * 1024;
const COMPLAINT: u64 = 8 * 1024;

pub(super) async fn headers(argv: &[String]) -> Result<Vec<(String, Secret)>, String> {
    let (program, arguments) = argv.split_first().ok_or("the command for credentials is empty")?;
    let bad =
        |why: String| format!("the command {program}, which is to print credentials, did not work: {why}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| bad(format!("it could not be started: {error}")))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let running = async {
        // Whoever prints more than this is stopped by a pipe that nobody reads, and then by the clock.
        let ((out, is_whole), (err, _)) = tokio::join!(some(out, LONGEST, false), some(err, COMPLAINT, true));
        if !is_whole {
            return Err(bad(format!("it printed more than {LONGEST} bytes")));
        }
        let status = child.wait().await.map_err(|error| bad(error.to_string()))?;
        Ok((out, err, status))
    };
    let ran = timeout(WITHIN, running).await;
    let (out, err, status) =
        ran.map_err(|_| bad(format!("it did not end within {} s", WITHIN.as_secs())))??;
    if !status.success() {
        let complaint = Redacted::tail(&String::from_utf8_lossy(&err), 300);
        return Err(bad(format!("{status}; it said: {complaint}")));
    }
    let out = String::from_utf8(out).map_err(|_| bad("it printed something else than text".to_owned()))?;
    printed(&out).map_err(|why| bad(why.to_owned()))
}

/// At most this much, and whether that was all. The rest is read and dropped if `drained`: a program must not end by a
/// complaint that nobody reads.
async fn some(from: Option<impl AsyncRead + Unpin>, most: u64, drained: bool) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    let Some(from) = from else { return (read, true) };
    let mut from = from.take(most + 1);
    // What was read before it broke is as good as what there is.
    let _ = from.read_to_end(&mut read).await;
    let is_whole = read.len() as u64 <= most;
    if drained && !is_whole {
        let _ = tokio::io::copy(&mut from.into_inner(), &mut tokio::io::sink()).await;
    }
    (read, is_whole)
}

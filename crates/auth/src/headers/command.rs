//! A command that prints credentials. It is bounded in time and length, started without a shell, and ends with all that it
//! started in its process group, or its job.

use std::process::Stdio;
use std::time::Duration;

use linetender_wire::Redacted;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::printed;
use crate::secret::Secret;
use crate::system::Group;

/// How long it may take.
const WITHIN: Duration = Duration::from_secs(10);

/// How much it may print, and how much of what it complains about is read.
const LONGEST: usize = 64 * 1024;
const COMPLAINT: usize = 8 * 1024;

/// How long reading goes on after its end, if somebody else holds its output open. All that it printed is there by then.
const REST: Duration = Duration::from_millis(500);

pub(super) async fn headers(argv: &[String]) -> Result<Vec<(String, Secret)>, String> {
    let (program, arguments) = argv.split_first().ok_or("the command for credentials is empty")?;
    let bad =
        |why: String| format!("the command {program}, which is to print credentials, did not work: {why}");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, mut group) =
        Group::spawn(&mut command).map_err(|error| bad(format!("it could not be started: {error}")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let running = async {
        {
            // Whoever prints more than this is stopped by a pipe that nobody reads, and then by the clock.
            let reading = async {
                tokio::join!(read(stdout, LONGEST, false, &mut out), read(stderr, COMPLAINT, true, &mut err))
            };
            let mut reading = std::pin::pin!(reading);
            tokio::select! {
                biased;
                _ = &mut reading => {}
                () = group.leader_ended() => {
                    group.kill();
                    let _ = timeout(REST, reading).await;
                }
            }
        }
        if out.len() > LONGEST {
            return Err(bad(format!("it printed more than {LONGEST} bytes")));
        }
        group.leader_ended().await;
        group.kill();
        child.wait().await.map_err(|error| bad(error.to_string()))
    };
    let ran = timeout(WITHIN, running).await;
    let status = ran.map_err(|_| bad(format!("it did not end within {} s", WITHIN.as_secs())))??;
    if !status.success() {
        let complaint = Redacted::tail(&String::from_utf8_lossy(&err), 300);
        return Err(bad(format!("{status}; it said: {complaint}")));
    }
    let out = String::from_utf8(out).map_err(|_| bad("it printed something else than text".to_owned()))?;
    printed(&out).map_err(|why| bad(why.to_owned()))
}

/// Reads at most this much, and a little more if there is more. The rest is read and dropped if `drained`: a program must not
/// end by a complaint that nobody reads.
async fn read(from: Option<impl AsyncRead + Unpin>, most: usize, drained: bool, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut piece = [0; 4096];
    while into.len() <= most {
        match from.read(&mut piece).await {
            // What was read before it broke is as good as what there is.
            Ok(0) | Err(_) => return,
            Ok(length) => into.extend_from_slice(&piece[..length]),
        }
    }
    if drained {
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
}

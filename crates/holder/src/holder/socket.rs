//! The socket where a holder is asked. Everything about it is bounded, so that no asker can hurt what is held.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::report::REPORT_VERSION;
use super::{Inner, look};
use crate::trusted;

/// Askers that are heard at once. More of them wait outside.
const AT_ONCE: usize = 8;

/// How long one may take, from its question to the last byte of its answer.
const TALK: Duration = Duration::from_secs(2);

/// The longest question.
const QUESTION: u64 = 4096;

/// If no asker can be let in (no descriptors), how long until the next try.
const AGAIN: Duration = Duration::from_secs(1);

/// What the name of a socket ends in; before it stands the process.
pub(super) const SUFFIX: &str = ".sock";

/// A question.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Question {
    pub(super) ask: String,
}

/// The question for a [`Report`](super::Report).
pub(super) const STATUS: &str = "status";

/// A question that was not understood.
#[derive(Serialize)]
struct Refusal<'a> {
    version: u32,
    error: &'a str,
}

/// A socket that is listened to. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    path: PathBuf,
    #[expect(dead_code, reason = "listens as long as it lives")]
    task: JoinSet<()>,
}

impl Listening {
    pub(super) fn start(within: &Path, holder: Weak<Inner>) -> io::Result<Self> {
        trusted::folder(within)?;
        let path = within.join(format!("{}{SUFFIX}", std::process::id()));
        let listener = bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let mut task = JoinSet::new();
        let swept = within.to_owned();
        task.spawn(async move {
            look::sweep(&swept).await;
            serve(listener, holder).await;
        });
        Ok(Self { path, task })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Binds the socket of this process. One that is there already was left behind by a dead process of our number.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let refused = std::os::unix::net::UnixStream::connect(path).is_err();
            if !refused {
                // Numbers repeat between containers that share a folder.
                return Err(error);
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

async fn serve(listener: UnixListener, holder: Weak<Inner>) {
    let mut talks = JoinSet::new();
    loop {
        while talks.try_join_next().is_some() {}
        if talks.len() >= AT_ONCE {
            talks.join_next().await;
        }
        match listener.accept().await {
            Ok((asker, _)) => {
                let holder = holder.clone();
                talks.spawn(async move {
                    let _ = tokio::time::timeout(TALK, talk(asker, &holder)).await;
                });
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// One question, one answer, each on a line.
async fn talk(mut asker: UnixStream, holder: &Weak<Inner>) -> io::Result<()> {
    let (from, mut to) = asker.split();
    let mut question = String::new();
    BufReader::new(from).take(QUESTION).read_line(&mut question).await?;
    let asked = serde_json::from_str(&question).map(|Question { ask }| ask);
    let answer = match (asked.as_deref(), holder.upgrade()) {
        (Ok(STATUS), Some(holder)) => serde_json::to_string(&holder.report())?,
        _ => serde_json::to_string(&Refusal { version: REPORT_VERSION, error: "unknown request" })?,
    };
    to.write_all(format!("{answer}\n").as_bytes()).await?;
    to.shutdown().await
}

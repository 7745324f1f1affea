//! An agent on the pipes of a server of its own: what an endpoint before such a server is to be measured against.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::speech::{Era, INITIALIZED};

/// So much of an answer is looked at to find its id, before all of it is.
const HEAD: usize = 64;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>>;

/// A server that was started, and its pipes. It ends with this.
pub(super) struct Pipe {
    to: tokio::sync::Mutex<ChildStdin>,
    waiting: Waiting,
    _child: Child,
    _reader: JoinSet<()>,
}

impl Pipe {
    pub(super) async fn open(command: &str, era: Era) -> Result<Self, String> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or("an endpoint without an address or a command")?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or("a process without pipes")?;
        let waiting = Waiting::default();
        let mut reader = JoinSet::new();
        reader.spawn(read(from, Arc::clone(&waiting)));
        let pipe = Self { to: to.into(), waiting, _child: child, _reader: reader };
        pipe.ask(0, era.hello()).await?;
        if era == Era::Legacy {
            pipe.say(INITIALIZED.to_owned()).await?;
        }
        Ok(pipe)
    }

    /// One request, and its answer.
    pub(super) async fn ask(&self, id: u64, text: String) -> Result<Vec<u8>, String> {
        let (answered, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answered);
        self.say(text).await?;
        answer.await.map_err(|_| "the server closed its pipe".to_owned())
    }

    async fn say(&self, mut text: String) -> Result<(), String> {
        text.push('\n');
        self.to.lock().await.write_all(text.as_bytes()).await.map_err(|error| error.to_string())
    }
}

async fn read(from: ChildStdout, waiting: Waiting) {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    loop {
        let mut line = Vec::new();
        if !matches!(from.read_until(b'\n', &mut line).await, Ok(1..)) {
            // Whoever waits learns it by its sender being gone.
            waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
            return;
        }
        if let Some(id) = id_of(&line)
            && let Some(answered) = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
        {
            let _ = answered.send(line);
        }
    }
}

/// Nearly always it stands at the beginning; if not, the answer is looked at properly.
pub(super) fn id_of(line: &[u8]) -> Option<u64> {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD)]);
    let digits = head.split_once(r#""id":"#).and_then(|(_, rest)| rest.split_once([',', '}']));
    digits
        .and_then(|(digits, _)| digits.trim().parse().ok())
        .or_else(|| serde_json::from_slice::<Value>(line).ok()?["id"].as_u64())
}

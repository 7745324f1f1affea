//! An agent's end of two pipes: what is asked, and who waits for the answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The longest line that is read; whoever says more has lost us.
const LONGEST: u64 = 64 << 20;

/// Both pipes.
pub(crate) struct Pipe {
    to: tokio::sync::Mutex<Option<ChildStdin>>,
    waiting: Arc<Mutex<Waiting>>,
    _reader: JoinSet<()>,
}

/// Who waits, by the id of their question.
enum Waiting {
    Open(HashMap<String, oneshot::Sender<String>>),
    Closed,
}

impl Pipe {
    pub(crate) fn new(to: ChildStdin, from: ChildStdout) -> Self {
        let waiting = Arc::new(Mutex::new(Waiting::Open(HashMap::new())));
        let mut reader = JoinSet::new();
        reader.spawn(read(from, Arc::clone(&waiting)));
        Self { to: tokio::sync::Mutex::new(Some(to)), waiting, _reader: reader }
    }

    /// The answer to this id, as it was spelt; `None` if the pipe was closed before.
    pub(crate) async fn ask(&self, id: &str, message: &Value) -> Option<String> {
        let (tell, told) = oneshot::channel();
        match &mut *lock(&self.waiting) {
            Waiting::Open(waiting) => drop(waiting.insert(id.to_owned(), tell)),
            Waiting::Closed => return None,
        }
        // The other end may be closed for writing and still answer.
        self.say(message).await;
        told.await.ok()
    }

    /// Nobody waits for this answer any more.
    pub(crate) fn forget(&self, id: &str) {
        if let Waiting::Open(waiting) = &mut *lock(&self.waiting) {
            waiting.remove(id);
        }
    }

    pub(crate) async fn say(&self, message: &Value) {
        if let Some(to) = &mut *self.to.lock().await {
            let _ = to.write_all(format!("{message}\n").as_bytes()).await;
        }
    }

    /// Closes our end, as an agent that goes.
    pub(crate) async fn close(&self) {
        self.to.lock().await.take();
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(&*lock(&self.waiting), Waiting::Closed)
    }
}

async fn read(from: ChildStdout, waiting: Arc<Mutex<Waiting>>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut from).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let id = id_of(text);
        if let (Some(id), Waiting::Open(waiting)) = (id, &mut *lock(&waiting))
            && let Some(tell) = waiting.remove(&id)
        {
            let _ = tell.send(text.trim_end().to_owned());
        }
    }
    *lock(&waiting) = Waiting::Closed;
}

/// The id of an answer; a request or a notification has none that anybody here waits for.
fn id_of(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        id: Option<Value>,
        method: Option<String>,
    }
    let Envelope { id, method } = serde_json::from_str(text).ok()?;
    method.is_none().then_some(id?.as_str()?.to_owned())
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The socket where a holder is asked. Everything about it is bounded, so that no asker can hurt what is held.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::task::JoinSet;

use super::control::{Act, Ask};
use super::local::{self, Listener, Stream};
use super::report::{CallReport, REPORT_VERSION};
use super::{Inner, look};
use crate::journal::Entry;
use crate::trusted;
use linetender_wire::visible;

/// Askers that are heard at once. More of them wait outside.
const AT_ONCE: usize = 8;

/// Askers that are told something for as long as they stay.
const WATCHERS: usize = 16;

/// Orders to servers that are carried out at once.
const ORDERS: usize = 8;

/// Orders to the process itself that are carried out at once.
const TO_PROCESS: usize = 2;

/// How long calls are gathered before a watcher is told of them, and the most that it is told of at once.
const GATHER: Duration = Duration::from_millis(50);
const GATHERED: usize = 512;

/// How long one may take to ask, and to read an answer or one line of many.
const TALK: Duration = Duration::from_secs(2);

/// The longest question.
const QUESTION: u64 = 4096;

/// If no asker can be let in (no descriptors), how long until the next try.
const AGAIN: Duration = Duration::from_secs(1);

/// What the name of a socket ends in; before it stands the process.
pub(super) const SUFFIX: &str = ".sock";

/// Something that was asked and is not answered.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Refusal {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// Why, in words.
    pub error: String,
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
        let listener = local::bind(&path)?;
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

async fn serve(listener: Listener, holder: Weak<Inner>) {
    let (askers, long) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(Long::default()));
    let mut talks = JoinSet::new();
    loop {
        while talks.try_join_next().is_some() {}
        // It is never closed.
        let Ok(place) = Arc::clone(&askers).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((asker, _)) => {
                talks.spawn(talk(asker, holder.clone(), place, Arc::clone(&long)));
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// One question on a line, and its answer on one; or as many as come, if that was the question.
async fn talk(mut asker: Stream, holder: Weak<Inner>, place: OwnedSemaphorePermit, long: Arc<Long>) {
    let Ok(Ok(ask)) = tokio::time::timeout(TALK, question(&mut asker)).await else { return };
    let watched = {
        let Some(holder) = holder.upgrade() else { return };
        match &ask {
            Some(Ask::WatchEvents) => Some(Watched::Events(holder.entries.subscribe())),
            Some(Ask::WatchCalls) => Some(Watched::Calls(holder.tally.feed())),
            _ => None,
        }
    };
    // What may take long has places of its own: whoever asks where lines stand is not to wait for a server that hangs.
    let (places, full) = match (&ask, &watched) {
        (_, Some(_)) => (Some(&long.watchers), format!("{WATCHERS} watchers are connected already")),
        // A process is told to read its configuration again however many of its servers hang.
        (Some(Ask::Act(Act::Reload | Act::LogLevel { .. })), _) => {
            (Some(&long.to_process), format!("{TO_PROCESS} reloads are being carried out already"))
        }
        (Some(Ask::Act(_)), _) => {
            (Some(&long.orders), format!("{ORDERS} orders are being carried out already"))
        }
        _ => (None, String::new()),
    };
    let _quick = places.is_none().then_some(place);
    let _long = match places.map(Semaphore::try_acquire) {
        None => None,
        Some(Ok(place)) => Some(place),
        Some(Err(_)) => return say(&mut asker, &refusal(full)).await,
    };
    if let Some(watched) = watched {
        return watched.tell(asker).await;
    }
    let patience = ask.as_ref().map_or(TALK, Ask::patience);
    let answer = match tokio::time::timeout(patience, answer(&holder, ask)).await {
        Ok(answer) => answer,
        Err(_) => refusal(format!("not done within {} s; it may still be under way", patience.as_secs())),
    };
    say(&mut asker, &visible::json(&answer)).await;
}

/// Places for what takes long.
struct Long {
    watchers: Semaphore,
    orders: Semaphore,
    to_process: Semaphore,
}

impl Default for Long {
    fn default() -> Self {
        Self {
            watchers: Semaphore::new(WATCHERS),
            orders: Semaphore::new(ORDERS),
            to_process: Semaphore::new(TO_PROCESS),
        }
    }
}

/// The question; `None` if it was not understood.
async fn question(asker: &mut Stream) -> io::Result<Option<Ask>> {
    local::check_peer(asker)?;
    let mut question = String::new();
    BufReader::new(&mut *asker).take(QUESTION).read_line(&mut question).await?;
    Ok(serde_json::from_str(&question).ok())
}

async fn answer(holder: &Weak<Inner>, ask: Option<Ask>) -> String {
    let Some(holder) = holder.upgrade() else { return refusal("the process is ending".to_owned()) };
    let spelt = match ask {
        Some(Ask::Status) => serde_json::to_string(&holder.report()),
        Some(Ask::Calls) => serde_json::to_string(&holder.calls()),
        Some(Ask::Processes) => serde_json::to_string(&holder.processes().await),
        Some(Ask::Entries { server }) => match holder.entries_of(&server) {
            Some(entries) => serde_json::to_string(&entries),
            None => return refusal("no server of this name".to_owned()),
        },
        Some(Ask::Act(act)) => match holder.act(&act).await {
            Ok(done) => serde_json::to_string(&done),
            Err(why) => return refusal(why.to_string()),
        },
        Some(Ask::WatchEvents | Ask::WatchCalls) | None => return refusal("unknown request".to_owned()),
    };
    spelt.unwrap_or_else(|error| refusal(error.to_string()))
}

fn refusal(error: String) -> String {
    serde_json::to_string(&Refusal { version: REPORT_VERSION, error }).unwrap_or_default()
}

/// Says something to an asker that may not read.
async fn say(asker: &mut Stream, line: &str) {
    let _ = tokio::time::timeout(TALK, write(asker, line)).await;
}

async fn write(asker: &mut Stream, line: &str) -> io::Result<()> {
    asker.write_all(format!("{line}\n").as_bytes()).await
}

/// What is watched.
enum Watched {
    Events(broadcast::Receiver<Arc<Entry>>),
    Calls(broadcast::Receiver<Arc<CallReport>>),
}

impl Watched {
    /// Tells it until the asker hangs up, or does not read.
    async fn tell(mut self, mut asker: Stream) {
        loop {
            let mut over = [0];
            let line = tokio::select! {
                line = self.next() => line,
                // Nothing more is to come from it but its end.
                _ = asker.read(&mut over) => return,
            };
            let Some(line) = line else { return };
            if !matches!(tokio::time::timeout(TALK, write(&mut asker, &line)).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// The next line, or several of calls: whoever is woken for each call takes more from the servers' time than the call itself.
    async fn next(&mut self) -> Option<String> {
        match self {
            Self::Events(events) => spelt(events.recv().await),
            Self::Calls(calls) => {
                let mut lines = spelt(calls.recv().await)?;
                tokio::time::sleep(GATHER).await;
                for _ in 0..GATHERED {
                    let told = match calls.try_recv() {
                        Ok(call) => Ok(call),
                        Err(TryRecvError::Lagged(missed)) => Err(RecvError::Lagged(missed)),
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    };
                    let Some(line) = spelt(told) else { break };
                    lines.push('\n');
                    lines.push_str(&line);
                }
                Some(lines)
            }
        }
    }
}

/// What is told, as a line; `None` if there is nothing more to tell.
fn spelt<T: Serialize>(told: Result<Arc<T>, RecvError>) -> Option<String> {
    match told {
        Ok(told) => serde_json::to_string(&*told).ok().map(|line| visible::json(&line).into_owned()),
        Err(RecvError::Lagged(missed)) => Some(format!(r#"{{"missed":{missed}}}"#)),
        Err(RecvError::Closed) => None,
    }
}

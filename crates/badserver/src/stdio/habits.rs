//! What a server has besides its tools: a context in its memory, processes, a lock, and work to save at its end.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::Server;
use super::tools::Call;
use crate::book::{ContextRun, Pen, wall_clock};
use crate::{arguments, itself};

/// How long the work takes to save.
const SAVE_TIME: Duration = Duration::from_millis(300);

/// The tool that starts a process which leaves the tree on purpose.
const DAEMON: &str = "daemon";

/// What was asked for on the command line.
#[derive(Debug, Default)]
pub(super) struct HabitFlags {
    /// Whether it keeps what `use` selects, and writes down in which context each call was executed.
    contexts: bool,
    /// The environment variable, as `NAME=value`, of processes that leave on purpose. They have no other.
    stranger: Option<String>,
    worker: Option<Worker>,
    lock: Option<PathBuf>,
    saves: bool,
}

/// A child at work, which ends with the server.
#[derive(Clone, Copy, Debug)]
enum Worker {
    /// In the server's session.
    Near,
    /// In a session of its own. It has not left: its parent lives.
    Apart,
}

/// A server's habits while it lives.
#[derive(Debug, Default)]
pub(super) struct Habits {
    context: Option<Context>,
    /// Held until the process ends.
    _lock: Option<File>,
    saved: Mutex<bool>,
}

#[derive(Debug)]
struct Context {
    id: String,
    selected: Mutex<String>,
}

impl HabitFlags {
    /// Takes a flag. Returns false if the flag is for somebody else.
    pub(super) fn take(
        &mut self,
        flag: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        match flag {
            "--contexts" => self.contexts = true,
            "--stranger" => self.stranger = Some(value()?),
            "--worker" => {
                self.worker = Some(match value()?.as_str() {
                    "near" => Worker::Near,
                    "apart" => Worker::Apart,
                    other => return Err(format!("no such worker: {other}")),
                });
            }
            "--lock" => self.lock = Some(value()?.into()),
            "--saves" => self.saves = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the lock and starts the child, before the first word is read.
    pub(super) fn start(&self, pen: &mut Pen) -> Habits {
        let lock = self.lock.as_ref().and_then(|path| File::create(path).ok());
        if let Some(lock) = &lock {
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            pen.write(if is_taken { "two-at-once" } else { "locked" }, "-");
        }
        if let Some(worker) = self.worker
            && let Some(pid) = itself::worker(matches!(worker, Worker::Apart), lock.as_ref())
        {
            pen.write(&format!("mine {pid}"), "-");
        }
        let context = self.contexts.then(|| Context {
            id: format!("p{}-{}", std::process::id(), wall_clock().as_micros()),
            selected: Mutex::new(ContextRun::UNSELECTED.to_owned()),
        });
        Habits { context, _lock: lock, saved: Mutex::default() }
    }

    /// The tools that come with them.
    pub(super) fn tools(&self) -> Option<Value> {
        self.stranger.as_ref().map(|_| {
            let what = "starts a process that leaves the server's tree on purpose, and answers";
            json!({ "name": DAEMON, "description": what, "inputSchema": arguments::schema(DAEMON) })
        })
    }
}

impl Server {
    /// Saves its work when it is asked to end, if it has any.
    pub(super) fn save_on_signal(self: &Arc<Self>) {
        if self.flags.habits.saves {
            let server = Arc::clone(self);
            itself::on_term(move || server.save());
        }
    }

    /// Saves its work, once. Returns when it is saved.
    pub(super) fn save(&self) {
        let mut saved = lock(&self.habits.saved);
        if !self.flags.habits.saves || std::mem::replace(&mut *saved, true) {
            return;
        }
        lock(&self.pen).write("saving", "-");
        #[expect(clippy::disallowed_methods, reason = "a slow save is the habit")]
        std::thread::sleep(SAVE_TIME);
        lock(&self.pen).write("saved", "-");
    }

    /// Writes down that a call is executed, and in which context.
    pub(super) fn ran(&self, nonce: &str) {
        match &self.habits.context {
            Some(context) => lock(&self.pen).run_in(&context.id, &lock(&context.selected), nonce),
            None => lock(&self.pen).write("run", nonce),
        }
    }

    /// Executes a tool that belongs to a habit. Returns false if it is none.
    pub(super) fn run_habit(&self, name: &str, call: &Call) -> bool {
        match (name, &self.habits.context, &self.flags.habits.stranger) {
            ("use", Some(context), _) => {
                let what = call.arguments["what"].as_str().unwrap_or_default();
                what.clone_into(&mut lock(&context.selected));
                self.ran(&call.nonce);
                call.say(&format!("selected {what} in context {}", context.id));
            }
            (DAEMON, _, Some(mark)) => {
                self.ran(&call.nonce);
                if let Some(pid) = itself::stranger(mark) {
                    lock(&self.pen).write(&format!("not-mine {pid}"), "-");
                }
                call.echo();
            }
            _ => return false,
        }
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

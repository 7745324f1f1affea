//! Writes down what happens to the lines of a soak: every call and what it was told, every state, every change of a list.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use linetender::{Event, Line, Raw, State};
use linetender_badserver::{Asked, Failure, History};

/// Writes a history while it happens.
#[derive(Clone, Debug)]
pub struct Recorder {
    start: Instant,
    history: Arc<Mutex<History>>,
}

impl Recorder {
    /// From now on.
    #[expect(clippy::disallowed_methods, reason = "histories have times")]
    pub fn start() -> Self {
        Self { start: Instant::now(), history: Arc::default() }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, with its nonce in the arguments, and writes down both ends of it.
    pub async fn call(&self, line: &Line, tool: &str, nonce: &str, safe: bool) {
        let asked = Asked { at: self.start.elapsed(), safe, told: None };
        self.history().calls.insert(nonce.to_owned(), asked);
        let arguments = format!(r#"{{"nonce":"{nonce}"}}"#);
        let told = line
            .call_tool(tool, Raw(&arguments))
            .await
            .map(drop)
            .map_err(|error| Failure::of_fields(&error.fields()));
        let at = self.start.elapsed();
        if let Some(asked) = self.history().calls.get_mut(nonce) {
            asked.told = Some((at, told));
        }
    }

    /// Writes down what happens to a line, until it is closed.
    pub async fn watch(&self, line: &Line) {
        let mut events = line.events();
        loop {
            match events.next().await {
                Some(Event::State(status)) => {
                    self.history().states.push((self.start.elapsed(), status.state.name()));
                    if status.state == State::Closed {
                        return;
                    }
                }
                Some(Event::Changed(..)) => self.history().changes += 1,
                Some(Event::Missed(events)) => self.history().missed += events,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// What was written so far; the book is empty then, so that what grows is what is watched and not the watcher.
    pub fn take(&self) -> History {
        std::mem::take(&mut *self.history())
    }
}

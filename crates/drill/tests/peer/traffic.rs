//! Callers that call one after the other, and write down what they were told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender::{CallError, CallErrorKind, Line, Raw};
use linetender_badserver::Book;
use tokio::task::JoinSet;

use crate::look::{eventually, in_time, speaks};

/// How many call at once.
const CALLERS: usize = 6;

/// What a caller does when a call failed, so that a dead server is not called in a tight loop.
const PAUSE: Duration = Duration::from_millis(5);

type Heard = (String, Result<(), CallError>);

/// Callers at work.
pub struct Traffic {
    heard: Arc<Mutex<Vec<Heard>>>,
    stop: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl Traffic {
    pub fn start(line: &Line, tool: &'static str) -> Self {
        let (heard, stop) = (Arc::<Mutex<Vec<Heard>>>::default(), Arc::<AtomicBool>::default());
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let (line, heard, stop) = (line.clone(), Arc::clone(&heard), Arc::clone(&stop));
            callers.spawn(async move {
                for call in 0_u32.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let nonce = format!("{caller}-{call}");
                    let arguments = format!(r#"{{"message":"hello","nonce":"{nonce}"}}"#);
                    let outcome = in_time(line.call_tool(tool, Raw(&arguments))).await.map(drop);
                    if let Err(CallError { answered: Some(error), .. }) = &outcome {
                        panic!("{nonce}: {error}");
                    }
                    let failed = outcome.is_err();
                    heard.lock().unwrap().push((nonce, outcome));
                    if failed {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            });
        }
        Self { heard, stop, callers }
    }

    /// Waits until every caller can have had several more answers.
    pub async fn flows(&self) {
        let answers = || self.heard.lock().unwrap().iter().filter(|(_, outcome)| outcome.is_ok()).count();
        let enough = answers() + 5 * CALLERS;
        eventually(|| (answers() >= enough).then_some(())).await;
    }

    /// Stops, and tells what was heard. None may have hung, and each that failed says all there is to say.
    pub async fn stop(mut self) -> Outcomes {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = in_time(self.callers.join_next()).await {
            ended.unwrap();
        }
        let heard = std::mem::take(&mut *self.heard.lock().unwrap());
        for (nonce, outcome) in &heard {
            if let Err(error) = outcome {
                speaks(error);
                assert_ne!(error.kind, CallErrorKind::TimedOut, "{nonce}: {error}");
            }
        }
        Outcomes(heard)
    }
}

/// What the callers were told.
pub struct Outcomes(Vec<Heard>);

impl Outcomes {
    /// How many were answered, how many are known not to have run, and of how many nobody knows.
    pub fn count(&self) -> (usize, usize, usize) {
        let count = |wanted: fn(&Result<(), CallError>) -> bool| {
            self.0.iter().filter(|(_, outcome)| wanted(outcome)).count()
        };
        let not_executed = count(|outcome| outcome.as_ref().is_err_and(CallError::not_executed));
        let answered = count(Result::is_ok);
        (answered, not_executed, self.0.len() - answered - not_executed)
    }

    /// Against what the server wrote down: nothing ran twice, and nobody was told a lie.
    pub fn agree_with(&self, book: &Book) {
        let runs: HashMap<String, u32> = book.runs();
        for (nonce, outcome) in &self.0 {
            let ran = runs.get(nonce).copied().unwrap_or(0);
            assert!(ran <= 1, "{nonce} ran {ran} times");
            match outcome {
                Ok(()) => assert_eq!(ran, 1, "{nonce} was answered"),
                Err(error) if error.not_executed() => assert_eq!(ran, 0, "{nonce}: {error}"),
                Err(_) => {}
            }
        }
    }
}

//! By threads: an agent's pipes are anonymous ones, which this system lets nobody wait for.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};

use linetender::{Reading, is_read_by_nobody};
use tokio::sync::{Notify, oneshot};

use super::{Heard, Input, LOOK, Output};

/// Both ends.
pub(crate) struct Pipes {
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) gone: Gone,
    /// Nothing was borrowed.
    pub(crate) borrowed: [Option<Box<Infallible>>; 2],
}

/// Sees that the agent is gone for good: it neither asks nor reads any more.
pub(crate) struct Gone {
    asked: Arc<Notify>,
}

impl Gone {
    /// An agent that closed its input may still read answers; one that was killed reads nothing.
    pub(crate) async fn for_good(self) {
        self.asked.notified().await;
        let (tell, told) = oneshot::channel();
        let (wanted, until) = channel::<Infallible>();
        // Who looks may have to wait until an answer is written, which an agent that does not read keeps from happening.
        let looks = move || {
            let stdout = std::io::stdout();
            while !is_read_by_nobody(&stdout) {
                if until.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
            let _ = tell.send(());
        };
        let looking = std::thread::Builder::new().name("agent".into()).spawn(looks);
        if looking.is_err() || told.await.is_err() {
            // It is not known: answers that are still to come have their bound.
            std::future::pending::<()>().await;
        }
        drop(wanted);
    }
}

impl Pipes {
    /// Takes stdin and stdout. Inside a runtime.
    pub(crate) fn take() -> Self {
        let asked = Arc::new(Notify::new());
        Self {
            gone: Gone { asked: Arc::clone(&asked) },
            // Of an agent that writes nothing for a moment it is not the end.
            input: Box::new(Heard(Reading::new(tokio::io::stdin()), asked)),
            output: Box::new(tokio::io::stdout()),
            borrowed: [None, None],
        }
    }
}

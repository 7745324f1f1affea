//! A server to which nobody can log in: it is tried without, and if it wants a login, that is said.

use std::borrow::Cow;
use std::sync::Arc;

use linetender::{Asked, Keys, NoKey, Redacted, Refused};
use tokio::sync::watch;

/// The most characters of the reason.
const SHOWN: usize = 900;

#[derive(Debug)]
pub(super) struct Unable {
    why: Redacted,
    changes: watch::Sender<u64>,
}

impl Unable {
    pub(super) fn new(why: &str) -> Self {
        Self { why: Redacted::head(why, SHOWN), changes: watch::Sender::new(0) }
    }
}

impl Keys for Unable {
    fn key(self: Arc<Self>, refused: Option<Refused>) -> Asked {
        Box::pin(async move {
            let Some(refused) = refused else { return Ok(None) };
            let words = format!(
                "the server wants credentials (status {}), but linetender cannot log in: {}",
                refused.status, self.why
            );
            Err(NoKey::Login { words: Redacted::head(&words, SHOWN) })
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn identity(&self) -> Cow<'_, str> {
        format!("unable {}", self.why).into()
    }
}

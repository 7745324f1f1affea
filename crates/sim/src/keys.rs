//! Credentials that never run out: whichever key a host refuses, there is another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linetender::{Asked, Key, Keys, Refused};
use tokio::sync::watch;

/// Keys, counted.
#[derive(Debug)]
pub(crate) struct Endless {
    last: AtomicU64,
    changes: watch::Sender<u64>,
}

impl Endless {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { last: AtomicU64::new(1), changes: watch::Sender::new(0) })
    }
}

impl Keys for Endless {
    fn key(self: Arc<Self>, refused: Option<Refused>) -> Asked {
        let number = self.last.fetch_add(u64::from(refused.is_some()), Ordering::Relaxed);
        let number = number + u64::from(refused.is_some());
        Box::pin(async move { Ok(Key::bearer(&format!("key-{number}")).ok()) })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

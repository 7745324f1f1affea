//! HTTP/1.1 connections between two requests.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::lock;
use super::talk::Http1;
use crate::tasks::Owned;

/// A connection whose last exchange is over is ready as soon as its task has run; more is no good sign.
const READY_WAIT: Duration = Duration::from_millis(20);

/// The last one in is the first one out: it is the one the other side is least likely to have given up.
pub(super) struct Idle {
    kept: Arc<Mutex<Kept>>,
    most: usize,
    limit: Duration,
}

#[derive(Default)]
struct Kept {
    connections: Vec<(Http1, Instant)>,
    /// Closes what nobody came for. It runs while there is something to close.
    sweeper: Option<Owned<()>>,
}

impl Idle {
    pub(super) fn new(most: usize, limit: Duration) -> Self {
        Self { kept: Arc::default(), most, limit }
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.kept).connections.len()
    }

    pub(super) fn clear(&self) {
        lock(&self.kept).connections.clear();
    }

    pub(super) fn put(&self, connection: Http1) {
        let mut kept = lock(&self.kept);
        if self.most == 0 {
            return;
        }
        if kept.connections.len() >= self.most {
            kept.connections.remove(0);
        }
        kept.connections.push((connection, Instant::now()));
        if kept.sweeper.is_none() {
            kept.sweeper = Some(Owned::spawn(sweep(Arc::downgrade(&self.kept), self.limit)));
        }
    }

    /// The newest one that is still good.
    pub(super) async fn take(&self) -> Option<Http1> {
        loop {
            let (mut connection, since) = lock(&self.kept).connections.pop()?;
            if since.elapsed() >= self.limit {
                // All others are older.
                self.clear();
                return None;
            }
            let ready = matches!(timeout(READY_WAIT, connection.sender.ready()).await, Ok(Ok(())));
            // Whatever there is to read on an idle connection, it is no answer: mostly it is the end.
            if ready && connection.tcp.is_quiet() {
                return Some(connection);
            }
        }
    }
}

async fn sweep(kept: Weak<Mutex<Kept>>, limit: Duration) {
    loop {
        sleep(limit).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = lock(&kept);
        kept.connections
            .retain(|(connection, since)| since.elapsed() < limit && !connection.sender.is_closed());
        if kept.connections.is_empty() {
            kept.sweeper.take();
            return;
        }
    }
}

//! A clock that beats while there is something to do.
//!
//! A request that waits sets a time, and a time that comes before all others wakes the thread that waits for sockets: a system
//! call for each request, though hardly any waits that long. A beat that always comes sooner spares them that.

use std::time::Duration;

use tokio::sync::Notify;

/// Sooner than anything that a request waits for.
const BEAT: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Pulse(Notify);

impl Pulse {
    /// There is something to do.
    pub(super) fn beat(&self) {
        self.0.notify_one();
    }

    /// Beats for as long as it is polled and there was something to do since the last time; at rest it sets no time at all.
    pub(super) async fn run(&self) {
        loop {
            self.0.notified().await;
            tokio::time::sleep(BEAT).await;
        }
    }
}

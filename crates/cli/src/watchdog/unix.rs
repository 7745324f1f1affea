//! What a service manager is told: that it serves, that it ends, and in between that it is not frozen.
//!
//! It is told so by a task among those that serve: a runtime that does not come to it does not come to agents either, and
//! systemd (`WatchdogSec`) starts the gateway anew. Without a service manager nothing is told to anybody.

use std::time::Duration;

use sd_notify::NotifyState;

/// Tells that it serves, and goes on telling for as long as it is polled. Never ends.
pub(crate) async fn run() -> std::convert::Infallible {
    tell(NotifyState::Ready);
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let often = (limit / 3).max(Duration::from_millis(10));
    loop {
        tell(NotifyState::Watchdog);
        tokio::time::sleep(often).await;
    }
}

/// Tells that it is about to end.
pub(crate) fn ends() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    // Nobody may be there to hear it; then nobody watches.
    let _ = sd_notify::notify(&[state]);
}

//! Where nothing tells of sleep.

use std::time::Duration;

use tokio::sync::watch;

pub(super) const fn apart() -> Duration {
    Duration::ZERO
}

pub(super) const fn start() -> Option<watch::Receiver<()>> {
    None
}

//! Timers that fire late: this process was stopped, or starved. What lies readable is read before such a timer is believed.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

/// A timer that fires this much after its time is late.
pub(crate) const LATE: Duration = Duration::from_millis(50);

/// How long the tender waits then for what may be readable.
pub(crate) const UNREAD: Duration = Duration::from_millis(500);

/// How long a call does: what the tender reads has to reach it.
const UNTOLD: Duration = Duration::from_secs(1);

/// What this work comes to, if it is done by then, or soon after a timer that fired late.
pub(crate) async fn before<T>(until: Instant, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    match timeout_at(until, &mut work).await {
        Ok(done) => Some(done),
        Err(_) if Instant::now() > until + LATE => timeout(UNTOLD, work).await.ok(),
        Err(_) => None,
    }
}

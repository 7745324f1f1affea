//! The one place that reads a clock: monotonic, and standing still while the machine sleeps.

use std::time::Duration;

use linetender_core::Instant;

/// Turns the runtime's time into the core's, and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(tokio::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(tokio::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Instant {
        let nanos = self.0.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(crate) fn at(&self, instant: Instant) -> tokio::time::Instant {
        self.0 + Duration::from_nanos(instant.nanos())
    }
}

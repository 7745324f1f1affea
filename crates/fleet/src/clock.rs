//! What time it is.

use std::time::{SystemTime, UNIX_EPOCH};

use linetender_core::lease::Now;
use linetender_wire::stdio::Lifeline;

/// The time by the clock that lifelines go by, and the time of day beside it.
#[expect(clippy::disallowed_methods, reason = "the one place of this crate that looks at clocks")]
pub fn now() -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { boot: Lifeline::now(), wall: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) }
}

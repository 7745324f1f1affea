//! The wall's clock, for texts that people and programs read. Nothing is decided by it.

use std::time::SystemTime;

/// A moment as people and programs write it.
pub fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// The time that such a text says; `None` if it says none.
pub fn from_rfc3339(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

/// The time on the wall.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall's clock")]
pub fn wall_clock() -> SystemTime {
    SystemTime::now()
}

//! Times and amounts in words.

use std::time::SystemTime;

use linetender_wire::wall::from_rfc3339;

/// From one time to another; nothing if the clock was set back in between.
pub(super) fn millis(from: SystemTime, to: SystemTime) -> u64 {
    let span = to.duration_since(from).unwrap_or_default();
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// The same for times as the journal has them.
pub(super) fn between(from: &str, to: &str) -> Option<u64> {
    Some(millis(from_rfc3339(from)?, from_rfc3339(to)?))
}

/// A span in at most two units.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes, seconds) {
        (0, 0, 0, 0) => format!("{millis} ms"),
        (0, 0, 0, 1..10) => format!("{seconds}.{} s", millis % 1000 / 100),
        (0, 0, 0, _) => format!("{seconds} s"),
        (0, 0, _, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// A time as people write it. All of the journal's are UTC.
pub(super) fn clock(at: &str) -> String {
    match at.split_once('T') {
        Some((day, time)) => format!("{day} {} UTC", time.split(['.', 'Z']).next().unwrap_or(time)),
        None => at.to_owned(),
    }
}

/// Thousandths of a restart as restarts: `4`, `4.2`.
pub(super) fn tokens(millis: u32) -> String {
    match (millis / 1000, millis % 1000 / 100) {
        (whole, 0) => whole.to_string(),
        (whole, tenths) => format!("{whole}.{tenths}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{between, clock, span, tokens};

    #[test]
    fn spans_are_short_and_times_say_their_zone() {
        let spans = [0, 950, 2_500, 12_000, 61_000, 3_660_000, 90_000_000].map(span);
        assert_eq!(spans, ["0 ms", "950 ms", "2.5 s", "12 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
        assert_eq!(clock("2026-11-17T05:10:33.120Z"), "2026-11-17 05:10:33 UTC");
        assert_eq!(between("2026-11-17T05:10:33.120Z", "2026-11-17T05:10:34.000Z"), Some(880));
        assert_eq!(between("2026-11-17T05:10:34.000Z", "2026-11-17T05:10:33.000Z"), Some(0), "set back");
        assert_eq!(between("then", "now"), None);
        assert_eq!([5000, 4200, 0].map(tokens), ["5", "4.2", "0"]);
    }
}

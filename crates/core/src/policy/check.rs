//! The rules that settings must keep.

use core::fmt;
use core::time::Duration;

use super::settings::Settings;

/// A setting that breaks a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Invalid {
    /// Where it stands, as `group.setting`.
    pub setting: &'static str,
    /// What it must be.
    pub must: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}", self.setting, self.must)
    }
}

impl core::error::Error for Invalid {}

/// The longest time that can be set, a year: beyond it a number is a slip of the pen, and far below where arithmetic could saturate.
pub const LONGEST: Duration = Duration::from_secs(31_536_000);

/// The longest time that a server may take to save its work: its user waits for it.
const LONGEST_CLOSE: Duration = Duration::from_secs(60);

pub(super) fn check(s: &Settings) -> Result<(), Invalid> {
    for (setting, span) in spans(s) {
        rule(!span.is_zero(), setting, "longer than zero")?;
        rule(span <= LONGEST, setting, "at most a year")?;
    }
    for (setting, count) in counts(s) {
        rule(count > 0, setting, "at least 1")?;
    }
    rule(s.call.cap >= s.call.limit, "call.cap", "no shorter than call.limit")?;
    rule(s.call.hang_after >= s.call.limit, "call.hang_after", "no shorter than call.limit")?;
    rule(s.backoff.cap >= s.backoff.base, "backoff.cap", "no shorter than backoff.base")?;
    let useful = s.backoff.useful_cap >= s.backoff.useful_base;
    rule(useful, "backoff.useful_cap", "no shorter than backoff.useful_base")?;
    rule(s.park.probe_cap >= s.park.probe, "park.probe_cap", "no shorter than park.probe")?;
    rule(s.park.wake_cap >= s.park.wake, "park.wake_cap", "no shorter than park.wake")?;
    rule(s.close.term <= LONGEST_CLOSE, "close.term", "at most a minute")?;
    // Integer arithmetic in milli-tokens needs at least a nanosecond each; and configuration counts milliseconds.
    let whole = s.budget.uptime_per_token >= Duration::from_millis(1);
    rule(whole, "budget.uptime_per_token", "at least a millisecond")?;
    let whole = s.budget.useful_uptime_per_token >= Duration::from_millis(1);
    rule(whole, "budget.useful_uptime_per_token", "at least a millisecond")?;
    // More than one re-send per call is a storm, whatever the budget is called.
    rule(s.retry.percent <= 100, "retry.percent", "at most 100")
}

fn rule(kept: bool, setting: &'static str, must: &'static str) -> Result<(), Invalid> {
    if kept { Ok(()) } else { Err(Invalid { setting, must }) }
}

fn spans(s: &Settings) -> [(&'static str, Duration); 30] {
    [
        ("dial.start", s.dial.start),
        ("dial.handshake", s.dial.handshake),
        ("dial.probe_wait", s.dial.probe_wait),
        ("dial.gap", s.dial.gap),
        ("call.limit", s.call.limit),
        ("call.cap", s.call.cap),
        ("call.hang_after", s.call.hang_after),
        ("call.abandoned_after", s.call.abandoned_after),
        ("call.wait_for_line", s.call.wait_for_line),
        ("call.question_cap", s.call.question_cap),
        ("call.refusal_within", s.call.refusal_within),
        ("probe.keepalive", s.probe.keepalive),
        ("probe.timeout", s.probe.timeout),
        ("budget.uptime_per_token", s.budget.uptime_per_token),
        ("budget.useful_uptime_per_token", s.budget.useful_uptime_per_token),
        ("backoff.base", s.backoff.base),
        ("backoff.cap", s.backoff.cap),
        ("backoff.useful_base", s.backoff.useful_base),
        ("backoff.useful_cap", s.backoff.useful_cap),
        ("backoff.retry_after_cap", s.backoff.retry_after_cap),
        ("park.probe", s.park.probe),
        ("park.probe_cap", s.park.probe_cap),
        ("park.wake", s.park.wake),
        ("park.wake_cap", s.park.wake_cap),
        ("close.drain", s.close.drain),
        ("close.settle", s.close.settle),
        ("close.stdin", s.close.stdin),
        ("close.term", s.close.term),
        ("close.crash", s.close.crash),
        ("close.kill", s.close.kill),
    ]
}

fn counts(s: &Settings) -> [(&'static str, u32); 9] {
    [
        ("probe.failures", s.probe.failures.into()),
        ("budget.tokens", s.budget.tokens.into()),
        ("budget.useful_answers", s.budget.useful_answers.into()),
        ("budget.useful_tokens", s.budget.useful_tokens.into()),
        ("limits.message", s.limits.message),
        ("limits.depth", s.limits.depth.into()),
        ("limits.in_flight", s.limits.in_flight.into()),
        ("limits.queue", s.limits.queue.into()),
        ("limits.stderr", s.limits.stderr),
    ]
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Settings, counts, spans};
    use crate::policy::Policy;
    use core::time::Duration;
    use std::string::ToString as _;

    fn refused(change: impl FnOnce(&mut Settings)) -> &'static str {
        let mut settings = Settings::default();
        change(&mut settings);
        Policy::new(settings).expect_err("must be refused").setting
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(Policy::new(Settings::default()), Ok(Policy::default()));
        assert_eq!(Settings::from(Policy::default()), Settings::default());
        let mut changed = Settings::default();
        changed.budget.tokens = 7;
        let policy = Policy::try_from(changed).unwrap();
        assert_eq!((*policy.settings(), Settings::from(policy)), (changed, changed));
        changed.budget.tokens = 0;
        assert!(Policy::try_from(changed).is_err());
    }

    #[test]
    fn no_span_is_zero_or_endless_and_no_count_is_zero() {
        assert_eq!(refused(|s| s.probe.keepalive = Duration::ZERO), "probe.keepalive");
        assert_eq!(refused(|s| s.close.settle = LONGEST + Duration::from_nanos(1)), "close.settle");
        assert_eq!(refused(|s| s.budget.tokens = 0), "budget.tokens");
        assert_eq!(refused(|s| s.limits.queue = 0), "limits.queue");
        let mut year = Settings::default();
        year.close.drain = LONGEST;
        assert!(Policy::new(year).is_ok());
        assert!(counts(&Settings::default()).iter().all(|(_, count)| *count > 0));
        assert!(spans(&Settings::default()).iter().all(|(_, span)| *span <= LONGEST));
    }

    #[test]
    fn a_cap_is_never_below_what_it_caps() {
        let short = Duration::from_nanos(1);
        assert_eq!(refused(|s| s.call.cap = short), "call.cap");
        assert_eq!(refused(|s| s.call.hang_after = short), "call.hang_after");
        assert_eq!(refused(|s| s.backoff.cap = short), "backoff.cap");
        assert_eq!(refused(|s| s.backoff.useful_cap = short), "backoff.useful_cap");
        assert_eq!(refused(|s| s.park.probe_cap = short), "park.probe_cap");
        assert_eq!(refused(|s| s.park.wake_cap = short), "park.wake_cap");
        let mut equal = Settings::default();
        equal.call.cap = equal.call.limit;
        equal.call.hang_after = equal.call.limit;
        equal.backoff.cap = equal.backoff.base;
        equal.backoff.useful_cap = equal.backoff.useful_base;
        equal.park.probe_cap = equal.park.probe;
        equal.park.wake_cap = equal.park.wake;
        equal.budget.uptime_per_token = Duration::from_millis(1);
        equal.budget.useful_uptime_per_token = Duration::from_millis(1);
        equal.retry.percent = 100;
        assert!(Policy::new(equal).is_ok());
    }

    #[test]
    fn a_budget_cannot_divide_by_zero_nor_a_retry_multiply() {
        assert_eq!(
            refused(|s| s.budget.uptime_per_token = Duration::from_nanos(999_999)),
            "budget.uptime_per_token"
        );
        let short = Duration::from_nanos(999_999);
        assert_eq!(refused(|s| s.budget.useful_uptime_per_token = short), "budget.useful_uptime_per_token");
        assert_eq!(refused(|s| s.retry.percent = 101), "retry.percent");
    }

    #[test]
    fn an_error_reads_as_a_sentence() {
        let mut settings = Settings::default();
        settings.probe.failures = 0;
        assert_eq!(Policy::new(settings).unwrap_err().to_string(), "probe.failures must be at least 1");
    }
}

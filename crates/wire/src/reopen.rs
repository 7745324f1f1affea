//! When a server's own stream that ended is opened again, and whether something was missed meanwhile. A stream is no call and no line: it costs no budget, and has waits of its own.
//!
//! A server or a proxy may end streams politely, at once, for ever. So it is not how a stream ended that shortens the
//! wait, but how long it lasted.

use std::time::Duration;

use linetender_core::Jitter;

/// The longest first wait; doubles.
const FIRST: Duration = Duration::from_secs(2);

/// The least wait.
const LEAST: Duration = Duration::from_millis(100);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);

/// A stream that lasted as long as this was a good one: the waits begin anew.
const STEADY: Duration = Duration::from_secs(10);

/// The waits of one stream.
#[derive(Clone, Debug)]
pub struct Reopen {
    jitter: Jitter,
    step: u32,
    was_open: bool,
}

impl Reopen {
    /// Nothing was opened yet. The seed keeps many streams from coming back in step.
    pub const fn new(seed: u64) -> Self {
        Self { jitter: Jitter::new(seed), step: 0, was_open: false }
    }

    /// It is open. Whether it was open before: what the server said in between is lost, and lists are read again to be sure.
    pub const fn opened(&mut self) -> bool {
        std::mem::replace(&mut self.was_open, true)
    }

    /// Whether it was ever open.
    pub const fn was_open(&self) -> bool {
        self.was_open
    }

    /// It is opened anew because something else is wanted of it: nothing is missed.
    pub const fn anew(&mut self) {
        self.was_open = false;
    }

    /// It lasted so long, and is over: how long to wait. No less than the server asked for, within reason.
    pub fn wait(&mut self, lasted: Duration, asked: Option<Duration>) -> Duration {
        if lasted >= STEADY {
            self.step = 0;
        }
        let longest = FIRST.saturating_mul(1 << self.step.min(16)).min(LONGEST);
        self.step = self.step.saturating_add(1);
        // Full jitter: the streams of five hundred lines end in the same moment, and must not come back in one.
        let wait = self.jitter.up_to(longest).max(LEAST);
        wait.max(asked.unwrap_or(Duration::ZERO).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::Reopen;
    use std::time::Duration;

    /// How often a stream is opened within an hour, if each lasts so long.
    fn an_hour(lasts: Duration) -> u32 {
        let (mut reopen, mut at, mut opened) = (Reopen::new(7), Duration::ZERO, 0);
        while at < Duration::from_secs(3600) {
            opened += 1;
            at += lasts + reopen.wait(lasts, None);
        }
        opened
    }

    #[test]
    fn h17_an_empty_stream_for_ever_is_opened_two_hundred_times_an_hour_and_not_a_million() {
        assert!((80..200).contains(&an_hour(Duration::ZERO)), "{}", an_hour(Duration::ZERO));
    }

    #[test]
    fn h07_one_that_a_proxy_cuts_every_minute_is_back_within_two_seconds() {
        let mut reopen = Reopen::new(7);
        for _ in 0..100 {
            assert!(reopen.wait(Duration::from_secs(60), None) <= Duration::from_secs(2));
        }
        assert!((58..=60).contains(&an_hour(Duration::from_secs(60))));
    }

    #[test]
    fn one_that_a_balancer_cuts_every_half_minute_is_open_most_of_the_time() {
        assert!(an_hour(Duration::from_secs(30)) >= 112, "{}", an_hour(Duration::from_secs(30)));
    }

    #[test]
    fn a_servers_wish_is_honoured_within_reason() {
        let mut reopen = Reopen::new(7);
        assert!(reopen.wait(Duration::ZERO, Some(Duration::from_secs(5))) >= Duration::from_secs(5));
        assert!(reopen.wait(Duration::ZERO, Some(Duration::from_secs(5000))) <= Duration::from_secs(60));
    }
}

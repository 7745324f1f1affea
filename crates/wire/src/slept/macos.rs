//! By the two clocks, which are looked at now and then.

#![allow(unsafe_code, reason = "no safe crate here knows the clock that stands still while a Mac sleeps")]

use std::mem::MaybeUninit;
use std::time::Duration;

use libc::{CLOCK_MONOTONIC_RAW, CLOCK_UPTIME_RAW, clockid_t, timespec};
use tokio::sync::watch;

/// How long the machine has slept since it was started.
// clock_gettime(3) of macOS: CLOCK_MONOTONIC_RAW goes on while the system is asleep, CLOCK_UPTIME_RAW does not; nobody sets either.
pub(super) fn apart() -> Duration {
    let counts_sleep = read(CLOCK_MONOTONIC_RAW);
    counts_sleep.saturating_sub(read(CLOCK_UPTIME_RAW))
}

fn read(clock: clockid_t) -> Duration {
    let mut now = MaybeUninit::<timespec>::zeroed();
    // SAFETY: there is room for what it writes, and all zero, which it is before, is a value of the type.
    let now = unsafe {
        libc::clock_gettime(clock, now.as_mut_ptr());
        now.assume_init()
    };
    let seconds = Duration::from_secs(now.tv_sec.unsigned_abs());
    seconds + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(super) fn start() -> Option<watch::Receiver<()>> {
    Some(super::ticks::start(apart))
}

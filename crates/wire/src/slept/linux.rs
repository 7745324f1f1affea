//! By a timer that is cancelled when the wall's clock is set, which waking up does, and by the two clocks.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::readable::readable;

/// The shortest sleep that is told. The two clocks are read one after the other, so a little is always between them.
const SHORTEST: Duration = Duration::from_secs(1);

/// When the timer would be due: in the year 2242.
const NEVER: i64 = 1 << 33;

/// Watches for sleep. Where the kernel refuses such a timer, or the runtime does no I/O, nobody is told.
#[derive(Debug)]
pub struct Slept {
    /// How far the clocks were apart when somebody last looked.
    apart: Duration,
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Slept {
    /// Begins to watch.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn watch() -> Self {
        Self { apart: apart(), timer: timer() }
    }

    /// Watches nothing: in a simulated world only that world sleeps.
    pub const fn never() -> Self {
        Self { apart: Duration::ZERO, timer: None }
    }

    /// Waits until the machine has slept; how long. Whoever stops waiting misses nothing.
    pub async fn wait(&mut self) -> Duration {
        loop {
            let Some(timer) = &self.timer else { return std::future::pending().await };
            let Ok(mut ready) = timer.readable().await else { return std::future::pending().await };
            // It says that the clock was set, whatever set it. What it says is of no interest, but has to be read.
            let _ = rustix::io::read(timer.get_ref(), &mut [0; 8]);
            ready.clear_ready();
            drop(ready);
            if let Some(slept) = self.since(apart()) {
                return slept;
            }
        }
    }

    /// How long the machine slept since somebody last looked, by how far the clocks are apart now.
    fn since(&mut self, apart: Duration) -> Option<Duration> {
        let slept = apart.saturating_sub(self.apart);
        (slept >= SHORTEST).then(|| {
            self.apart = apart;
            slept
        })
    }
}

/// How long the machine has slept since it was started.
fn apart() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let counts_sleep = read(ClockId::Boottime);
    counts_sleep.saturating_sub(read(ClockId::Monotonic))
}

fn timer() -> Option<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Realtime, flags).ok()?;
    let at = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    let when = Itimerspec { it_interval: at(0), it_value: at(NEVER) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &when).ok()?;
    readable(timer)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Slept;

    #[test]
    fn a_sleep_is_told_once_and_the_time_between_two_looks_is_none() {
        let mut slept = Slept { apart: Duration::from_secs(100), timer: None };
        assert_eq!(
            slept.since(Duration::from_millis(100_020)),
            None,
            "the clocks are read one after the other"
        );
        assert_eq!(slept.since(Duration::from_secs(28_900)), Some(Duration::from_secs(28_800)));
        assert_eq!(slept.since(Duration::from_millis(28_900_010)), None);
    }

    #[tokio::test]
    async fn a_machine_that_is_awake_can_be_watched() {
        let mut slept = Slept::watch();
        assert!(slept.timer.is_some(), "the kernel has such timers");
        let soon = tokio::time::timeout(Duration::from_millis(50), slept.wait());
        assert!(soon.await.is_err(), "it did not sleep");
    }
}

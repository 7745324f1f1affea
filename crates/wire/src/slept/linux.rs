//! By a timer that is cancelled when the wall's clock is set, which waking up does, and by the two clocks.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::readable::readable;
use crate::tasks::spawn_last;

/// When the timer would be due: in the year 2242.
const NEVER: i64 = 1 << 33;

/// How long the machine has slept since it was started.
pub(super) fn apart() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let counts_sleep = read(ClockId::Boottime);
    counts_sleep.saturating_sub(read(ClockId::Monotonic))
}

/// The one task that has the timer, for as long as anybody watches.
pub(super) fn start() -> Option<watch::Receiver<()>> {
    let timer = timer()?;
    let (told, set) = watch::channel(());
    spawn_last(async move {
        loop {
            let ready = tokio::select! {
                ready = timer.readable() => ready,
                () = told.closed() => return,
            };
            let Ok(mut ready) = ready else { return };
            // It says that the clock was set, whatever set it. What it says is of no interest, but has to be read.
            let _ = rustix::io::read(timer.get_ref(), &mut [0; 8]);
            ready.clear_ready();
            told.send_replace(());
        }
    });
    Some(set)
}

fn timer() -> Option<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Realtime, flags).ok()?;
    let at = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    let when = Itimerspec { it_interval: at(0), it_value: at(NEVER) };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &when).ok()?;
    readable(timer)
}

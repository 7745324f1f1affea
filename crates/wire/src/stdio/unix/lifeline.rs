//! A deadline that a server's processes do not outlive, whatever becomes of us.
//!
//! Whoever owns a line by a lease must be done with it when the lease is, also if this process is stopped and cannot end anything. So
//! the reaper has the time: a timer of the kernel's, which we move as long as we may and which it only looks at. The clock goes on
//! while the machine sleeps, and nobody sets it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use linetender_core::Instant;

/// The timer. Every process that was started with it is killed when it is over.
#[derive(Debug)]
pub struct Lifeline {
    timer: OwnedFd,
    /// What the timer is set to, by its own clock.
    until: AtomicU64,
}

#[cfg(all(target_os = "linux", not(linetender_portable)))]
impl Lifeline {
    /// One that is over then.
    ///
    /// # Errors
    /// If the system has none.
    pub fn new(until: Instant) -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        let lifeline = Self { timer, until: AtomicU64::new(0) };
        lifeline.extend(until)?;
        Ok(lifeline)
    }

    /// It is over then, and not before. For whoever was killed by then this comes too late.
    ///
    /// # Errors
    /// If the system refuses that.
    pub fn extend(&self, until: Instant) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        // Zero would switch it off.
        let nanos = i64::try_from(until.nanos().max(1)).unwrap_or(i64::MAX);
        let it_value = Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.until.store(until.nanos(), Ordering::Release);
        Ok(())
    }

    /// Whether it is over: nothing may reach a process that was started with it, also if nobody has killed it yet.
    pub fn is_over(&self) -> bool {
        Self::now().nanos() >= self.until.load(Ordering::Acquire)
    }

    /// Its clock.
    pub fn now() -> Instant {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let nanos = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        Instant::from_nanos(nanos)
    }

    pub(super) fn handed(&self) -> io::Result<OwnedFd> {
        self.timer.try_clone()
    }
}

#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
impl Lifeline {
    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn new(_until: Instant) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn extend(&self, _until: Instant) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is none.
    pub fn is_over(&self) -> bool {
        self.until.load(Ordering::Acquire) == 0
    }

    /// The clock that one would go by. On macOS this one goes on while the machine sleeps; a system without lifelines has no lease to
    /// keep by it.
    pub fn now() -> Instant {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Instant::from_nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
    }

    pub(super) fn handed(&self) -> io::Result<OwnedFd> {
        self.timer.try_clone()
    }
}

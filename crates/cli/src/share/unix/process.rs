//! A process by a number that somebody else may get when it has gone. Linux has descriptors for that, and macOS tells when a process
//! started; elsewhere nobody is killed by number.

#[cfg(all(target_os = "macos", not(linetender_portable)))]
pub(super) use linetender::guard::Named as Handle;
#[cfg(any(not(target_os = "macos"), linetender_portable))]
pub(super) use system::Handle;

#[cfg(target_os = "linux")]
mod system {
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags};
    use rustix::process::{Pid, PidfdFlags, Signal};

    /// A process that is not mistaken for another.
    pub(in super::super) struct Handle {
        pid: Pid,
        pidfd: OwnedFd,
    }

    impl Handle {
        /// The process that has this number now.
        pub(in super::super) fn of(pid: i32) -> Option<Self> {
            let pid = Pid::from_raw(pid)?;
            Some(Self { pid, pidfd: rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()? })
        }

        /// Whether it was stopped by a signal.
        pub(in super::super) fn is_stopped(&self) -> bool {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
            let state = stat.ok().and_then(|stat| stat.rsplit(") ").next()?.chars().next());
            state.is_some_and(|state| matches!(state, 'T' | 't'))
        }

        pub(in super::super) fn lives(&self) -> bool {
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(0))
        }

        pub(in super::super) fn kill(&self) {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }
}

#[cfg(all(not(target_os = "linux"), any(not(target_os = "macos"), linetender_portable)))]
mod system {
    use std::convert::Infallible;

    /// There is none.
    pub(in super::super) struct Handle(Infallible);

    impl Handle {
        pub(in super::super) fn of(_pid: i32) -> Option<Self> {
            None
        }

        pub(in super::super) fn is_stopped(&self) -> bool {
            match self.0 {}
        }

        pub(in super::super) fn lives(&self) -> bool {
            match self.0 {}
        }

        pub(in super::super) fn kill(&self) {
            match self.0 {}
        }
    }
}

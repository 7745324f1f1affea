//! A process that is watched by a pidfd.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::unix::AsyncFd;

use crate::readable::readable;
use crate::stdio::client::client;
use crate::stdio::platform::Work;

/// The most processes of a server that are looked at, and of each the most threads.
const MOST_PROCESSES: usize = 256;
const MOST_THREADS: usize = 64;

/// Fields of `stat` behind the name: the processor times (user, system, and both of waited-for children), and the start.
const CPU: usize = 11;
const BEGAN: usize = 19;

/// A process that somebody else started.
pub(super) struct Watched {
    pid: Pid,
    fd: Option<AsyncFd<OwnedFd>>,
}

impl Watched {
    /// Of a process whose number is its own now.
    pub(super) fn of(pid: Pid) -> Self {
        let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
        Self { pid, fd: fd.and_then(readable) }
    }

    pub(super) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns when it has ended; at once, where the kernel has no pidfds.
    pub(super) async fn exited(&self) {
        if let Some(fd) = &self.fd
            && let Ok(mut ended) = fd.readable().await
        {
            ended.retain_ready();
        }
    }

    /// Kills what is below it, whatever group or session that is in. It is stopped meanwhile, so that nothing new comes.
    ///
    /// It is looked at before that too: its reaper may still be on its way out, and the kernel then hangs up on a stopped
    /// group that nobody leads. The server dies of that at once, and with it goes the knowledge of what was below.
    pub(super) fn kill_below(&self) {
        let Some(fd) = &self.fd else { return };
        // Nothing is below the dead, and its number may be somebody else's.
        if self.has_exited() {
            return;
        }
        let mut below = descendants(self.pid, 0);
        if rustix::process::pidfd_send_signal(fd, Signal::STOP).is_ok() {
            below.extend(descendants(self.pid, 0));
        }
        for below in below {
            let _ = rustix::process::kill_process(below, Signal::KILL);
        }
    }

    /// Kills it; whether it was there. Without a pidfd its group is all there is.
    pub(super) fn kill(&self) -> bool {
        let Some(fd) = &self.fd else { return false };
        let _ = rustix::process::pidfd_send_signal(fd, Signal::KILL);
        !self.has_exited()
    }

    /// What it and everything below it do. `None` if it is gone.
    pub(super) fn work(&self) -> Option<Work> {
        let of = |process: &Process| Work {
            cpu: process.cpu,
            is_runnable: process.is_runnable,
            youngest: None,
            is_elsewhere: client(process.name.as_ref()).is_some(),
        };
        let mut work = of(&Process::read(self.pid)?);
        let below = descendants(self.pid, 0).into_iter().take(MOST_PROCESSES);
        for process in below.filter_map(Process::read) {
            let Work { cpu, is_runnable, is_elsewhere, .. } = of(&process);
            work.cpu += cpu;
            work.is_runnable |= is_runnable;
            work.is_elsewhere |= is_elsewhere;
            work.youngest = Some(work.youngest.map_or(process.age, |age| age.min(process.age)));
        }
        Some(work)
    }

    /// A pidfd is readable once its process has ended.
    pub(super) fn has_exited(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(fd) = &self.fd else { return false };
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut fds, Some(&now)), Ok(0))
    }
}

/// What `/proc/PID/stat` says of a process.
struct Process {
    name: String,
    cpu: Duration,
    is_runnable: bool,
    age: Duration,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let (head, rest) = stat.rsplit_once(") ")?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let time =
            |ticks: u64| Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1));
        let cpu = time((CPU..CPU + 4).filter_map(ticks).sum());
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = Duration::from_secs(now.tv_sec.try_into().ok()?);
        Some(Self { name, cpu, is_runnable: is_runnable(pid), age: now.saturating_sub(time(ticks(BEGAN)?)) })
    }
}

/// True if a thread of this process has a processor, or waits for one or for a disk.
fn is_runnable(pid: Pid) -> bool {
    let threads =
        std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    threads.take(MOST_THREADS).any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['R', 'D']))
    })
}

/// Everything below a process, as deep as anybody nests.
fn descendants(of: Pid, depth: u32) -> Vec<Pid> {
    const DEEPEST: u32 = 32;
    let of = of.as_raw_nonzero();
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let mut found = Vec::new();
    for children in listed {
        for child in children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            found.push(child);
            if depth < DEEPEST {
                found.extend(descendants(child, depth + 1));
            }
        }
    }
    found
}

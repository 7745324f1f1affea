//! What macOS says of processes: libproc to look at them, a kqueue to hear of them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::kqueue::{Event, EventFilter, ProcessEvents};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use super::calls;
use crate::stdio::control::Record;
use crate::stdio::unix::asked::{exit_of, nap_for, send};
use crate::stdio::unix::descent::{Happened, Kernel, Lineage, Look, Process, Processes, Waited};

/// How many events are taken at once.
const EVENTS: usize = 32;

/// The processes of this machine.
pub(in super::super) struct Mac;

impl Processes for Mac {
    fn children(&mut self, of: Pid) -> Vec<Pid> {
        calls::children(of)
    }

    fn group(&mut self, group: Pid) -> Vec<Pid> {
        calls::group(group)
    }

    fn look(&mut self, pid: Pid) -> Look {
        calls::look(pid)
    }

    fn lineage(&mut self, pid: Pid) -> Option<Lineage> {
        calls::lineage(pid)
    }

    fn watch(&mut self, pid: Pid) -> bool {
        self.look(pid) != Look::Gone
    }

    /// Between the look and the signal its number could go to another only if it ended, was waited for, and all other numbers were
    /// given out once.
    fn signal(&mut self, to: Process, signal: Signal) {
        if matches!(self.look(to.pid), Look::Lives { start, .. } if start == to.start) {
            let _ = rustix::process::kill_process(to.pid, signal);
        }
    }

    fn signal_group(&mut self, group: Pid, signal: Signal) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// The same, as a reaper sees it.
pub(super) struct Watching {
    queue: OwnedFd,
    control: OwnedFd,
    parent: Pid,
    /// Once there is one.
    server: Option<Pid>,
    /// What was taken from the queue and not looked at yet.
    happened: VecDeque<Happened>,
}

impl Watching {
    /// Hears of the parent and of the socket from now on.
    pub(super) fn of(control: OwnedFd, parent: Pid, queue: OwnedFd) -> io::Result<Self> {
        // Should the parent be gone already, the socket says so too, and so does `parent_lives`.
        let _ = calls::add(&queue, EventFilter::Proc { pid: parent, flags: ProcessEvents::EXIT });
        calls::add(&queue, EventFilter::Read(control.as_raw_fd()))?;
        Ok(Self { queue, control, parent, server: None, happened: VecDeque::new() })
    }

    /// The child to be waited for.
    pub(super) fn serve(&mut self, server: Pid) {
        self.server = Some(server);
    }

    fn sort(&mut self, event: &Event) {
        match event.filter() {
            EventFilter::Proc { pid, .. } if pid == self.parent => {
                self.happened.push_back(Happened::ParentGone);
            }
            EventFilter::Proc { pid, flags } => {
                if flags.contains(ProcessEvents::FORK) {
                    self.happened.push_back(Happened::Forked(pid));
                }
                if flags.contains(ProcessEvents::EXIT) {
                    self.happened.push_back(Happened::Exited(pid));
                }
            }
            EventFilter::Read(_) => {
                let mut order = [0];
                match rustix::io::read(self.control.as_fd(), &mut order) {
                    Ok(1) => self.happened.push_back(Happened::Order(order[0])),
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Ok(_) | Err(_) => self.happened.push_back(Happened::ParentGone),
                }
            }
            _ => {}
        }
    }
}

impl Processes for Watching {
    fn children(&mut self, of: Pid) -> Vec<Pid> {
        Mac.children(of)
    }

    fn group(&mut self, group: Pid) -> Vec<Pid> {
        Mac.group(group)
    }

    fn look(&mut self, pid: Pid) -> Look {
        Mac.look(pid)
    }

    fn lineage(&mut self, pid: Pid) -> Option<Lineage> {
        Mac.lineage(pid)
    }

    fn watch(&mut self, pid: Pid) -> bool {
        let flags = ProcessEvents::EXIT | ProcessEvents::FORK;
        // Any other failure leaves it to be looked at now and then.
        calls::add(&self.queue, EventFilter::Proc { pid, flags }) != Err(Errno::SRCH)
    }

    fn signal(&mut self, to: Process, signal: Signal) {
        Mac.signal(to, signal);
    }

    fn signal_group(&mut self, group: Pid, signal: Signal) {
        Mac.signal_group(group, signal);
    }
}

impl Kernel for Watching {
    fn session(&mut self) -> Vec<Process> {
        let us = rustix::process::getpid();
        // If it could not be made, this is somebody else's.
        if rustix::process::getsid(None) == Ok(us) { calls::session(us) } else { Vec::new() }
    }

    fn orphans(&mut self) -> Vec<Pid> {
        // launchd adopts them.
        calls::children(Pid::INIT)
    }

    fn next(&mut self, patience: Duration) -> Happened {
        if self.happened.is_empty() {
            let mut events = Vec::with_capacity(EVENTS);
            match calls::wait(&self.queue, &mut events, patience) {
                Ok(()) | Err(Errno::INTR) => {}
                // Without its events, it must not wait in a circle that takes all of a processor.
                Err(_) => nap_for(Duration::from_millis(50)),
            }
            for event in &events {
                self.sort(event);
            }
        }
        self.happened.pop_front().unwrap_or(Happened::Nothing)
    }

    fn nap(&mut self, time: Duration) {
        nap_for(time);
    }

    fn parent_lives(&mut self) -> bool {
        rustix::process::getppid() == Some(self.parent)
    }

    fn wait_for_server(&mut self) -> Waited {
        let Some(server) = self.server else { return Waited::NoChild };
        loop {
            return match rustix::process::waitpid(Some(server), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => Waited::Status(exit_of(status)),
                Ok(None) => Waited::NotYet,
                Err(Errno::INTR) => continue,
                Err(_) => Waited::NoChild,
            };
        }
    }

    fn tell(&mut self, record: Record) -> bool {
        send(record, &self.control).is_ok()
    }
}

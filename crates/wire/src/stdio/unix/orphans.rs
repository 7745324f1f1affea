//! Orphans of servers that killed their own reaper.
//!
//! As long as a reaper lives, everything below it that loses its parent becomes the reaper's child. If the reaper is killed,
//! its children become ours, if this process has asked for that ([`super::guard::adopt_orphans`]). What arrives then has lost
//! everything else that would tell where it came from: session, group and environment are the server's to change. So it is
//! told by what it is not: not a process that we started, and not a *stranger*, that was our child while every reaper lived.
//! There are strangers where this process had children before its `main`, or is the first of a container, and what a command
//! of ours leaves behind is one.
//!
//! Every process of ours is therefore started here, whatever it is for: nothing here ever waits for one, since its status
//! belongs to the task that started it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::os;
use crate::stdio::process::Role;
use crate::tasks::spawn_last;

/// How often in a row orphans are killed before other tasks get their turn. One that forks faster than it is found is met
/// again at once.
const ROUNDS: usize = 16;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// How often a reaper is looked at that closed its socket and has not ended yet.
const DEATH_LOOKS: u32 = 1000;

/// How many looks in a row have to find nothing: the kernel's list of children may lack one while another of them ends.
const EMPTY_LOOKS: u32 = 3;

/// Between two times that children are looked after, however fast they change.
const TENDED: Duration = Duration::from_millis(50);

/// Whether orphans come to us.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Whether somebody looks after those that came.
static TENDS: AtomicBool = AtomicBool::new(false);

static CHILDREN: Mutex<Children> = Mutex::new(Children {
    roots: Vec::new(),
    commands: Vec::new(),
    dropped: Vec::new(),
    strangers: Vec::new(),
    spared: Vec::new(),
});

/// The children of this process that are no orphans of a server.
struct Children {
    /// Reapers, and servers without one: what they leave behind when they are killed is an orphan.
    roots: Vec<Pid>,
    /// Commands of our own.
    commands: Vec<Pid>,
    /// Processes of either kind whose handle was dropped before they were waited for. The runtime waits for these.
    dropped: Vec<Pid>,
    strangers: Vec<Pid>,
    /// Processes that left a server's tree on purpose. They become our children when that server's reaper ends.
    spared: Vec<Pid>,
}

/// The note that a process is ours.
#[derive(Debug)]
pub(in crate::stdio) struct Started(Option<Pid>);

impl Started {
    /// Takes the note back: the process was waited for, or its handle is dropped and the runtime waits for it.
    pub(in crate::stdio) fn end(&mut self, reaped: bool) {
        let Some(pid) = self.0.take() else { return };
        let mut children = children();
        children.roots.retain(|root| *root != pid);
        children.commands.retain(|command| *command != pid);
        if !reaped {
            children.dropped.push(pid);
        }
    }
}

fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on orphans come to us, where they can be found.
pub(super) fn adopt() {
    let mut children = children();
    if os::lists_children() {
        children.strangers = children.unknown();
        let us = Some(rustix::process::getpid());
        ADOPTS.store(rustix::process::set_child_subreaper(us).is_ok(), Ordering::Relaxed);
    }
}

/// Starts a process that is not to be taken for an orphan.
#[expect(clippy::disallowed_methods, reason = "this is the room")]
pub(in crate::stdio) fn start(command: &mut Command, role: Role) -> std::io::Result<(Child, Started)> {
    if ADOPTS.load(Ordering::Relaxed) && !TENDS.swap(true, Ordering::Relaxed) {
        spawn_last(tend());
    }
    // Until it is known that we started it, nobody may look.
    let mut children = children();
    if ADOPTS.load(Ordering::Relaxed) {
        children.note_strangers();
    }
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    // A number that is given anew is nobody's any more.
    children.dropped.retain(|dropped| Some(*dropped) != pid);
    match role {
        Role::Root => children.roots.extend(pid),
        Role::Command => children.commands.extend(pid),
    }
    Ok((child, Started(pid)))
}

/// This process is no orphan of a server, and comes to us all the same.
pub(super) fn spare(pid: i32) {
    children().spared.extend(Pid::from_raw(pid).filter(|_| ADOPTS.load(Ordering::Relaxed)));
}

/// Kills the orphans of a reaper that died, and returns when there are none; those that only another user may kill.
pub(super) async fn clear(reaper: Pid) -> Vec<Pid> {
    let mut others = Vec::new();
    if !ADOPTS.load(Ordering::Relaxed) {
        return others;
    }
    // Its socket closes before its children are handed on.
    for _ in 0..DEATH_LOOKS {
        if !os::lives(reaper) {
            break;
        }
        let _ = rustix::process::kill_process(reaper, Signal::KILL);
        tokio::time::sleep(LOOK).await;
    }
    let mut empty_looks = 0;
    while empty_looks < EMPTY_LOOKS {
        empty_looks += 1;
        for _ in 0..ROUNDS {
            if !children().kill_orphans(&mut others) {
                break;
            }
            empty_looks = 0;
        }
        tokio::time::sleep(LOOK).await;
    }
    others
}

/// Buries children that others left to us, and wakes reapers that were stopped: that a child ended or stopped is told by the
/// same signal. It ends with the runtime.
async fn tend() {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            TENDS.store(false, Ordering::Relaxed);
        }
    }
    let _ends = Ends;
    let Ok(mut changed) = signal(SignalKind::child()) else { return };
    while changed.recv().await.is_some() {
        children().tend();
        tokio::time::sleep(TENDED).await;
    }
}

impl Children {
    /// Children that nobody of ours started.
    fn unknown(&self) -> Vec<Pid> {
        let known = [&self.roots, &self.commands, &self.dropped, &self.strangers, &self.spared];
        let is_known = |pid: &Pid| known.iter().any(|known| known.contains(pid));
        os::all_children().into_iter().filter(|pid| !is_known(pid)).collect()
    }

    /// What is our child while all reapers live cannot have come from one that died.
    fn note_strangers(&mut self) {
        let unknown = self.unknown();
        if !unknown.is_empty() && self.roots.iter().all(|pid| os::lives(*pid)) {
            self.strangers.extend(unknown);
        }
    }

    /// Kills every orphan and buries the dead ones; whether there were any that may yet leave something behind.
    fn kill_orphans(&mut self, others: &mut Vec<Pid>) -> bool {
        let mut found = false;
        for orphan in self.unknown() {
            // It is our child and nobody else waits for it, so the number stays its own.
            if rustix::process::kill_process(orphan, Signal::KILL) == Err(rustix::io::Errno::PERM) {
                self.strangers.push(orphan);
                others.push(orphan);
            } else {
                found = true;
                let _ = rustix::process::waitpid(Some(orphan), WaitOptions::NOHANG);
            }
        }
        found
    }

    fn tend(&mut self) {
        // One that is our child still is not forgotten, and not waited for either.
        self.dropped.retain(|dropped| {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            rustix::process::waitid(WaitId::Pid(*dropped), look).is_ok()
        });
        self.note_strangers();
        // One that is not ours yet cannot be waited for.
        self.spared.retain(|spared| {
            let ended = rustix::process::waitpid(Some(*spared), WaitOptions::NOHANG);
            !matches!(ended, Ok(Some(_))) && os::lives(*spared)
        });
        self.strangers.retain(|stranger| {
            matches!(rustix::process::waitpid(Some(*stranger), WaitOptions::NOHANG), Ok(None))
        });
        // Only a server has a reason to stop its reaper: a stopped one would not notice how the server ends.
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        for reaper in &self.roots {
            if let Ok(Some(_)) = rustix::process::waitid(WaitId::Pid(*reaper), stopped) {
                let _ = rustix::process::kill_process(*reaper, Signal::CONT);
            }
        }
    }
}

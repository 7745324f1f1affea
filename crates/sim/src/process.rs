//! A simulated process tree: a reaper that speaks the real one's language, a server, and perhaps a grandchild that holds
//! the server's pipes for a moment longer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linetender_wire::Exit;
use linetender_wire::stdio::control::{Record, TERM};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep};

use crate::pipe::{Reader, Writer};
use crate::rng::Rng;
use crate::scene::Scene;
use crate::server::Server;
use crate::tasks::spawn;

/// How many blows may be on their way to a process.
const BLOWS: usize = 16;

/// What can be done to a process from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Blow {
    Kill,
    KillReaper,
    Stop,
    Go,
    CloseStdin,
    CloseStdout,
}

/// The server's ends of its pipes.
#[derive(Clone)]
pub(crate) struct Pipes {
    pub(crate) stdin: Reader,
    pub(crate) stdout: Writer,
    pub(crate) stderr: Writer,
}

/// A tree, as seen from outside.
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Since the world began.
    pub(crate) began: Duration,
    started: Instant,
    /// Whether it uses a processor.
    pub(crate) works: bool,
    /// Whether half a line is the last thing that it said.
    torn: AtomicBool,
    members: Mutex<Vec<AbortHandle>>,
    /// How many members hold their pipes.
    alive: AtomicUsize,
    exited: AtomicBool,
    stopped: AtomicBool,
    blows: mpsc::Sender<Blow>,
    /// What the server itself has to do.
    pub(crate) wishes: Mutex<Vec<Blow>>,
    pub(crate) news: Notify,
    reaper: Mutex<Option<AbortHandle>>,
    pub(crate) leaderless: Notify,
}

/// A member of a tree, for as long as it lives.
pub(crate) struct Member(pub(crate) Arc<Process>);

/// Starts one.
pub(crate) fn start(scene: &Arc<Scene>, pipes: Pipes, control: DuplexStream, mut rng: Rng) -> Arc<Process> {
    let (blows, struck) = mpsc::channel(BLOWS);
    let process = Arc::new(Process {
        pid: scene.pid(),
        began: scene.now(),
        started: Instant::now(),
        works: scene.habits().works,
        torn: AtomicBool::new(false),
        members: Mutex::default(),
        alive: AtomicUsize::new(0),
        exited: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        blows,
        wishes: Mutex::default(),
        news: Notify::new(),
        reaper: Mutex::default(),
        leaderless: Notify::new(),
    });
    scene.enter(&process);
    let reaper =
        Reaper { scene: Arc::clone(scene), process: Arc::clone(&process), control, struck, rng: rng.fork() };
    let task = spawn(reaper.reap(pipes));
    *process.reaper.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
    process
}

impl Process {
    pub(crate) fn lives(&self) -> bool {
        self.alive.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn tear(&self) {
        self.torn.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_torn(&self) -> bool {
        self.torn.load(Ordering::Relaxed)
    }

    pub(crate) fn has_exited(&self) -> bool {
        self.exited.load(Ordering::Relaxed)
    }

    pub(crate) fn strike(&self, blow: Blow) {
        match blow {
            Blow::Stop => self.stopped.store(true, Ordering::Relaxed),
            Blow::Go => self.stopped.store(false, Ordering::Relaxed),
            Blow::CloseStdin | Blow::CloseStdout => {
                self.wishes.lock().unwrap_or_else(PoisonError::into_inner).push(blow);
            }
            // A process that is over has nobody who listens.
            Blow::Kill | Blow::KillReaper => drop(self.blows.try_send(blow)),
        }
        self.news.notify_waiters();
        self.news.notify_one();
    }

    /// Waits while it is stopped.
    pub(crate) async fn running(&self) {
        while self.stopped.load(Ordering::Relaxed) {
            self.news.notified().await;
        }
    }

    pub(crate) fn kill_reaper(&self) {
        if let Some(reaper) = self.reaper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reaper.abort();
        }
    }

    /// What a reaper leaves behind is gone with it.
    pub(crate) async fn reaper_gone(&self) {
        tokio::task::yield_now().await;
    }

    /// Kills all of it.
    pub(crate) async fn clear(&self) {
        loop {
            for member in &*self.members.lock().unwrap_or_else(PoisonError::into_inner) {
                member.abort();
            }
            if !self.lives() {
                self.exited.store(true, Ordering::Relaxed);
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    fn adopt(&self, member: &JoinHandle<Exit>) {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).push(member.abort_handle());
    }
}

impl Member {
    pub(crate) fn of(process: &Arc<Process>) -> Self {
        process.alive.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(process))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The process between us and the server.
struct Reaper {
    scene: Arc<Scene>,
    process: Arc<Process>,
    control: DuplexStream,
    struck: mpsc::Receiver<Blow>,
    rng: Rng,
}

impl Reaper {
    async fn reap(mut self, pipes: Pipes) {
        let habits = self.scene.habits();
        if self.rng.percent(habits.no_start) {
            drop(pipes);
            // ENOENT, EAGAIN.
            let errno = self.rng.pick(&[2, 11, 11]);
            self.scene.say(|| format!("process {} cannot be started: {errno}", self.process.pid));
            return self.tell(Record::Failed(errno)).await;
        }
        let mut rng = self.rng.fork();
        let server = |pipes, rng| Server::new(&self.scene, &self.process, pipes, rng);
        let grandchild = rng.percent(habits.survivor).then(|| server(pipes.clone(), rng.fork()));
        let mut leader = spawn(server(pipes, rng).serve());
        self.process.adopt(&leader);
        if let Some(grandchild) = grandchild {
            self.process.adopt(&spawn(grandchild.survive()));
        }
        self.tell(Record::Spawned(self.process.pid)).await;
        let Some(exit) = self.watch(&mut leader, habits.stubborn).await else { return };
        self.scene.say(|| format!("process {} ended: {exit:?}", self.process.pid));
        self.process.exited.store(true, Ordering::Relaxed);
        self.process.leaderless.notify_one();
        sleep(self.rng.millis(0, habits.busy + 1)).await;
        self.tell(Record::Exited(exit)).await;
        sleep(self.rng.millis(0, 2 + habits.busy * 4)).await;
        if self.rng.percent(habits.stuck) {
            // It cannot be killed where it hangs.
            sleep(self.rng.millis(10, 12_000)).await;
        }
        self.process.clear().await;
        self.tell(Record::Clear).await;
    }

    /// Until the server is over; `None` if the reaper is first.
    async fn watch(&mut self, leader: &mut JoinHandle<Exit>, stubborn: bool) -> Option<Exit> {
        let mut signal = None;
        loop {
            tokio::select! {
                biased;
                exit = &mut *leader => return Some(exit.ok().or(signal).unwrap_or(Exit::Signal(9))),
                blow = self.struck.recv() => {
                    if blow == Some(Blow::KillReaper) {
                        return None;
                    }
                    signal = Some(Exit::Signal(9));
                    leader.abort();
                }
                order = self.control.read_u8() => match order {
                    Ok(TERM) if stubborn => {}
                    Ok(TERM) => {
                        signal = Some(Exit::Signal(15));
                        leader.abort();
                    }
                    Ok(_) | Err(_) => {
                        signal = Some(Exit::Signal(9));
                        leader.abort();
                        let exit = (&mut *leader).await;
                        return Some(exit.ok().or(signal).unwrap_or(Exit::Signal(9)));
                    }
                },
            }
        }
    }

    async fn tell(&mut self, record: Record) {
        // If nobody listens any more, nobody wants to know.
        let _ = self.control.write_all(&record.encode()).await;
    }
}

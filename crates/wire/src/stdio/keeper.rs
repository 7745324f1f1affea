//! The one task that knows whether a process lives: it hears the reaper, gives it orders, and tells of the end.

mod closing;

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linetender_core::{ClosePolicy, Tree as Scope};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, SetOnce, mpsc, watch};
use tokio::time::{Instant, Sleep};

use super::child::{Order, Program};
use super::container::{self, Container};
use super::control::{LOOK, Record, VERSION};
use super::left_behind::LeftBehind;
use super::platform::{Found, Platform, Stdin as _};
use super::reader::Drain;
use super::residue::Residue;
use super::stderr::Ring;
use super::system;
use super::writer::WriteEnd;
use crate::redact::Redacted;
use crate::seam::{Event, Seal};
use crate::seen::{Exit, Pipe, Seen};
use crate::tasks::Owned;
use crate::{caught, test_hooks, visible};

/// After an exit, how long reading what is left in a pipe may take. It is there: only a busy machine takes longer.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a reaper may take to say its first word. One that says nothing is another program.
const FIRST_WORD: Duration = Duration::from_secs(30);

/// Shortest time between two looks at what left the server's tree. After an answer the reaper looks at once, and again at
/// intervals that double up to [`LONGEST_LOOK_GAP`]: what a tool has started takes a moment to leave.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// Longest time between two looks after an answer. Then the reaper's own interval is enough.
const LONGEST_LOOK_GAP: Duration = Duration::from_millis(800);

/// The longest name of a process.
const LONGEST_NAME: usize = 64;

/// How many processes that stay behind are named.
const LEFT_NAMED: usize = 8;

/// What its writer is called.
const WRITER: &str = "writer";

/// The one task that knows whether the process lives.
pub(super) struct Keeper<P: Platform> {
    pub(super) platform: P,
    pub(super) control: P::Control,
    pub(super) ordered: mpsc::Receiver<Order>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) writer: Owned<(P::Stdin, WriteEnd)>,
    pub(super) stderr: Owned<()>,
    pub(super) stderr_drain: Drain,
    pub(super) reader: Owned<()>,
    pub(super) stdout_drain: Drain,
    pub(super) ring: Ring,
    pub(super) seal: Arc<Seal>,
    pub(super) program: Program,
    /// The container that the program starts, if it is followed.
    pub(super) container: Option<Arc<Container>>,
    pub(super) close: ClosePolicy,
    pub(super) accepted: Arc<AtomicU64>,
    /// What the server left unread, once that is known.
    pub(super) residue: Arc<OnceLock<Residue>>,
    pub(super) server: Arc<SetOnce<Box<dyn Found>>>,
    /// The signals that the server gets when it is closed.
    pub(super) passed: watch::Receiver<Vec<u8>>,
    /// The server said something.
    pub(super) heard: Arc<Notify>,
    /// When the reaper is asked to look again.
    pub(super) looks: Looks,
    /// The name of the process that the reaper tells of next.
    pub(super) name: Vec<u8>,
}

/// What the keeper woke up for.
enum News<S> {
    Record(Record),
    ReaperGone,
    Order(Option<Order>),
    /// Another signal that is to be passed on.
    Passed,
    /// The server said something, now or a moment ago, and it was not looked at since.
    Look(LookCause),
    Rung,
    WriterDone(S, WriteEnd),
    /// One of its own tasks.
    Panicked(&'static str),
}

/// What the keeper knows.
struct Tree<S> {
    ordered: Option<Order>,
    /// How many signals were passed on.
    passed: usize,
    /// The next rung of the close ladder, and when it is due.
    rung: Option<(Pin<Box<Sleep>>, Rung)>,
    /// Nothing of it is left.
    clear: bool,
    /// Its end was told.
    lost: bool,
    /// The reaper has said something: it is one.
    spoke: bool,
    stdin: Stdin<S>,
}

/// The rungs of the close ladder, after end of file.
#[derive(Clone, Copy)]
enum Rung {
    /// The reaper has not said anything.
    FirstWord,
    /// The reaper knows that stdin is about to be closed.
    Eof,
    Term,
    Kill,
    /// The reaper was told to kill, and did not.
    Reaper,
}

/// Who has our end of the server's stdin.
enum Stdin<S> {
    WithWriter,
    Ours(S),
    Closed,
}

impl<P: Platform> Keeper<P> {
    /// Keeps the process until nothing of it is left. If the keeper itself panics, that is the generation's end: it is told,
    /// and the tree is killed, by its reaper (whose socket was closed) and from here, before the end of events says so.
    pub(super) async fn supervised(self) {
        let (events, server) = (self.events.clone(), Arc::clone(&self.server));
        if caught(self.keep()).await.is_err() {
            let _ = events.send(Event::Lost(Seen::Internal { task: "keeper" })).await;
            if let Some(server) = server.get() {
                server.clear().await;
            }
        }
    }

    async fn keep(mut self) {
        let mut tree = Tree {
            ordered: None,
            passed: 0,
            rung: Some((Box::pin(tokio::time::sleep(FIRST_WORD)), Rung::FirstWord)),
            clear: false,
            lost: false,
            spoke: false,
            stdin: Stdin::WithWriter,
        };
        let mut record = [0; Record::SIZE];
        let mut filled = 0;
        let looks = self.platform.has_ladder() && self.close.tree == Scope::Server;
        while !(tree.clear && tree.ordered.is_some() && !matches!(tree.stdin, Stdin::WithWriter)) {
            let news = tokio::select! {
                biased;
                read = self.control.read(&mut record[filled..]), if !tree.clear => match read {
                    Ok(bytes @ 1..) => {
                        filled += bytes;
                        if filled < Record::SIZE {
                            continue;
                        }
                        filled = 0;
                        match Record::decode(record) {
                            Some(record) => News::Record(record),
                            // A newer reaper may say more than we know.
                            None => continue,
                        }
                    }
                    Ok(_) | Err(_) => News::ReaperGone,
                },
                order = self.ordered.recv(), if !matches!(tree.ordered, Some(Order::Kill)) => News::Order(order),
                done = &mut self.writer, if matches!(tree.stdin, Stdin::WithWriter) => match done {
                    Ok((stdin, end)) => News::WriterDone(stdin, end),
                    Err(_) => News::Panicked(WRITER),
                },
                Ok(()) = self.passed.changed(), if matches!(tree.ordered, Some(Order::Close)) => News::Passed,
                () = self.reader.panicked() => News::Panicked("reader"),
                () = self.stderr.panicked() => News::Panicked("reader of stderr"),
                cause = self.looks.due(&self.heard), if looks && tree.ordered.is_none() => News::Look(cause),
                () = due(&mut tree.rung), if !tree.clear => News::Rung,
            };
            test_hooks::point("keeper");
            self.handle(news, &mut tree).await;
            self.measure(&tree).await;
        }
        self.finish(tree).await;
    }

    async fn handle(&mut self, news: News<P::Stdin>, tree: &mut Tree<P::Stdin>) {
        if matches!(news, News::Record(_)) && !std::mem::replace(&mut tree.spoke, true) {
            tree.rung.take_if(|(_, rung)| matches!(rung, Rung::FirstWord));
        }
        match news {
            News::Record(Record::Ready(VERSION)) => {}
            News::Record(Record::Ready(_)) => {
                let reason = "its program is another version of linetender than this process: \
                              was one of them updated? Start this process again";
                self.lose(tree, Seen::NoReaper { reason: reason.into() }).await;
            }
            News::Record(Record::Refused(errno)) => {
                tree.clear = true;
                let error = io::Error::from_raw_os_error(errno);
                let reason = format!("it cannot open /dev/null: {}", plain(&error));
                self.lose(tree, Seen::NoReaper { reason }).await;
            }
            // It works: a tree that will not die is no reason to lose the one who knows it.
            News::Record(Record::Busy) => {
                if let Some((_, Rung::Reaper)) = tree.rung {
                    tree.rung = Some(self.reaper_rung());
                }
            }
            News::Record(Record::Spawned(pid)) => {
                let _ = self.server.set(self.platform.find(pid));
                let _ = self.events.send(Event::Spawned).await;
            }
            News::Record(Record::Failed(errno)) => {
                tree.clear = true;
                let seen = self.platform.unfit().unwrap_or_else(|| self.not_started(errno));
                self.lose(tree, seen).await;
            }
            News::Record(Record::Exited(exit)) => self.exited(tree, exit).await,
            News::Record(Record::Closing) => {
                if let Some((_, Rung::Eof)) = tree.rung {
                    self.close_stdin(tree).await;
                }
            }
            News::Record(Record::Expired) => self.lose(tree, Seen::LeaseOver).await,
            News::Record(Record::Left(pid)) => drop(self.events.send(Event::Left { pid }).await),
            News::Record(Record::Name(bytes)) => {
                let bytes = bytes.into_iter().filter(|byte| *byte != 0);
                self.name.extend(bytes.take(LONGEST_NAME.saturating_sub(self.name.len())));
            }
            News::Record(Record::Ended(pid)) => {
                let name = String::from_utf8_lossy(&std::mem::take(&mut self.name)).into_owned();
                let name = visible::line(&name).into_owned();
                let _ = self.events.send(Event::Ended { pid, name }).await;
            }
            News::Record(Record::Spared(pid)) => {
                self.platform.spare(pid);
                if let Some(left) = LeftBehind::of(pid) {
                    let _ = self.events.send(Event::Spared(left)).await;
                }
            }
            News::Record(Record::Clear) => tree.clear = true,
            News::ReaperGone => {
                if tree.ordered.is_none() && tree.spoke {
                    self.lose(tree, Seen::ReaperDied).await;
                }
                // It never said that the tree is clear, so it is not: not before we have seen to it. If it died before it
                // told us of a server, there may be one all the same.
                for pid in self.platform.clear_orphans().await.into_iter().take(LEFT_NAMED) {
                    let _ = self.events.send(Event::Left { pid }).await;
                }
                if let Some(server) = self.server.get() {
                    server.clear().await;
                }
                self.platform.clear_session().await;
                tree.clear = true;
                if tree.ordered.is_none() && !tree.spoke {
                    self.never_reaped(tree).await;
                }
            }
            News::Panicked(task) => {
                if task == WRITER {
                    // Our end of the pipe went with it.
                    tree.stdin = Stdin::Closed;
                }
                self.lose(tree, Seen::Internal { task }).await;
            }
            News::Order(order) => self.order(tree, order).await,
            News::Look(cause) => {
                self.looks.made(cause, Instant::now());
                let _ = self.control.write_all(&[LOOK]).await;
            }
            News::Passed => drop(self.pass_on(tree).await),
            News::Rung => self.climb_down(tree).await,
            News::WriterDone(stdin, end) => {
                tree.stdin = Stdin::Ours(stdin);
                if matches!(end, WriteEnd::Broken) && !tree.lost {
                    let _ = self.events.send(Event::Closed(Pipe::Stdin)).await;
                }
            }
        }
    }

    /// What was started as a reaper ended, or went on, without a word.
    async fn never_reaped(&mut self, tree: &mut Tree<P::Stdin>) {
        let Some(mut reason) = self.platform.no_reaper().await else {
            return self.lose(tree, Seen::ReaperDied).await;
        };
        let said = self.last_words().await;
        if !said.is_empty() {
            reason = format!("{reason} It wrote: {said}");
        }
        self.lose(tree, Seen::NoReaper { reason }).await;
    }

    /// What it said last is the best explanation there is.
    async fn last_words(&self) -> Redacted {
        let _ = tokio::time::timeout(LAST_WORDS, self.stderr_drain.all()).await;
        self.ring.tail()
    }

    /// Tells of the end, once.
    async fn lose(&self, tree: &mut Tree<P::Stdin>, seen: Seen) {
        if !std::mem::replace(&mut tree.lost, true) {
            let _ = self.events.send(Event::Lost(seen)).await;
        }
    }

    async fn exited(&mut self, tree: &mut Tree<P::Stdin>, exit: Exit) {
        // Once it was told to go, its end is no news, unless it had gone by itself: whoever is killed has no status.
        let by_itself = match tree.ordered {
            None => true,
            Some(Order::Kill) => matches!(exit, Exit::Status(_)),
            Some(Order::Close | Order::Up) => false,
        };
        if tree.lost || !by_itself {
            tree.lost = true;
            return;
        }
        let stderr = self.last_words().await;
        let is_refused = self.container.as_ref().is_some_and(|own| own.is_refused(stderr.as_str()));
        let seen = match container::taken_name(&self.program, stderr.as_str()) {
            _ if is_refused => Seen::CidfileRefused { stderr },
            Some(name) => Seen::NameTaken { name: Redacted::head(&name, 100), exit, stderr },
            None => Seen::Exited { exit, stderr },
        };
        self.lose(tree, seen).await;
    }

    fn not_started(&self, errno: i32) -> Seen {
        let error = io::Error::from_raw_os_error(errno);
        let program = self.program.argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotADirectory => {
                let path = self.program.env.get("PATH").unwrap_or_default();
                let is_looked_for = !program.contains(std::path::is_separator);
                let searched = if is_looked_for { path.to_string_lossy() } else { "".into() };
                Seen::NotRunnable {
                    program: Redacted::head(&program, 200),
                    searched: Redacted::head(&searched, 1000),
                    reason: plain(&error),
                }
            }
            // These have no kind of their own.
            _ if system::NOT_RUNNABLE.contains(&errno) => Seen::NotRunnable {
                program: Redacted::head(&program, 200),
                searched: Redacted::default(),
                reason: plain(&error),
            },
            _ => Seen::NoProcess { reason: plain(&error) },
        }
    }

    /// What the server did not read is known as soon as nobody can read it any more. That may be long before its whole tree is
    /// gone, and calls wait for it.
    async fn measure(&self, tree: &Tree<P::Stdin>) {
        if tree.ordered.is_some()
            && self.residue.get().is_none()
            && let Stdin::Ours(stdin) = &tree.stdin
            && let Some(unread) = stdin.unread()
        {
            let _ = self.residue.set(Residue::new(self.accepted.load(Ordering::Acquire), unread));
            let _ = self.events.send(Event::NoReader).await;
        }
    }

    /// The tree is gone, and somebody wanted it gone: all is told.
    async fn finish(mut self, tree: Tree<P::Stdin>) {
        self.measure(&tree).await;
        self.platform.reaper_gone().await;
        // Its client is gone, and it need not be.
        // It is nobody's when the end is told: the next start is to find it, if it could not be ended.
        if let Some(container) = self.container.take()
            && let Err(Seen::ContainerStays { id, reason }) = container.end().await
        {
            let _ = self.events.send(Event::ContainerLeft { id, reason: Some(reason) }).await;
        }
        // A server that printed its usage and went has said why.
        let _ = tokio::time::timeout(LAST_WORDS, self.stdout_drain.all()).await;
        // Nothing of ours is left either when the end is told: no task, no descriptor.
        self.reader.ended().await;
        self.stderr.ended().await;
        drop((tree, self.control));
        let _ = self.events.send(Event::Gone).await;
    }
}

/// When the reaper is asked to look at what left the server's tree.
pub(super) struct Looks {
    last: Instant,
    /// The time from the last look to the next, if the server says nothing meanwhile.
    gap: Duration,
}

/// Why the reaper is asked to look.
#[derive(Clone, Copy)]
enum LookCause {
    Heard,
    HeardBefore,
}

impl Looks {
    /// No look is due before the server has said something.
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now, gap: LONGEST_LOOK_GAP * 2 }
    }

    async fn due(&self, heard: &Notify) -> LookCause {
        tokio::time::sleep_until(self.last + LOOK_GAP).await;
        if self.gap > LONGEST_LOOK_GAP {
            heard.notified().await;
            return LookCause::Heard;
        }
        tokio::select! {
            biased;
            () = heard.notified() => LookCause::Heard,
            () = tokio::time::sleep_until(self.last + self.gap) => LookCause::HeardBefore,
        }
    }

    fn made(&mut self, cause: LookCause, now: Instant) {
        self.last = now;
        self.gap = match cause {
            LookCause::Heard => LOOK_GAP,
            LookCause::HeardBefore => self.gap * 2,
        };
    }
}

async fn due(rung: &mut Option<(Pin<Box<Sleep>>, Rung)>) {
    match rung {
        Some((sleep, _)) => sleep.await,
        None => std::future::pending().await,
    }
}

/// The system's words, without the number behind them.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].trim_end_matches('.').to_lowercase(),
        None => text,
    }
}

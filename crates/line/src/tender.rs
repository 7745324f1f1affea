//! The one task that owns a line: it hears what happens, asks the core, and does what the core says, in that order.

mod effects;
mod effort;
mod exit;
mod idle;
mod inbox;
mod kept;
mod keys;
mod left;
mod lists;
mod log;
mod published;
mod recover;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linetender_core::{Cause, Command, Event, Generation, Machine, State, Walk};
use linetender_wire::handshake::{self, Era, Greeting};
use linetender_wire::seam;
use linetender_wire::{Detail, Pipe, Seen, Slept};
use tokio::sync::{Notify, broadcast, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::audience::Audience;
use crate::basics::clock::Clock;
use crate::basics::kind::Kind;
use crate::basics::late::{LATE, UNREAD};
use crate::basics::rooms::Rooms;
use crate::book::Ledger;
use crate::catalogue::{Catalogue, Reading};
use crate::generation::{
    Connection, Counted, DialLimit, DialNews, Ear, Link, Live, Predecessors, Probed, Process, Wishes,
};
use crate::keys::{KeyRing, KeyTask};
use crate::server::Server;
use crate::status::{Aside, Status, Waits, Why};
use effort::Effort;
use idle::Unused;
pub(crate) use inbox::Inbox;
use kept::Kept;
use keys::Credentials;
use left::Left;
use lists::Lists;
pub use published::LineEvent;
pub(crate) use published::Published;
use recover::Panics;

/// How often it is looked whether calls are under way, in a generation that is to be replaced.
const QUIET_LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// What the tender's own tasks report.
enum News {
    Dial(Generation, DialNews),
    Drained(Generation),
    Probed(Generation, Probed),
    /// A probe about a key that a request was refused for.
    KeyProbed(Generation, Probed),
    Closed(Generation, Pipe),
    /// The lists have been read, or could not be.
    Lists(Generation, Option<Box<Reading>>),
    /// Some of the lists have been read, and another lets us wait.
    SomeLists(Generation, Box<Reading>),
    /// A list that could not be read is tried again.
    ListsAgain(Generation),
    /// A caller uses the server, the first one after the server may have said something while no stream was open.
    Used(Generation),
    /// No call is under way, and the generation is to be replaced.
    Quiet(Generation),
}

/// What woke the tender.
enum Wake {
    Inbox(Option<Inbox>),
    News(News),
    Wire(Option<seam::Event>),
    /// A task of the generation's panicked.
    TaskPanicked,
    Nudge,
    /// Somebody logged in, or a key was lost.
    Keys,
    /// The machine did.
    Slept,
    /// It is time to see whether anybody uses the server.
    Unused,
    /// It is time to see whether what left a server's tree is still there.
    Left,
    Timer,
}

/// One generation, as long as it is not forgotten.
struct Current {
    generation: Generation,
    ledger: Arc<Ledger>,
    ear: Arc<Ear>,
    connection: Connection,
    wire: mpsc::Receiver<seam::Event>,
    wire_open: bool,
    probing: Arc<AtomicBool>,
    effort: Effort,
    lists: Lists,
    /// Lists to be read next.
    wanted: BTreeSet<Kind>,
    /// The task that waits for the next caller, if the server may have said something while no stream was open.
    gap: Option<AbortHandle>,
    /// Up to when readings are paid for: each costs a while, and a few may be owed.
    read_until: Option<tokio::time::Instant>,
    /// How often in a row a list could not be read.
    unread: u32,
    /// The task that looks which call an error without an id was about.
    stray: Option<AbortHandle>,
    /// Everything that works for this generation; ends with it.
    tasks: JoinSet<()>,
    /// Whether the tender panicked while it had this: then no step of its end is sure to have been done.
    broken: bool,
    /// Its process, if that is the one of the generation before.
    inherited: Option<Process>,
    /// Whether its process goes to the next generation.
    hands_over: bool,
}

pub(crate) struct Tender {
    pub(crate) server: Arc<Server>,
    pub(crate) clock: Clock,
    pub(crate) dial_limit: DialLimit,
    pub(crate) rooms: Option<Arc<dyn Rooms>>,
    /// One of the lines that share it.
    #[expect(dead_code, reason = "counts as long as it lives")]
    pub(crate) counted: Counted,
    /// Lines to servers of the same name, which have to be closed first.
    pub(crate) predecessors: Predecessors,
    pub(crate) inbox: mpsc::Receiver<Inbox>,
    pub(crate) publish: watch::Sender<Published>,
    pub(crate) states: watch::Sender<Status>,
    pub(crate) greetings: watch::Sender<Option<Arc<Greeting>>>,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    pub(crate) events: broadcast::Sender<LineEvent>,
    /// Who hears what the server says by itself.
    pub(crate) audience: Arc<Audience>,
    pub(crate) wishes: Arc<Wishes>,
    /// Credentials that change, if the server has such, and the task that asks for them.
    pub(crate) keys: Option<(Arc<KeyRing>, KeyTask)>,
    pub(crate) slept: Slept,
}

struct Running {
    tender: Tender,
    keys: Option<Credentials>,
    machine: Machine<Detail>,
    /// Whether effects are run in order. Not known of a generation under which the tender panicked.
    walk: Option<Walk>,
    current: Option<Current>,
    remembered: Option<Era>,
    /// Whether the next dial waits for somebody to listen at the address.
    patient: bool,
    /// What else is known of the end of the last generation.
    aside: Option<Aside>,
    news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    /// A ledger wants to be looked at.
    nudge: Arc<Notify>,
    /// Acknowledgements of effects that had nothing to wait for.
    at_once: VecDeque<(Generation, Event<Detail>)>,
    abandoned: bool,
    /// Why calls wait although the generation lives, if they do: its address refused a connection.
    refused: Option<Arc<Why>>,
    seed: u64,
    /// A timer that fired too late, and until when it is not believed.
    doubted: Option<(linetender_core::Instant, tokio::time::Instant)>,
    panics: Panics,
    unused: Unused,
    left: Left,
    /// A process between two generations.
    kept: Option<Kept>,
}

impl Tender {
    /// Runs until the line is closed, or nobody holds it any more.
    pub(crate) async fn run(mut self, seed: u64) {
        let keys = self.keys.take().map(|(ring, task)| Credentials::new(ring, task));
        let machine = Machine::new(self.server.policy, seed, self.clock.now());
        let remembered = self.server.prefers;
        let unused = Unused::after(self.server.idle_stop);
        // On the heap: every future that it passes through would make room for it, and there is one of them per line.
        let running = Box::new(Running {
            machine,
            tender: self,
            keys,
            walk: Some(Walk::new()),
            current: None,
            remembered,
            patient: true,
            aside: None,
            news: mpsc::channel(64),
            nudge: Arc::default(),
            at_once: VecDeque::new(),
            abandoned: false,
            refused: None,
            seed,
            doubted: None,
            panics: Panics::default(),
            unused,
            left: Left::default(),
            kept: None,
        });
        running.supervised().await;
    }
}

impl Running {
    async fn wait(&mut self) -> Wake {
        let timeout = self.machine.poll_timeout().map(|due| match self.doubted {
            Some((doubted, until)) if doubted == due => until,
            _ => self.tender.clock.at(due),
        });
        tokio::select! {
            biased;
            wake = generation_event(&mut self.current) => wake,
            Some(news) = self.news.1.recv() => Wake::News(news),
            ask = self.tender.inbox.recv(), if !self.abandoned => Wake::Inbox(ask),
            () = self.nudge.notified() => Wake::Nudge,
            () = keys::news(&mut self.keys) => Wake::Keys,
            _ = self.tender.slept.wait() => Wake::Slept,
            () = sleep_until(timeout) => Wake::Timer,
            () = sleep_until(self.unused.look_at()) => Wake::Unused,
            () = sleep_until(self.left.look_at()) => Wake::Left,
        }
    }

    fn handle(&mut self, wake: Wake) {
        let now = self.tender.clock.now();
        if matches!(wake, Wake::Timer) {
            self.look_at_effort(now);
        }
        if let Some(current) = &self.current {
            self.machine.handle_vitals(now, current.generation, current.ledger.vitals());
        }
        match wake {
            Wake::Inbox(Some(Inbox::Command(command, reply))) => {
                self.cell(command.name());
                let asked = self.machine.handle_command(now, command);
                self.pump();
                if let Some(reply) = reply {
                    let _ = reply.send(asked);
                }
            }
            Wake::Inbox(Some(Inbox::Knock(reply))) => {
                self.cell("knock");
                let admission = self.machine.handle_knock(now);
                // What it says must be published before the caller acts on it.
                self.pump();
                let _ = reply.send(admission);
            }
            Wake::Slept => self.slept(now),
            Wake::Inbox(Some(Inbox::Slept(reply))) => {
                self.slept(now);
                let _ = reply.send(());
            }
            Wake::Inbox(Some(Inbox::Overdue(generation))) => self.event(generation, Event::Overdue),
            Wake::Inbox(Some(Inbox::SessionLost(generation, seen))) => self.lost(generation, seen),
            Wake::Inbox(Some(Inbox::Relist(generation))) => self.read_lists(generation, Kind::ALL),
            Wake::Inbox(Some(Inbox::Expired)) => self.lists_expired(),
            Wake::Inbox(None) => {
                self.abandoned = true;
                self.machine.handle_command(now, Command::Close);
            }
            Wake::News(news) => self.handle_news(news),
            Wake::Wire(event) => self.handle_wire(event),
            Wake::TaskPanicked => self.task_panicked(),
            Wake::Keys => {}
            Wake::Nudge => {
                self.heed_stray();
                // What it says of them before its handshake is over is about what is read then.
                let live = self.current.as_ref().filter(|current| current.connection.live().is_some());
                if let Some((generation, heard)) =
                    live.map(|current| (current.generation, current.ear.lists_heard()))
                {
                    self.lists_heard(generation, heard);
                }
            }
            Wake::Unused => self.stop_if_unused(now),
            Wake::Left => self.name_left(Some(tokio::time::Instant::now())),
            Wake::Timer if self.is_doubtful() => {}
            Wake::Timer => {
                self.cell("timeout");
                self.machine.handle_timeout(now);
            }
        }
        self.pump();
        self.heed_keys();
    }

    /// Whether a timer fired too late to be believed at once. What is readable is read first: the answer wins.
    fn is_doubtful(&mut self) -> bool {
        let Some(due) = self.machine.poll_timeout() else { return false };
        let waits_for_server =
            matches!(self.machine.state(), State::Up(_) | State::Suspect(_) | State::Dialing(_));
        let now = tokio::time::Instant::now();
        let was_doubted = self.doubted.is_some_and(|(doubted, _)| doubted == due);
        if !waits_for_server || was_doubted || now < self.tender.clock.at(due) + LATE {
            return false;
        }
        self.doubted = Some((due, now + UNREAD));
        true
    }

    fn slept(&mut self, now: linetender_core::Instant) {
        self.keys.iter().for_each(|keys| keys.ring.slept());
        let link = self.current.as_ref().and_then(|current| current.connection.link());
        // A probe is use. The next call's own connection shows whether a server somewhere else is still there.
        if !link.is_some_and(|link| link.reach.reconnect()) {
            self.cell("sleep");
            self.machine.handle_sleep(now);
        }
        self.pump();
    }

    /// What the machine is told, and in which state: whoever sweeps worlds wants to know which of these were reached.
    fn cell(&self, input: &'static str) {
        tracing::trace!(target: "linetender::cell", state = self.machine.state().name(), input);
    }

    fn event(&mut self, generation: Generation, event: Event<Detail>) {
        self.cell(event.name());
        self.machine.handle_event(self.tender.clock.now(), generation, event);
    }

    fn handle_news(&mut self, news: News) {
        match news {
            News::Dial(generation, DialNews::Waits(waits)) => self.waits(generation, waits),
            News::Dial(generation, DialNews::Started) => {
                self.waits(generation, Waits::Nothing);
                self.event(generation, Event::Started);
                if self.current(generation).is_some_and(|current| current.inherited.is_some()) {
                    self.event(generation, Event::FirstByte);
                }
            }
            News::Dial(generation, DialNews::Linked(link)) => self.linked(generation, link),
            News::Dial(generation, DialNews::Greeted(live)) => self.greeted(generation, &live),
            News::Dial(generation, DialNews::Failed(seen)) => {
                self.patient &= !matches!(seen, Seen::Refused { .. });
                self.lost(generation, seen);
            }
            News::Drained(generation) => self.event(generation, Event::Drained),
            News::Probed(generation, Probed::Alive) => {
                if let Some(current) = self.current(generation) {
                    current.ledger.signs.probed();
                }
                self.event(generation, Event::ProbeAnswered);
            }
            News::Probed(generation, Probed::Silent) => self.event(generation, Event::ProbeFailed),
            News::Probed(generation, Probed::Refused) => self.event(generation, Event::ProbeRefused),
            // A refused key is being renewed: the server lives, and that is all we know.
            News::Probed(generation, Probed::Unsent | Probed::KeyRefused(_)) => {
                self.event(generation, Event::ProbeUnsent);
            }
            News::Probed(generation, Probed::Unauthorized(seen)) => self.lost(generation, Seen::clone(&seen)),
            News::KeyProbed(generation, probed) => self.key_probed(generation, &probed),
            News::Closed(generation, what) => {
                let stderr = self.link(generation).map(|link| link.reach.stderr()).unwrap_or_default();
                self.lost(generation, Seen::Closed { what, stderr });
            }
            News::Lists(generation, catalogue) => self.lists_read(generation, catalogue),
            News::SomeLists(generation, read) => self.lists_given(generation, *read, false),
            News::ListsAgain(generation) => self.read_lists(generation, []),
            News::Used(generation) => self.used_after_gap(generation),
            News::Quiet(generation) => {
                if self.current(generation).is_some() {
                    self.cell(Command::Recycle.name());
                    self.machine.handle_command(self.tender.clock.now(), Command::Recycle);
                }
            }
        }
    }

    /// What the dial waits for. It is no change of the line's state, so nobody is woken for it; errors and `status` say it.
    fn waits(&mut self, generation: Generation, waits: Waits) {
        if self.current(generation).is_some() {
            let quietly = |status: &mut Status| {
                status.waits = waits;
                false
            };
            self.tender.publish.send_if_modified(|published| quietly(&mut published.status));
            self.tender.states.send_if_modified(quietly);
        }
    }

    fn handle_wire(&mut self, event: Option<seam::Event>) {
        let Some(current) = &mut self.current else { return };
        let generation = current.generation;
        match event {
            Some(seam::Event::Spawned) => self.event(generation, Event::Spawned),
            // A command that starts a server once tells what it saw at the start limit.
            Some(seam::Event::Wrote) if self.tender.dial_limit.is_once() => {}
            Some(seam::Event::Wrote) => self.event(generation, Event::Wrote),
            Some(seam::Event::FirstByte) => self.event(generation, Event::FirstByte),
            Some(seam::Event::Trouble(seen)) => self.trouble(generation, &seen),
            Some(seam::Event::Lost(seen)) => self.lost(generation, seen),
            Some(seam::Event::KeyRefused(refused)) => self.key_refused(*refused),
            Some(seam::Event::Closed(pipe)) => {
                let (news, link) = (self.news.0.clone(), current.connection.link().cloned());
                let dialing = matches!(self.machine.state(), State::Dialing(_));
                current.tasks.spawn(async move {
                    // The reaper's word of an exit ends this generation, and this wait with it.
                    exit::is_told(link.as_deref(), dialing).await;
                    let _ = news.send(News::Closed(generation, pipe)).await;
                });
            }
            Some(seam::Event::Moved(why)) => {
                tracing::info!(server = &*self.tender.server.name, %why, "moving to another connection");
                let (news, ledger) = (self.news.0.clone(), Arc::clone(&current.ledger));
                current.tasks.spawn(async move {
                    // A call may take as long as it likes, and others are served meanwhile: nothing is wrong with this connection.
                    while ledger.vitals().in_flight > 0 {
                        tokio::time::sleep(QUIET_LOOK).await;
                    }
                    let _ = news.send(News::Quiet(generation)).await;
                });
            }
            Some(seam::Event::Left { pid }) => {
                let server = &*self.tender.server.name;
                if cfg!(windows) {
                    tracing::warn!(server, pid, "a process of the server was killed and does not end");
                } else {
                    tracing::warn!(
                        server,
                        pid,
                        "cannot kill a child process of the server: it belongs to another user"
                    );
                }
            }
            Some(seam::Event::Ended { pid, name }) => {
                let server = &*self.tender.server.name;
                tracing::warn!(server, pid, name, "ended a process that the server left behind");
                let _ = self.tender.events.send(LineEvent::Ended { pid, name });
            }
            Some(seam::Event::ContainerLeft { id, reason }) => self.container_left(id, reason),
            Some(seam::Event::Spared(left)) => {
                self.left.note(left, self.machine.policy().close.term);
            }
            Some(seam::Event::NoReader) => self.event(generation, Event::NoReader),
            Some(seam::Event::Gone) => self.event(generation, Event::Gone(None)),
            None => {
                // Nobody is left who could tell: there was no process, or it is gone.
                current.wire_open = false;
                self.event(generation, Event::Gone(None));
            }
        }
    }

    /// Looks later which call an error without an id was about. One at a time: the server decides how many there are.
    fn heed_stray(&mut self) {
        let hello = self.tender.server.hello.clone();
        let Some(current) = &mut self.current else { return };
        let Some(live) = current.connection.live().cloned() else { return };
        if current.stray.as_ref().is_none_or(AbortHandle::is_finished)
            && let Some(stray) = live.ear.take_stray()
        {
            current.stray = Some(current.tasks.spawn(stray.settle(live, hello)));
        }
    }

    /// An exchange of its own failed: the server is suspect, and is looked at now.
    fn trouble(&mut self, generation: Generation, seen: &Seen) {
        tracing::debug!(server = &*self.tender.server.name, %seen, "trouble");
        let refused = matches!(seen, Seen::Refused { .. });
        if refused {
            self.refused = Some(Arc::new(Why::waiting(seen)));
        }
        self.event(generation, if refused { Event::Refused } else { Event::Trouble });
    }

    fn current(&mut self, generation: Generation) -> Option<&mut Current> {
        self.current.as_mut().filter(|current| current.generation == generation)
    }

    /// There is a process. If its end has begun in the meantime, that is all it will ever be.
    fn linked(&mut self, generation: Generation, link: Arc<Link>) {
        let dialing = matches!(self.machine.state(), State::Dialing(_));
        if let Some(current) = self.current(generation) {
            if !dialing {
                link.reach.kill();
            }
            current.connection = if dialing { Connection::Starting(link) } else { Connection::Over(link) };
            self.publish_quietly();
        }
    }

    /// Says how far the generation has come. No change of the line's state: nobody is woken for it.
    fn publish_quietly(&self) {
        let connection = self.current.as_ref().map(|current| current.connection.clone()).unwrap_or_default();
        self.tender.publish.send_if_modified(|published| {
            published.connection = connection;
            false
        });
    }

    /// The handshake is done: from now on the server can be asked.
    fn greeted(&mut self, generation: Generation, live: &Arc<Live>) {
        self.patient = true;
        let dialing = matches!(self.machine.state(), State::Dialing(_));
        if let Some(current) = self.current(generation).filter(|_| dialing) {
            current.connection = Connection::Live(Arc::clone(live));
            // What it said of them so far is about what is read now.
            current.ear.lists_heard();
            // What an agent answers to what it said so far must find it. No call is let in before that: the gate is still shut.
            self.publish_quietly();
            live.ear.open();
            self.restore(generation, live);
            self.read_lists(generation, Kind::ALL);
        }
        self.event(generation, Event::Dialled);
    }

    fn lost(&mut self, generation: Generation, seen: Seen) {
        let dialing = matches!(self.machine.state(), State::Dialing(_));
        let probing = self.current.as_ref().is_some_and(|current| current.probing.load(Ordering::Relaxed));
        let seen = if dialing && probing { seen.on_probe() } else { seen };
        self.remembered = handshake::era_after(&seen, self.remembered);
        let cause = if self.is_finished(&seen) { Cause::finished(Arc::new(seen)) } else { seen.cause() };
        self.event(generation, Event::Lost(cause));
    }

    fn link(&self, generation: Generation) -> Option<&Arc<Link>> {
        self.current.as_ref().filter(|current| current.generation == generation)?.connection.link()
    }
}

async fn generation_event(current: &mut Option<Current>) -> Wake {
    let Some(Current { wire, wire_open, tasks, .. }) = current else { return std::future::pending().await };
    loop {
        tokio::select! {
            biased;
            event = wire.recv(), if *wire_open => return Wake::Wire(event),
            Some(ended) = tasks.join_next() => {
                if ended.is_err_and(|error| error.is_panic()) {
                    return Wake::TaskPanicked;
                }
            }
            else => std::future::pending().await,
        }
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

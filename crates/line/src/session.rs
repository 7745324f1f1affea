//! One agent's view of a line: frames in, frames out, for as long as the agent lives.
//!
//! The agent's connection outlives every generation behind it. Its handshake is answered once; after that a server may
//! die as often as it likes, or come back as one of the other era: each call gets its answer, or an error that says what
//! happened. The shim, a gateway's front and an SDK's transport are all this one thing with another pipe.

mod backlog;
mod batch;
mod bridge;
mod ends;
mod hear;
mod panics;
mod questions;
mod recall;
mod replies;
mod request;
mod rounds;
mod subscriptions;
mod tasks;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linetender_core::StateKind;
use linetender_wire::frame;
use linetender_wire::handshake::{Era, Eras, Greeting, Hello};
use linetender_wire::{caught, queue};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

#[doc(hidden)] // for linetender's gateway
pub use crate::audience::is_level;
use crate::audience::{Agent as Hearer, FromServer, Hears};
use crate::basics::kind::Kind;
use crate::basics::order::CallOrder;
use crate::call::AgentContext;
use crate::call::turns::Caller;
pub use crate::call::turns::{Guest, Who};
use crate::generation::Predecessors;
use crate::line::Rig;
use crate::line::{Events, Line};
use crate::server::{Server, limits};
use backlog::Backlog;
#[doc(hidden)] // for linetender's gateway
pub use batch::Batches;
#[doc(hidden)] // for linetender's gateway
pub use bridge::LIST_TTL;
use ends::{Handed, Reader, Says};
use hear::Heard;
#[doc(hidden)] // for linetender's gateway
pub use hear::may_be_passed;
pub use linetender_wire::frame::{Bad, Frame, Passed};
pub use linetender_wire::queue::Receiver;
use questions::Questions;
#[doc(hidden)] // for linetender's gateway
pub use request::{Alone, Replied, Settled, ask, ask_for};
use rounds::Round;
use subscriptions::Subscriptions;
#[doc(hidden)] // for linetender's gateway
pub use subscriptions::listened;
#[doc(hidden)] // for linetender's gateway
pub use text::{LARGE, Text};

/// Frames that wait to be read by the agent, and how much they may weigh.
const TO_AGENT: usize = 1024;
const BYTES_TO_AGENT: usize = 64 * 1024 * 1024;

/// Frames that an agent in this process may hand over before it has to wait. More than a line takes at once: a burst that
/// there is room for must not be refused on its way there.
const FROM_AGENT: usize = 1024;

/// More work than a line takes at once: an agent that has so much open reads no answers, and is not read either.
const SPARE_TASKS: usize = 64;

/// Requests of the one agent on its own pipe that wait for their turn: how much they may weigh together, and what each
/// weighs besides its text.
const WAITING_BYTES: usize = 64 * 1024 * 1024;
const WAITING_COSTS: usize = 4 * 1024;

/// How long calls under way may still be answered after the agent stopped asking.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// What is said of calls that take longer.
const LEFT: &str = "the agent disconnected, and no response arrived within 5 s";
/// How long it may take to write what the agent is still to hear.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a session ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The agent closed its end.
    AgentGone,
    /// The agent cannot be written to.
    AgentDeaf,
    /// Somebody wanted it to end.
    Stopped,
    /// The session's own code panicked. Every open request was told.
    Broken,
}

/// An agent's end of a session in this process. Dropping it ends the session.
#[derive(Debug)]
pub struct Agent {
    /// What it says: one JSON-RPC message, or a batch, at a time.
    pub to: mpsc::Sender<Passed>,
    /// What it hears: one message at a time.
    pub from: queue::Receiver<Passed>,
}

/// Serves one agent on these pipes until it goes, or until `stop`; then the server goes too, politely.
///
/// The agent owns the deadline of its calls. Its capabilities and its name go to the server, and the server's requests
/// come to it: it is the only agent on this line.
pub async fn serve<R, W>(
    server: impl Into<Server>,
    rig: &Rig,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
) -> Ended
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let server = server.into();
    let limits = limits(server.policy.settings());
    let (to_agent, frames) = queue::queue(TO_AGENT, BYTES_TO_AGENT);
    let limits_of = server.policy.settings().limits;
    let mut session = Session::new(On::Own(Box::new(server), rig.clone(), None), to_agent);
    session.backlog = Some(Backlog::new(limits_of));
    let batches = Batches::default();
    session.tasks.spawn(ends::write(output, frames, batches.clone()));
    session.run(Reader::new(input, limits, batches), stop).await
}

/// The same for an agent in this process. It is the only one on its line.
///
/// # Panics
/// Outside a tokio runtime.
pub fn open(server: impl Into<Server>, rig: &Rig) -> Agent {
    open_own(server.into(), rig, None)
}

/// The same for one of whom it is known whom it acts for: whoever writes down what became of its calls is told.
///
/// # Panics
/// Outside a tokio runtime.
#[doc(hidden)]
pub fn open_as(server: impl Into<Server>, rig: &Rig, of: Guest) -> Agent {
    open_own(server.into(), rig, Some(of))
}

fn open_own(server: Server, rig: &Rig, of: Option<Guest>) -> Agent {
    let limits = limits(server.policy.settings());
    start(On::Own(Box::new(server), rig.clone(), of), limits)
}

/// One of several agents on a line, in this process. The line lives on when it goes.
///
/// Such a line declares no sampling, elicitation or roots to its server: nothing would say whose question it is.
///
/// # Panics
/// Outside a tokio runtime.
pub fn join(line: &Line) -> Agent {
    start(On::Shared(line.clone(), None), limits(line.policy()))
}

/// The same for one of whom more is known: its calls take turns with those of all that are known as the same.
///
/// # Panics
/// Outside a tokio runtime.
#[doc(hidden)]
pub fn join_as(line: &Line, of: Guest) -> Agent {
    start(On::Shared(line.clone(), Some(of)), limits(line.policy()))
}

#[expect(clippy::disallowed_methods, reason = "it ends with the agent's end, which its owner holds")]
fn start(on: On, limits: frame::Limits) -> Agent {
    let (to_agent, from) = queue::queue(TO_AGENT, BYTES_TO_AGENT);
    let (to, said) = mpsc::channel(FROM_AGENT);
    let session = Session::new(on, to_agent);
    tokio::spawn(async move { session.run(Handed::new(said, limits), std::future::pending()).await });
    Agent { to, from }
}

/// What an agent is put on.
enum On {
    /// A line of its own, which goes with it; and whose it is, if that is known.
    Own(Box<Server>, Rig, Option<Guest>),
    /// A line that it shares; and whose it is, if that is known.
    Shared(Line, Option<Guest>),
}

struct Session {
    on: On,
    to_agent: queue::Sender<Passed>,
    tasks: JoinSet<()>,
    /// The agent's requests that are under way, by their id as it was spelt.
    running: HashMap<Box<str>, AbortHandle>,
    /// When so many are there, those that are over are taken out.
    sweep_at: usize,
    /// Where requests wait for their turn; without one, an agent is not read while too much of it is under way.
    backlog: Option<Backlog>,
    /// The order in which its requests came.
    order: CallOrder,
    open: Option<Open>,
    /// Questions that calls of the agent's have for it.
    rounds: (mpsc::Sender<Round>, mpsc::Receiver<Round>),
    /// What the agent relies on in the server's memory.
    context: AgentContext,
    /// What the agent said, until it is handled: if it is a request and that panics, it still has to be answered.
    heard: Option<Frame>,
}

/// The line, once the agent has said who it is.
struct Open {
    line: Line,
    /// The agent's era.
    era: Era,
    /// Its number among those who share the line.
    listener: Option<u64>,
    /// Whose turn its calls take.
    caller: Caller,
    /// The name of whom it acts for, if that is known.
    principal: Option<Arc<str>>,
    said: mpsc::Receiver<FromServer>,
    /// What the agent's handshake keeps from it, until that is complete.
    waits: Option<Waits>,
    events: Events,
    /// Whether the line is over.
    over: bool,
    questions: Questions,
    subscriptions: Subscriptions,
    /// What the agent was told of its server. It goes by that as long as it lives.
    promised: Arc<OnceLock<Arc<Greeting>>>,
    /// From which level on a legacy agent wants to see log messages of a modern server.
    level: Option<String>,
    /// What a legacy agent says of itself to a modern server with each request, if it shares the line.
    introduction: Option<Arc<str>>,
}

/// What waits for an agent's handshake, besides what the server said.
struct Waits {
    hears: Hears,
    /// Lists that changed.
    changed: BTreeSet<Kind>,
}

impl Session {
    fn new(on: On, to_agent: queue::Sender<Passed>) -> Self {
        let rounds = mpsc::channel(TO_AGENT);
        let (tasks, running) = (JoinSet::new(), HashMap::new());
        let (sweep_at, backlog) = (SPARE_TASKS, None);
        let context = match &on {
            On::Own(_, _, of) | On::Shared(_, of) => {
                of.as_ref().map(|of| of.context.clone()).unwrap_or_default()
            }
        };
        let order = CallOrder::default();
        Self {
            on,
            to_agent,
            tasks,
            running,
            sweep_at,
            backlog,
            order,
            open: None,
            rounds,
            context,
            heard: None,
        }
    }

    async fn run(mut self, mut agent: impl Says, stop: impl Future<Output = ()>) -> Ended {
        let mut stop = std::pin::pin!(stop);
        let ended = caught(self.converse(&mut agent, stop.as_mut())).await.unwrap_or(Ended::Broken);
        if ended == Ended::Broken {
            let _ = tokio::time::timeout(LAST_WORDS, self.tell_of_panic()).await;
        }
        self.end(ended, stop).await;
        ended
    }

    async fn converse(
        &mut self,
        agent: &mut impl Says,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Ended {
        let policy = match &self.on {
            On::Own(server, ..) => server.policy.settings().limits,
            On::Shared(line, _) => line.policy().limits,
        };
        let waiting = if self.backlog.is_some() { WAITING_BYTES / WAITING_COSTS } else { 0 };
        let most_tasks = usize::from(policy.in_flight) + usize::from(policy.queue) + SPARE_TASKS + waiting;
        loop {
            let said = async {
                match &mut self.open {
                    Some(open) => open.next().await,
                    None => std::future::pending().await,
                }
            };
            let said = tokio::select! {
                item = agent.next(), if self.tasks.len() < most_tasks => match item {
                    Some(item) => Heard::Agent(item),
                    None => break Ended::AgentGone,
                },
                said = said => said,
                Some(round) = self.rounds.1.recv() => Heard::Round(round),
                Some(done) = self.tasks.join_next() => match done {
                    Err(error) if error.is_panic() => Heard::Panicked(error.id()),
                    _ => continue,
                },
                () = self.to_agent.closed() => break Ended::AgentDeaf,
                () = &mut stop => break Ended::Stopped,
            };
            // An agent that does not read holds up itself, and must not hold up the end.
            tokio::select! {
                () = self.hear(said) => {}
                () = &mut stop => break Ended::Stopped,
            }
        }
    }

    /// The line; the agent's first request says in which era it speaks, and that is the first to be tried.
    fn line(&mut self, method: &str, params: Option<&str>) -> Line {
        if let Some(open) = &self.open {
            return open.line.clone();
        }
        let era = if method == "initialize" { Era::Legacy } else { Era::Modern };
        let (tell, said) = mpsc::channel(TO_AGENT);
        let hears = Hears::from(era == Era::Modern);
        let agent = Hearer { era, said: tell, direct: self.to_agent.clone(), hears: hears.clone() };
        let (line, listener, caller, principal) = match &self.on {
            On::Own(server, rig, of) => {
                let page = rig.memory().map(|memory| memory.page(server, era, params));
                let remembered = page.as_ref().and_then(|page| page.recall());
                let greeting = remembered.as_ref().map(|known| known.greeting.clone());
                // A server that may be stopped when nobody uses it need not run before somebody does, if it is known.
                let waits = remembered.is_some() && server.idle_stop.is_some();
                let server = introduced(server, era, params);
                let line = rig.put(server, Some(agent), Predecessors::default(), remembered);
                if let Some(page) = page {
                    self.tasks.spawn(recall::Keeper::of(&line, page, greeting).run());
                }
                if !waits {
                    line.wake();
                }
                (line, None, Caller::Owner, of.as_ref().map(|of| Arc::clone(&of.name)))
            }
            On::Shared(line, of) => {
                let (who, name) = of.as_ref().map(|guest| (guest.who, Arc::clone(&guest.name))).unzip();
                let caller = |number| who.map_or(Caller::Listener(number), Caller::Known);
                let listener = line.audience().join(agent, |number| tasks::owner(caller(number), era));
                (line.clone(), Some(listener), caller(listener), name)
            }
        };
        let introduction = match (era, listener, params) {
            (Era::Legacy, Some(_), Some(params)) => bridge::modern_hello(params).map(Into::into),
            _ => None,
        };
        let events = line.events();
        self.open = Some(Open {
            line: line.clone(),
            era,
            listener,
            caller,
            principal,
            said,
            waits: (era == Era::Legacy).then(|| Waits { hears, changed: BTreeSet::new() }),
            events,
            over: false,
            questions: Questions::default(),
            subscriptions: Subscriptions::default(),
            promised: Arc::default(),
            level: None,
            introduction,
        });
        line
    }

    /// Answers that are on their way still reach an agent that only stopped asking; then everything goes.
    async fn end(mut self, why: Ended, stop: Pin<&mut impl Future<Output = ()>>) {
        if why == Ended::AgentGone {
            let (running, tasks) = (&self.running, &mut self.tasks);
            let answered = async {
                for task in running.values() {
                    while !task.is_finished() && tasks.join_next().await.is_some() {}
                }
            };
            let late = tokio::select! {
                answered = tokio::time::timeout(LAST_ANSWERS, answered) => answered.is_err(),
                // Somebody knows that nobody will read them.
                () = stop => false,
            };
            if late {
                let _ = tokio::time::timeout(LAST_WORDS, self.tell_open(LEFT)).await;
            }
        }
        let Self { on, mut tasks, running, to_agent, open, .. } = self;
        running.values().for_each(AbortHandle::abort);
        drop(to_agent);
        match (on, open) {
            // A tree that will not die is left to its reaper.
            (On::Own(..), Some(open)) => {
                // An agent that was answered from the cache leaves before its server is up: that may finish its start.
                let policy = open.line.policy();
                if open.line.is_known_program() {
                    let started = open.line.wait_for(|status| status.state != StateKind::Dialing);
                    let _ = tokio::time::timeout(policy.dial.start + policy.dial.handshake, started).await;
                }
                let limit = policy.close.worst() + LAST_WORDS;
                let _ = tokio::time::timeout(limit, open.line.close()).await;
            }
            (On::Shared(line, _), Some(Open { listener: Some(listener), subscriptions, .. })) => {
                subscriptions.tasks().for_each(|task| line.unwatch_task(task));
                for uri in line.audience().leave(listener) {
                    line.unsubscribe(&uri);
                }
            }
            _ => {}
        }
        let _ = tokio::time::timeout(LAST_WORDS, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.abort_all();
    }
}

/// The server as this agent wants to be introduced to it: in the agent's era first, which needs no bridge.
fn introduced(server: &Server, era: Era, params: Option<&str>) -> Server {
    let server = server.clone().prefer(era);
    match (era, params) {
        (Era::Legacy, Some(params)) => server.hello(Hello::Agent(params.into())),
        (Era::Modern, Some(params)) => match bridge::legacy_hello(params) {
            // Multi-round-trip results take the place of a server's questions, and nobody here can make those of them.
            Some(hello) if server.eras != Eras::Only(Era::Modern) => server.hello(Hello::Agent(hello.into())),
            _ => server,
        },
        (_, None) => server,
    }
}

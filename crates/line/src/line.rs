//! The handle that programs hold.

mod calls;
mod events;
mod info;
mod memory;
mod raw;
mod rig;
mod wanted;
mod weak;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use linetender_core::{
    Command, CommandOutcome, Delivery, Gate, Generation, Instant, Refusal, RetryBudget, StateKind,
};
use linetender_wire::Slept;
use linetender_wire::frame::Passed;
use linetender_wire::handshake::{Era, Greeting, Hello};
use linetender_wire::seam::Refused;
use linetender_wire::stdio::far_side;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::audience::{Agent, Audience};
use crate::basics::clock::Clock;
use crate::basics::error::{CallError, CallErrorKind, Phase};
use crate::basics::kind::Kind;
use crate::basics::said::{Declared, Said};
use crate::call::turns::Turns;
use crate::call::{AgentContext, Call, Options, Shared};
use crate::catalogue::Catalogue;
use crate::generation::{Connection, Link, Live, Predecessors, Wishes};
use crate::keys::KeyRing;
use crate::outcome::Witness;
use crate::server::{Deadline, Server, Target, ToolErrors, Transport};
use crate::status::{Status, Waits};
pub use crate::tender::LineEvent as Event;
use crate::tender::{Inbox, Published, Tender};
pub use events::Events;
pub use info::ServerInfo;
pub use memory::{Memory, Page, Remembered};
pub use raw::Raw;
pub(crate) use rig::OfRig;
pub use rig::{Follower, Rig, RigChange};
pub use weak::WeakLine;

/// How many events a slow listener may lag behind. Room for all of them is taken with each line, so it is part of what an idle line
/// costs; a generation has about five.
const EVENTS_KEPT: usize = 32;

/// How often a tender is asked to close or park, if it does not answer.
const ASKED_AGAIN: u32 = 3;

/// A supervised connection to one server. Cheap to clone; the server ends when the last clone is dropped.
#[derive(Clone)]
pub struct Line {
    shared: Arc<Shared>,
    events: broadcast::WeakSender<Event>,
}

/// What a line leaves to chance. Lines that lost the same server must not come back in step: any number will do that
/// differs between them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seeds {
    Any,
    /// A world that can be played again. All its lines have the same.
    From(u64),
}

impl Line {
    /// A line of its own, dialled at once. Programs with several lines use a [`Rig`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(server: impl Into<Server>) -> Self {
        Rig::new().open(server)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the tender is what owns the other tasks; it ends with the line"
    )]
    pub(crate) fn on(
        server: Server,
        of_rig: OfRig,
        agent: Option<Agent>,
        predecessors: Predecessors,
        remembered: Option<Remembered>,
    ) -> Self {
        let OfRig { dial_limit, seeds, rooms, strangers, outsiders, sleep } = of_rig;
        let clock = Clock::start();
        let policy = *server.policy.settings();
        let server = Arc::new(server);
        let keys = server.key_source().map(KeyRing::new);
        let (inbox, asks) = mpsc::channel(1024);
        let status = Status {
            signs: None,
            state: StateKind::Idle,
            generation: 0,
            cause: None,
            budget: u32::from(policy.budget.tokens) * 1000,
            useful: u32::from(policy.budget.useful_tokens) * 1000,
            cost: None,
            gate: Gate::Knock,
            clock,
            waits: Waits::Nothing,
        };
        let (states, state) = watch::channel(status.clone());
        let (publish, published) =
            watch::channel(Published { gate: Gate::Knock, connection: Connection::None, status });
        let (known, lists) = remembered.map(|known| (Arc::new(known.greeting), known.catalogue)).unzip();
        let (greetings, greeting) = watch::channel(known);
        let (new_catalogue, catalogue) = watch::channel(Arc::new(lists.unwrap_or_default()));
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let wishes = Arc::<Wishes>::default();
        let audience = Arc::new(Audience::alone(agent).of_strangers(strangers));
        let shared = Arc::new(Shared {
            server: Arc::clone(&server),
            outsiders,
            clock,
            published,
            state,
            greeting,
            catalogue,
            inbox,
            keys: keys.as_ref().map(|(ring, _)| Arc::clone(ring)),
            turns: Turns::new(policy.limits.in_flight.into(), policy.limits.queue.into()),
            calls: AtomicU64::new(0),
            wishes: Arc::clone(&wishes),
            audience: Arc::clone(&audience),
            witness: OnceLock::new(),
            said: Said::default(),
            context: AgentContext::default(),
            retry: std::sync::Mutex::new(RetryBudget::new(policy.retry, clock.now())),
        });
        let line = Self { shared, events: events.downgrade() };
        let (seed, slept) = match seeds {
            Seeds::Any => (RandomState::new().hash_one(Arc::as_ptr(&line.shared) as usize), sleep.watch()),
            // Only that world sleeps.
            Seeds::From(seed) => (seed, Slept::never()),
        };
        let tender = Tender {
            server,
            clock,
            counted: dial_limit.count(),
            dial_limit,
            rooms,
            predecessors,
            inbox: asks,
            publish,
            states,
            greetings,
            catalogue: new_catalogue,
            events,
            audience,
            wishes,
            keys,
            slept,
        };
        tokio::spawn(tender.run(seed));
        line
    }

    /// Whether nobody but whoever asks has a handle of it: no agent is on it, and no call is under way.
    #[doc(hidden)] // for linetender's gateway
    pub fn is_held_once(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.shared.server.name
    }

    /// How the server is reached.
    pub fn transport(&self) -> Transport<'_> {
        self.shared.server.transport()
    }

    /// The client program that runs the server somewhere else, if what it starts may outlive it: `ssh`, `kubectl`, `docker exec`.
    #[doc(hidden)] // for linetender's journal
    pub fn far_side(&self) -> Option<&'static str> {
        far_side(self.shared.server.command()?.0)
    }

    /// Waits for it to be up, as a call would.
    ///
    /// # Errors
    /// If it does not come up in the time that a call waits.
    pub async fn ready(&self) -> Result<(), CallError> {
        self.probe_call().ready().await
    }

    /// The error of somebody who waited for it to be up, and never found it so.
    pub(crate) fn given_up(&self, cause: String) -> CallError {
        self.probe_call().error_before(CallErrorKind::Lost, cause)
    }

    /// The error of a call that did not come as far as the line.
    pub(crate) fn refused_before(&self, kind: CallErrorKind, cause: String) -> CallError {
        self.probe_call().error_before(kind, cause)
    }

    /// The error of a call that the server refused because it does not offer any more what it did.
    pub(crate) fn vanished(&self, cause: String) -> CallError {
        let error = self.probe_call().error_before(CallErrorKind::Vanished, cause);
        CallError { phase: Phase::Answered, delivery: Delivery::Answered, stderr: None, ..error }
    }

    /// Lets this see every request that is made from now on. The first one stays: a [`Follower`] is asked before anybody
    /// else has the line.
    pub fn seen_by(&self, witness: Arc<dyn Witness>) {
        let _ = self.shared.witness.set(witness);
    }

    /// Who sees its requests, if anybody does.
    pub(crate) fn witness(&self) -> Option<&dyn Witness> {
        self.shared.witness.get().map(|witness| &**witness)
    }

    /// A call that is never made: it only waits, or explains why it cannot.
    fn probe_call(&self) -> Call<'_> {
        Call { shared: &self.shared, method: "", params: None, tool: None, options: Options::default() }
    }

    /// What the server offers, as last read and as it changes. Waits for nothing.
    pub fn catalogues(&self) -> watch::Receiver<Arc<Catalogue>> {
        self.shared.catalogue.clone()
    }

    /// Where it stands now.
    pub fn status(&self) -> Status {
        self.shared.state.borrow().clone()
    }

    /// Where it stands, as something that can be watched.
    pub fn statuses(&self) -> watch::Receiver<Status> {
        self.shared.state.clone()
    }

    /// Waits until it stands where `wanted` says, and tells where that is.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&Status) -> bool) -> Status {
        match self.statuses().wait_for(|now| wanted(now)).await {
            Ok(now) => now.clone(),
            // The tender is gone, so this is the last word.
            Err(_) => self.status(),
        }
    }

    /// What happens to it from now on.
    pub fn events(&self) -> Events {
        Events::of(match self.events.upgrade() {
            Some(events) => events.subscribe(),
            None => broadcast::channel(1).1,
        })
    }

    /// A new generation, because somebody says so, and its number. Many that ask at once are one dial, and all are told
    /// what came of it. A server that was [parked](Self::park) is brought back.
    ///
    /// # Errors
    /// If the new generation did not come up: why, and when the next is tried.
    pub async fn redial(&self) -> Result<u64, CallError> {
        let before = self.status();
        let seen = Generation::new(before.generation);
        let replaces = before.state.is_live() && !before.is_out_of_service();
        self.ask(if replaces { Command::RedialIf { seen } } else { Command::Redial }).await;
        self.up_after(&before).await
    }

    /// The number of the generation that somebody asked for, once it is up.
    async fn up_after(&self, before: &Status) -> Result<u64, CallError> {
        // One that is being dialled is new enough for everybody.
        let newest = before.generation + u64::from(before.state != StateKind::Dialing);
        let decided = self.wait_for(|now| {
            let told =
                now.generation >= newest && !matches!(now.state, StateKind::Dialing | StateKind::Ending);
            told || matches!(now.state, StateKind::Parked | StateKind::NeedsAuth | StateKind::Closed)
        });
        let policy = self.shared.server.policy.settings();
        let drain =
            if before.state == StateKind::Draining { policy.close.drain } else { std::time::Duration::ZERO };
        let limit = drain + policy.dial.start + policy.dial.handshake + policy.close.worst();
        match tokio::time::timeout(limit, decided).await {
            Ok(now) if now.state.is_live() => Ok(now.generation),
            Ok(now) => {
                let why = self.told(&now).unwrap_or_else(|| "the connection is closed".to_owned());
                Err(self.probe_call().error_before(CallErrorKind::Lost, why))
            }
            Err(_) => {
                let cause = "the server was not ready in time after the reconnect".to_owned();
                Err(self.probe_call().error_before(CallErrorKind::HeldTooLong, cause))
            }
        }
    }

    /// Replaces the server by a fresh one, once its calls in flight have ended or have had the time that a planned end gives
    /// them. Calls made in the meantime wait for the fresh one. Returns at once.
    pub async fn recycle(&self) {
        self.ask(Command::Recycle).await;
    }

    /// Takes it out of service: calls in flight may finish, as far as the time that a planned end gives them allows, then the
    /// server is stopped, and stays so until [`unpark`](Self::unpark) or [`redial`](Self::redial). Calls made meanwhile are refused
    /// with [`Refusal::OutOfService`]; they do not wake it, nor do new credentials or any timer. Returns when the server is gone;
    /// a line that is closed meanwhile stays closed. Nothing is stored: a new line to the same server is in service.
    pub async fn park(&self) {
        for _ in 0..ASKED_AGAIN {
            if self.ask(Command::Park).await.is_some() || self.shared.inbox.is_closed() {
                break;
            }
        }
        self.wait_for(|now| match now.state {
            StateKind::Closed => true,
            // Somebody else may bring it back before it is down.
            state => !now.is_out_of_service() || state == StateKind::Parked,
        })
        .await;
    }

    /// The same for a line that was just put on its rig and that nobody has dialled: its server is not even started.
    #[doc(hidden)] // for linetender's holder
    pub fn begin_parked(&self) {
        // It is the first that its tender is told.
        let _ = self.shared.inbox.try_send(Inbox::Command(Command::Park, None));
    }

    /// Brings a parked line back into service, whether an operator or its failures [parked](Self::park) it: dials it at once,
    /// and returns its generation once it is up. A line that is in service is left alone.
    ///
    /// # Errors
    /// If it did not come up: why, and when the next try is.
    pub async fn unpark(&self) -> Result<u64, CallError> {
        let before = self.status();
        self.ask(Command::Wake).await;
        if before.state.is_live() && !before.is_out_of_service() {
            return Ok(before.generation);
        }
        self.up_after(&before).await
    }

    /// Ends it. Nothing of the server is left when this returns.
    pub async fn close(&self) {
        for _ in 0..ASKED_AGAIN {
            // A tender that panicked over it has not answered, and is asked again.
            if self.ask(Command::Close).await.is_some() || self.shared.inbox.is_closed() {
                break;
            }
        }
        self.wait_for(|status| status.state == StateKind::Closed).await;
    }

    /// Whether it runs a program here that agents were answered for before it started.
    pub(crate) fn is_known_program(&self) -> bool {
        matches!(self.shared.server.target, Target::Stdio { shared: None, .. }) && self.greeting().is_some()
    }

    /// Whether it is a line to just this server.
    pub(crate) fn is_to(&self, server: &Server) -> bool {
        *self.shared.server == *server
    }

    pub(crate) fn audience(&self) -> &Arc<Audience> {
        &self.shared.audience
    }

    /// What the server wanted first that only an agent that is alone with it can give: roots, sampling, elicitation.
    #[doc(hidden)] // for linetender's keeper
    pub fn wants_of_agents(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.shared.audience.wanted()
    }

    /// Whether no call is under way or waits for its turn.
    #[doc(hidden)] // for linetender's keeper
    pub fn is_quiet(&self) -> bool {
        self.shared.turns.is_quiet()
    }

    /// Now, by its clock.
    pub(crate) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// A time of its clock as the system's.
    pub(crate) fn at(&self, instant: Instant) -> tokio::time::Instant {
        self.shared.clock.at(instant)
    }

    /// Whose the deadline of an agent's calls is.
    #[doc(hidden)] // for linetender's bindings
    pub fn deadline(&self) -> Deadline {
        self.shared.server.deadline
    }

    /// Its policy.
    pub fn policy(&self) -> &linetender_core::Settings {
        self.shared.server.policy.settings()
    }

    /// Ends it once its calls have ended, or have had the time that a planned end gives them.
    pub(crate) async fn retire(&self) {
        self.ask(Command::IdleStop).await;
        let drained = self.wait_for(|now| !now.state.is_live());
        let _ = tokio::time::timeout(self.policy().close.drain, drained).await;
        self.close().await;
    }

    /// Dials it, if nobody did yet. One that was [parked](Self::park) stays so: that is for [`unpark`](Self::unpark).
    pub fn wake(&self) {
        if self.status().state != StateKind::Idle {
            return;
        }
        // A tender with so much to do has been asked before.
        let _ = self.shared.inbox.try_send(Inbox::Command(Command::Open, None));
    }

    /// The machine slept: one probe comes before the next call. On Linux, macOS and Windows linetender sees that by itself.
    pub async fn slept(&self) {
        let (reply, told) = oneshot::channel();
        if self.shared.inbox.send(Inbox::Slept(reply)).await.is_ok() {
            let _ = told.await;
        }
    }

    /// Tells the server something, if it is up and the generation that this is for.
    ///
    /// # Errors
    /// If it does not read now, or is not there.
    pub(crate) fn tell(&self, text: impl Into<Passed>, only: Option<Generation>) -> Result<(), Refused> {
        self.live(only).ok_or(Refused::Sealed)?.ledger.tell(text)
    }

    /// The same, and waits while the server does not read.
    pub(crate) async fn tell_surely(&self, text: Passed, only: Option<Generation>) {
        if let Some(live) = self.live(only) {
            live.ledger.tell_surely(text).await;
        }
    }

    /// Whether a generation can still be told something.
    pub(crate) fn hears(&self, generation: Generation) -> bool {
        self.live(Some(generation)).is_some_and(|live| !live.ledger.is_sealed())
    }

    fn live(&self, only: Option<Generation>) -> Option<Arc<Live>> {
        let live = self.shared.published.borrow().connection.live().cloned();
        live.filter(|live| only.is_none_or(|only| only == live.generation))
    }

    /// The server of the present generation once its start is over, however that went.
    fn started(&self) -> Option<Arc<Link>> {
        match &self.shared.published.borrow().connection {
            Connection::None | Connection::Starting(_) => None,
            connection @ (Connection::Live(_) | Connection::Over(_)) => connection.link().cloned(),
        }
    }

    /// Whether calls go straight to the server now.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.shared.published.borrow().gate, Gate::Go { .. })
    }

    /// A list as it was last known, as the result of asking for it.
    pub(crate) fn known_list(&self, kind: Kind) -> Option<String> {
        let catalogue = self.shared.catalogue.borrow().clone();
        self.seen(&catalogue);
        catalogue.result(kind)
    }

    /// Why nothing can be known of the server before somebody logs in, if that is so. Whoever asks tells an agent that it offers nothing
    /// yet, and agents are to hear when it does.
    pub(crate) fn wants_login(&self) -> Option<String> {
        let keys = self.shared.keys.as_ref()?;
        // What calls are told, not the state: a generation that was refused takes a moment to end.
        let gate = self.shared.published.borrow().gate;
        if !matches!(gate, Gate::Refuse { why: Refusal::NeedsAuth, .. }) {
            return None;
        }
        keys.agents_know_of_nothing();
        Some(
            self.status()
                .cause
                .map_or_else(|| "the server requires a login".to_owned(), |why| why.text.clone()),
        )
    }

    /// Why its last generation ended, as agents may read it.
    pub(crate) fn told(&self, status: &Status) -> Option<String> {
        status.cause.as_ref().map(|why| why.told(self.shared.outsiders).to_owned())
    }

    /// What is known of the server, to be watched.
    pub(crate) fn known(&self) -> (watch::Receiver<Option<Arc<Greeting>>>, watch::Receiver<Arc<Catalogue>>) {
        (self.shared.greeting.clone(), self.shared.catalogue.clone())
    }

    /// What the server last said of itself.
    pub(crate) fn greeting(&self) -> Option<Arc<Greeting>> {
        self.shared.greeting.borrow().clone()
    }

    /// What the server last said about how to use it, if it said anything.
    pub fn instructions(&self) -> Option<Arc<str>> {
        self.shared.said.instructions(&self.greeting()?)
    }

    /// What the server last declared beyond the protocol; `None` if it never said anything.
    #[doc(hidden)] // for linetender's gateway
    pub fn declared(&self) -> Option<Arc<Declared>> {
        self.shared.said.declared(&self.greeting()?)
    }

    /// How the server last introduced itself; `None` if it never did.
    #[doc(hidden)] // for linetender's commands
    pub fn server_info(&self) -> Option<ServerInfo> {
        self.greeting().map(|greeting| ServerInfo::of(&greeting))
    }

    /// The era in which it last spoke.
    pub(crate) fn era(&self) -> Option<Era> {
        self.greeting().map(|greeting| greeting.era)
    }

    /// How an agent is told that a tool call failed.
    pub(crate) fn tool_errors(&self) -> ToolErrors {
        self.shared.server.tool_errors
    }

    /// Whether the server was told who this agent is, in these very words.
    pub(crate) fn speaks_for(&self, hello: Option<&str>) -> bool {
        matches!(&self.shared.server.hello, Hello::Agent(said) if hello == Some(&**said))
    }

    async fn ask(&self, command: Command) -> Option<CommandOutcome> {
        let (reply, asked) = oneshot::channel();
        self.shared.inbox.send(Inbox::Command(command, Some(reply))).await.ok()?;
        asked.await.ok()
    }

    /// Lines of noise and answers to nothing that the present generation sent, and the first of them.
    #[doc(hidden)]
    pub fn odd(&self) -> (u64, Vec<String>) {
        self.started().map(|link| link.ear.odd()).unwrap_or_default()
    }

    /// The linetender process that holds the server for this one and others, if one does.
    pub fn keeper(&self) -> Option<i32> {
        self.started()?.reach.keeper()
    }

    /// Why the server is not shared although it was to be.
    pub fn not_shared(&self) -> Option<String> {
        self.started()?.not_shared.clone()
    }

    /// The process of the present generation.
    pub fn pid(&self) -> Option<i32> {
        self.started()?.reach.pid()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("server", &self.name()).field("status", &self.status()).finish()
    }
}

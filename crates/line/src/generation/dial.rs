//! Making a generation: a turn at the dial limit, a process, a handshake.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linetender_core::Generation;
use linetender_wire::frame::{self, Frame, Members, Message, Outcome};
use linetender_wire::handshake::{Era, Eras, Greeting, Handshake, Next};
use linetender_wire::hop::{Found, Hop};
use linetender_wire::http::{Remote, Way};
use linetender_wire::seam::{self, Listener};
use linetender_wire::stdio::{Child, Launch, Lifeline, Program, Reaper, container};
use linetender_wire::{Elsewhere, Redacted, Seen};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::dial_limit::DialLimit;
use super::ear::Ear;
use super::link::{Asking, Link, Live};
use super::predecessors::Predecessors;
use super::reach::Reach;
use super::relay::{Process, Relay};
use crate::book::{Lost, Reply};
use crate::keys::{KeyRing, Without};
use crate::server::{Server, Target};
use crate::status::Waits;

/// How long a dial keeps its turn after its server was started. By then what a start costs this machine is mostly paid.
const TURN: Duration = Duration::from_millis(500);

/// How long to wait before an address at which nobody listened is tried again: at first, and later.
const LISTENS: Range<Duration> = Duration::from_millis(50)..Duration::from_millis(500);

/// How much is quoted of what a keeper says of its server.
const KEEPER_SAID: usize = 800;

/// What is said of a server that cannot be initialized on the pipes that it was restarted on.
const UNINITIALIZED: &str = "no response from the server that was restarted by its own process";

/// How often within one dial a key that was refused is replaced.
const RENEWALS: u32 = 2;

/// What a dial tells its tender.
pub(crate) enum DialNews {
    /// It has to wait for this.
    Waits(Waits),
    /// It was its turn: the start time runs.
    Started,
    /// There is a process.
    Linked(Arc<Link>),
    /// The handshake is done.
    Greeted(Arc<Live>),
    /// It cannot be done.
    Failed(Seen),
}

/// What came of a question.
enum Heard {
    Reply(Result<Reply, oneshot::error::RecvError>),
    Silence,
}

/// What a dial needs.
pub(crate) struct Dial {
    pub(crate) generation: Generation,
    pub(crate) server: Arc<Server>,
    pub(crate) ear: Arc<Ear>,
    pub(crate) limit: DialLimit,
    /// Lines to servers of the same name, which have to be closed first.
    pub(crate) predecessors: Predecessors,
    pub(crate) remembered: Option<Era>,
    pub(crate) wire: mpsc::Sender<seam::Event>,
    /// Whether agents were answered in the server's name before it started: they may leave at any time, and it is to finish its start.
    pub(crate) known: bool,
    /// A number of its own, so that many lines do not do things in step.
    pub(crate) seed: u64,
    /// Whether nobody listening at its address is waited for: not if the dial before met the same.
    pub(crate) patient: bool,
    /// Credentials that change, if the server has such.
    pub(crate) keys: Option<Arc<KeyRing>>,
    /// Whether the server is being asked a question that makes some old ones exit.
    pub(crate) probing: Arc<AtomicBool>,
    /// The process of the generation before, if it outlived its session.
    pub(crate) kept: Option<Process>,
}

impl Dial {
    /// Dials. Each piece of news goes to `tell` in order.
    pub(crate) async fn run<F: Future<Output = ()>>(self, tell: impl Fn(DialNews) -> F) {
        if self.predecessors.are_any() {
            tell(DialNews::Waits(Waits::Predecessor)).await;
            self.predecessors.closed().await;
        }
        // Nor is it start time until it is known which gateway of a fleet is to run it.
        if let Some(way) = self.server.held_by() {
            let mut ready = pin!(way.ready());
            tokio::select! {
                biased;
                () = &mut ready => {}
                () = std::future::ready(()) => {
                    tell(DialNews::Waits(Waits::Owner)).await;
                    ready.await;
                }
            }
        }
        // Asking for a key is no start time either: whoever is asked bounds it.
        if let Some(keys) = &self.keys {
            tell(DialNews::Waits(Waits::Key)).await;
            if let Err(why) = keys.fresh().await {
                return tell(DialNews::Failed(why.seen())).await;
            }
        }
        // A server that ends when it is asked for its era is asked for the other one, and that is no repetition.
        let repeats = match self.generation.number() {
            1 => false,
            2 => self.remembered != Some(Era::Legacy),
            _ => true,
        };
        if repeats && self.limit.is_once() {
            return;
        }
        // Waiting for a turn is neither start time nor failure.
        let mut coming = pin!(self.limit.turn(self.generation.number() > 1));
        let turn = tokio::select! {
            biased;
            turn = &mut coming => turn,
            () = std::future::ready(()) => {
                tell(DialNews::Waits(Waits::Turn)).await;
                coming.await
            }
        };
        let Some(turn) = turn else { return };
        tell(DialNews::Started).await;
        linetender_wire::test_hooks::point("dial");
        let mut not_shared = None;
        let reach = match self.reach(&mut not_shared).await {
            Ok(reach) => reach,
            Err(seen) => return tell(DialNews::Failed(seen)).await,
        };
        let (ear, ledger) = (Arc::clone(&self.ear), Arc::clone(&self.ear.ledger));
        ledger.open(reach.outbox().clone(), reach.has_exchanges());
        let generation = self.generation;
        let link = Arc::new(Link { generation, ledger, ear, reach, not_shared });
        tell(DialNews::Linked(Arc::clone(&link))).await;
        match during_turn(turn, self.greet_in_time(&link, &tell)).await {
            Ok(greeting) => {
                if greeting.era == Era::Legacy {
                    link.ledger
                        .tell_surely(frame::notification("notifications/initialized", None).into())
                        .await;
                }
                link.reach.up();
                tell(DialNews::Greeted(Arc::new(Live::new(link, greeting)))).await;
            }
            // A connection that is gone tells why by itself.
            Err(None) => {}
            Err(Some(seen)) => tell(DialNews::Failed(seen)).await,
        }
    }

    async fn reach(&self, not_shared: &mut Option<String>) -> Result<Reach, Seen> {
        if let Some(process) = &self.kept {
            return Ok(Reach::Process(process.clone()));
        }
        let listener = Arc::clone(&self.ear) as Arc<dyn Listener>;
        match &self.server.target {
            Target::Stdio { program, reaper, shared, lifeline } => {
                let mut lifeline = lifeline.as_ref().map(|Elsewhere(lifeline)| Arc::clone(lifeline));
                if let Some(Elsewhere(way)) = shared {
                    match way.reach(&self.server.hello).await {
                        Found::There(reached) => {
                            let sizes = self.server.policy.settings().limits;
                            return Ok(Reach::Hop(Hop::launch(reached, sizes, listener, self.wire.clone())));
                        }
                        Found::Here { lifeline: until, why } => {
                            if let Some(why) = &why {
                                let server = &*self.server.name;
                                tracing::info!(server, why, "not shared: this process runs the server");
                            }
                            *not_shared = why;
                            lifeline = until;
                        }
                        Found::Nowhere(seen) => return Err(seen),
                    }
                }
                let mut launch = self.launch(program, reaper.as_ref(), lifeline);
                if !matches!(launch.reaper, Reaper::Elsewhere(_)) {
                    self.follow_container(&mut launch).await?;
                }
                let relay = Relay::new(Arc::clone(&self.ear));
                let child =
                    Child::launch(&launch, Arc::clone(&relay) as Arc<dyn Listener>, self.wire.clone());
                if let (Err(_), Some(container)) = (&child, &launch.container) {
                    container.forget();
                }
                child.map(|child| Reach::Process(Process::new(child, relay)))
            }
            Target::Http(http) => {
                let slot = self.keys.as_ref().map(|keys| keys.slot.clone());
                let approach = http.approach(self.server.policy.settings(), self.seed, slot)?;
                Ok(Reach::Remote(Remote::launch(approach, listener, self.wire.clone())))
            }
        }
    }

    /// If the program starts a container: ends those that earlier starts left behind, and has the next one followed.
    async fn follow_container(&self, launch: &mut Launch) -> Result<(), Seen> {
        let client_lives = launch.close.stdin + launch.close.term;
        match container::prepare(&launch.program, client_lives, &self.wire).await? {
            container::Start::Plain => {}
            container::Start::Unfollowed(reason) => tracing::warn!(
                server = &*self.server.name,
                reason,
                "the server's container cannot be followed: it may outlive its client"
            ),
            container::Start::Followed(program, container) => {
                launch.program = program;
                launch.container = Some(Arc::new(container));
            }
        }
        Ok(())
    }

    fn launch(&self, program: &Program, reaper: Option<&Reaper>, lifeline: Option<Arc<Lifeline>>) -> Launch {
        let settings = self.server.policy.settings();
        let reaper = reaper.cloned().unwrap_or(Reaper::Find);
        Launch {
            program: program.clone(),
            container: None,
            reaper,
            lifeline,
            start: self.known.then_some(settings.dial.start),
            close: settings.close,
            sizes: settings.limits,
        }
    }

    /// Shakes hands. A server behind a process that was kept has just answered: if it does not answer again, the process is not.
    async fn greet_in_time<Told: Future<Output = ()>>(
        &self,
        link: &Arc<Link>,
        tell: &impl Fn(DialNews) -> Told,
    ) -> Result<Greeting, Option<Seen>> {
        let greeted = self.greet(link, tell);
        if self.kept.is_none() {
            return greeted.await;
        }
        let limit = self.server.policy.settings().probe.timeout;
        tokio::time::timeout(limit, greeted).await.unwrap_or_else(|_| {
            Err(Some(Seen::Handshake { said: Redacted::head(UNINITIALIZED, KEEPER_SAID) }))
        })
    }

    /// Shakes hands. A server at an address that is being started does not listen yet: it is given twice as long as a call
    /// waits for its line before that counts as a failure (H25).
    async fn greet<Told: Future<Output = ()>>(
        &self,
        link: &Arc<Link>,
        tell: &impl Fn(DialNews) -> Told,
    ) -> Result<Greeting, Option<Seen>> {
        let patience = Instant::now() + 2 * self.server.policy.settings().call.wait_for_line;
        let mut wait = LISTENS.start;
        loop {
            let shaken = self.shake_hands_either_way(link).await;
            let refused = matches!(shaken, Err(Some(Seen::Refused { .. })));
            if !refused || !self.patient || Instant::now() + wait >= patience {
                return shaken;
            }
            tell(DialNews::Waits(Waits::Listener)).await;
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LISTENS.end);
        }
    }

    /// Where nothing says which transport a server at an address speaks, and it does not know the one it was asked in, it is
    /// asked in the other. Only the handshake is said twice.
    // MCP 2025-11-25, "Backwards Compatibility": POST, and where that fails, GET, whose first event is `endpoint`.
    async fn shake_hands_either_way(&self, link: &Arc<Link>) -> Result<Greeting, Option<Seen>> {
        let first = self.shake_hands(link).await;
        let (Target::Http(http), Some(way)) = (&self.server.target, link.reach.way()) else { return first };
        let other = match &first {
            Ok(_) => {
                http.found(way);
                None
            }
            Err(Some(Seen::NotMcp { .. } | Seen::OtherEra))
                if self.server.eras != Eras::Only(Era::Modern) =>
            {
                http.way_besides(way)
            }
            Err(_) => None,
        };
        let Some(other) = other else { return first };
        link.reach.turn_to(other);
        let mut shaking = pin!(self.shake_hands(link));
        let second = match tokio::time::timeout(self.detection(), &mut shaking).await {
            // Anything may send events, and never one that names an endpoint.
            Err(_) if other == Way::EventStream && !link.reach.is_attached() => None,
            Err(_) => Some(shaking.await),
            Ok(shaken) => Some(shaken),
        };
        match second {
            Some(Ok(greeting)) => {
                http.found(other);
                Ok(greeting)
            }
            Some(Err(None)) => Err(None),
            Some(Err(Some(seen))) if says_more(&seen) => Err(Some(seen)),
            Some(Err(_)) | None => {
                link.reach.turn_to(way);
                first
            }
        }
    }

    /// How long an address may take to show that it speaks HTTP+SSE, where nothing says so.
    fn detection(&self) -> Duration {
        2 * self.server.policy.settings().dial.probe_wait
    }

    async fn shake_hands(&self, link: &Arc<Link>) -> Result<Greeting, Option<Seen>> {
        // HTTP+SSE is older than the modern era.
        let eras = match link.reach.way() {
            Some(Way::EventStream) => Eras::Only(Era::Legacy),
            _ => self.server.eras,
        };
        let mut handshake = Handshake::new(self.server.hello.clone(), eras, self.remembered);
        let mut next = handshake.ask();
        // A silent server may answer the first question after the second was asked.
        let mut earlier: Option<Asking> = None;
        let mut renewals = 0;
        // A server may wait for the answer to a question of its own first, which nobody can give yet.
        let mut blocked = pin!(tokio::time::sleep(self.server.policy.settings().dial.probe_wait));
        loop {
            let (method, params) = match next {
                Next::Done(greeting) => return Ok(greeting),
                Next::Failed(seen) => return Err(Some(seen)),
                Next::Ask { method, params } => (method, params),
            };
            self.probing.store(handshake.ended().is_some(), Ordering::Relaxed);
            let mut answer = link.shake(method, &params).await.ok_or(None)?;
            let heard = loop {
                tokio::select! {
                    biased;
                    reply = &mut answer => break Heard::Reply(reply),
                    reply = either(&mut earlier) => {
                        if let Ok(Reply::Answer(frame)) = &reply
                            && let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message()
                            && Greeting::can_be(Era::Modern, result)
                        {
                            return Ok(Greeting { era: Era::Modern, result: result.into() });
                        }
                        earlier = None;
                    }
                    () = self.silence(link), if handshake.ended().is_some() => break Heard::Silence,
                    () = &mut blocked, if !blocked.is_elapsed() => link.ear.refuse_early(),
                }
            };
            next = match heard {
                Heard::Silence => {
                    earlier = Some(answer);
                    handshake.silent().ok_or(None)?
                }
                Heard::Reply(Ok(Reply::Answer(frame))) => match frame.message() {
                    Message::Response { outcome: Some((Outcome::Result, result)), .. } => {
                        handshake.accepted(result)
                    }
                    Message::Response { outcome: Some((Outcome::Error, error)), .. } => {
                        // A keeper has tried both eras, and says what is wrong with its server.
                        if let Some(said) =
                            link.reach.keeper().and_then(|_| Members::of(error)?.string("message"))
                        {
                            return Err(Some(Seen::Handshake { said: Redacted::head(&said, KEEPER_SAID) }));
                        }
                        handshake.refused(error)
                    }
                    _ => return Err(None),
                },
                Heard::Reply(Ok(Reply::Unusable(_))) if link.ear.no_server().is_some() => {
                    let words = link.ear.no_server().unwrap_or_default();
                    return Err(Some(Seen::NotAServer { words: Redacted::head(words, 200) }));
                }
                // An answer of no use, an error without an id among them, is not a modern server's.
                Heard::Reply(Ok(Reply::Unusable(why))) => handshake.refused(&why),
                Heard::Reply(Ok(Reply::Lost(lost))) if !link.ledger.is_sealed() => {
                    // What was refused for its key is asked again, in the same words.
                    if self.has_new_key(&lost, &mut renewals).await? {
                        Next::Ask { method, params }
                    } else {
                        self.lost(&mut handshake, lost)?
                    }
                }
                Heard::Reply(Ok(Reply::Lost(_)) | Err(_)) => return Err(None),
            };
        }
    }

    /// Whether another key took the place of one that was refused.
    async fn has_new_key(&self, lost: &Lost, renewals: &mut u32) -> Result<bool, Option<Seen>> {
        let (Some(keys), Some(refused)) = (&self.keys, &lost.refused) else { return Ok(false) };
        if *renewals == RENEWALS {
            return Ok(false);
        }
        *renewals += 1;
        match keys.renewed(refused, false).await {
            Ok(()) => Ok(true),
            // Without a challenge it may be something else that is wanted.
            Err(Without::Refused { .. }) => Ok(false),
            Err(why) => Err(Some(why.seen())),
        }
    }

    /// A question of the handshake had an end of its own, on a connection that may live on.
    fn lost(&self, handshake: &mut Handshake, lost: Lost) -> Result<Next, Option<Seen>> {
        let seen = lost.seen.ok_or(None)?;
        match &*seen {
            // Another era is worth a try, at once or by the next generation.
            Seen::OtherEra => match handshake.other() {
                Some(next) => Ok(next),
                None if self.server.eras == Eras::Auto => Err(Some(Seen::OtherEra)),
                None => Ok(handshake.refused("the configured protocol version is not supported")),
            },
            // Whatever the body says, nothing was learned about the era, and another question would be refused as well.
            Seen::Throttled { .. } => Err(Some(Seen::clone(&seen))),
            // HTTP+SSE: whoever got the question does not know the stream. Its words say less.
            Seen::SessionLost | Seen::SessionNeverKnown => Err(Some(Seen::clone(&seen))),
            Seen::WantsAuth { challenge } if !challenge.is_empty() => Err(Some(Seen::clone(&seen))),
            // Without a challenge it may be a session that is wanted, or another question.
            Seen::WantsAuth { .. } => handshake.other().ok_or_else(|| Some(Seen::clone(&seen))),
            // An answer of no use, or one that could be about two questions.
            Seen::Unusable { words } => Ok(handshake.refused(&words.to_string())),
            other => match lost.said.as_ref().map(Frame::message) {
                Some(Message::Response { outcome: Some((Outcome::Error, error)), .. }) => {
                    Ok(handshake.refused(error))
                }
                // Old servers react to a question that they do not know in any way: what is no word of the network's is
                // asked again in the other era, once, before it is called anything.
                _ if other.was_reached() => {
                    handshake.other_after(other.clone()).ok_or_else(|| Some(other.clone()))
                }
                _ => Err(Some(other.clone())),
            },
        }
    }

    /// Ends when the server has been silent for long enough to count: it talks but does not answer, or it had half of its
    /// start time and said nothing at all (a package runner may be downloading).
    async fn silence(&self, link: &Link) {
        let policy = self.server.policy.settings().dial;
        // A server at an address is there already: nobody is downloading it.
        if link.reach.has_exchanges() {
            return tokio::time::sleep(policy.probe_wait).await;
        }
        let begun = link.ledger.signs.heard_at();
        let mut waited = Duration::ZERO;
        loop {
            tokio::time::sleep(policy.probe_wait).await;
            waited += policy.probe_wait;
            if link.ledger.signs.heard_at() > begun || waited * 2 >= policy.start {
                return;
            }
        }
    }
}

/// Whether what was seen in the other transport is worth more than that a server does not know the first.
const fn says_more(seen: &Seen) -> bool {
    matches!(
        seen,
        Seen::BadEndpoint { .. }
            | Seen::BadSession { .. }
            | Seen::WantsAuth { .. }
            | Seen::NeedsLogin { .. }
            | Seen::NoKey { .. }
            | Seen::Throttled { .. }
            | Seen::Handshake { .. }
            | Seen::SessionLost
            | Seen::SessionNeverKnown
    )
}

/// A turn ends with the handshake, or [`TURN`] after the start: a server that never answers must not keep others waiting.
async fn during_turn<T, R>(turn: T, handshake: impl Future<Output = R>) -> R {
    let mut handshake = std::pin::pin!(handshake);
    if let Ok(shaken) = tokio::time::timeout(TURN, &mut handshake).await {
        return shaken;
    }
    drop(turn);
    handshake.await
}

async fn either(earlier: &mut Option<Asking>) -> Result<Reply, oneshot::error::RecvError> {
    match earlier {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::{DialLimit, TURN, during_turn};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_turn_ends_while_the_handshake_goes_on() {
        let limit = DialLimit::new(4);
        let start = Instant::now();
        // Twelve in four places: three turns, and the thirteenth is next.
        let twelve = async {
            let dial = || async {
                let turn = limit.turn(false).await;
                during_turn(turn, std::future::pending::<()>()).await;
            };
            tokio::join!(
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial(),
                dial()
            );
        };
        tokio::select! {
            () = twelve => unreachable!("nobody answers"),
            _ = async { tokio::task::yield_now().await; limit.turn(false).await } => {}
            () = tokio::time::sleep(TURN * 10) => panic!("the thirteenth waits for those that never answer"),
        }
        assert_eq!(start.elapsed(), TURN * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_is_done_gives_its_turn_away_at_once() {
        let limit = DialLimit::new(1);
        let start = Instant::now();
        for _ in 0..200 {
            let turn = limit.turn(false).await;
            during_turn(turn, async {}).await;
        }
        assert_eq!(start.elapsed(), std::time::Duration::ZERO);
    }
}

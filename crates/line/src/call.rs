//! The way down: one call, from the gate to its answer.

mod after;
mod answer;
mod context;
mod options;
mod out;
mod progress;
mod session;
mod told;
pub(crate) mod turns;

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use linetender_core::{
    Admission, Declared, Delivery, Evidence, Gate, Generation, Held, Instant, LossReport, Method, Record,
    RecordStep, Refusal, RetryBudget, RetryReason, Safety, ServerState,
};
use linetender_wire::frame::{self, Frame, Members};
use linetender_wire::handshake::{Era, Greeting};
use tokio::sync::{mpsc, oneshot, watch};

use crate::audience::Audience;
use crate::basics::clock::Clock;
use crate::basics::context_loss::ContextLoss;
use crate::basics::error::{CallError, CallErrorKind, Phase};
use crate::basics::late::{self, Wait};
use crate::basics::next_try::NextTry;
use crate::basics::order::LONGEST_WAIT;
use crate::basics::params::Params;
use crate::basics::rpc_error::RpcError;
use crate::basics::said::Said;
use crate::book::NoSeat;
use crate::book::{Heed, Lost};
use crate::call::turns::{Full, Slot, Turns};
use crate::catalogue::Catalogue;
use crate::generation::Wishes;
use crate::generation::{Connection, Live};
use crate::keys::KeyRing;
use crate::outcome::{Stage, Witness};
use crate::server::Server;
use crate::status::{Status, Why};
use crate::tender::{Inbox, Published};
use after::{Earlier, Permit};
pub use answer::Answer;
pub(crate) use answer::Reply;
pub use context::AgentContext;
use context::AtServer;
pub use options::Options;
pub(crate) use options::Way;
use out::{Out, Time, Try};
use told::{Course, Redirects, Told};

/// Instead of stderr that may quote somebody else's call.
const WITHHELD: &str = "(not shown: calls of other users were sent to this server process; `linetender journal` shows it to the operator)";
pub use progress::{Progress, ProgressStream};

/// What line, tender and calls share.
pub(crate) struct Shared {
    pub(crate) server: Arc<Server>,
    /// Whether its agents are others than the operator of this machine.
    pub(crate) outsiders: bool,
    pub(crate) clock: Clock,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) state: watch::Receiver<Status>,
    /// What the server last said of itself.
    pub(crate) greeting: watch::Receiver<Option<Arc<Greeting>>>,
    pub(crate) catalogue: watch::Receiver<Arc<Catalogue>>,
    pub(crate) inbox: mpsc::Sender<Inbox>,
    /// Credentials that change, if the server has such.
    pub(crate) keys: Option<Arc<KeyRing>>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) calls: AtomicU64,
    pub(crate) retry: std::sync::Mutex<RetryBudget>,
    pub(crate) wishes: Arc<Wishes>,
    pub(crate) audience: Arc<Audience>,
    /// Who sees every call.
    pub(crate) witness: OnceLock<Arc<dyn Witness>>,
    /// What it said of itself that agents are told.
    pub(crate) said: Said,
    /// What programs that hold the line rely on in the server's memory.
    pub(crate) context: AgentContext,
}

/// One call on its way.
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) options: Options,
}

/// Which generations may run a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Bound {
    Any,
    /// Its session is gone and would refuse the call again; the gate hears of that in a moment.
    Not(Generation),
    /// A call that may not leave its context: it runs in this generation or not at all.
    Only(Generation),
}

impl Bound {
    fn after(earlier: Option<&Earlier>, is_bound: bool) -> Self {
        match earlier {
            Some(Earlier { link, .. }) if is_bound => Self::Only(link.generation),
            Some(Earlier { link, lost, .. }) if lost.session_is_gone() => Self::Not(link.generation),
            _ => Self::Any,
        }
    }
}

impl Call<'_> {
    /// Waits for the line as a call would, and makes none.
    pub(crate) async fn ready(self) -> Result<(), CallError> {
        let until = self.shared.clock.now() + self.shared.server.policy.settings().dial.start;
        self.admit(&Record::new(Safety::Protocol), until, Bound::Any).await.map(drop)
    }

    /// Makes the call, and has its outcome told.
    pub(crate) async fn run(self) -> Result<Reply, CallError> {
        let result = self.observed().await;
        // Nothing is awaited from here on: a call that was cancelled tells nobody anything.
        result.inspect_err(|error| self.tells(error))
    }

    async fn observed(&self) -> Result<Reply, CallError> {
        let Some(witness) = self.shared.witness.get() else {
            return self.counted(&mut Course::default()).await;
        };
        let (mut told, may) = Told::came(self, &**witness);
        let result = match may {
            Ok(()) => self.counted(&mut told.course).await,
            Err(cause) => Err(self.error_before(CallErrorKind::NotRecorded, cause)),
        };
        told.ended(self, result).await
    }

    /// A reply and an error both say how often the call was sent.
    async fn counted(&self, course: &mut Course<'_>) -> Result<Reply, CallError> {
        let tried = self.tried(course).await;
        // What is still to be written down of this call holds up no other.
        if let Some(place) = &self.options.place {
            place.step_aside();
        }
        match tried {
            Ok(mut reply) => {
                reply.attempts = course.attempts();
                Ok(reply)
            }
            Err(error) => Err(CallError { attempts: course.attempts(), ..error }),
        }
    }

    /// However many tries it takes.
    async fn tried(&self, course: &mut Course<'_>) -> Result<Reply, CallError> {
        let shared = self.shared;
        let policy = shared.server.policy.settings();
        shared.calls.fetch_add(1, Ordering::Relaxed);
        let arrived = self.options.arrived.unwrap_or_else(|| shared.clock.now());
        let (quiet, total) = self.options.deadline.limits(&policy.call);
        let still = policy.call.question_cap;
        let time = Time { deadline: self.options.deadline, quiet, total: arrived + total, still };
        let mut record = self.record(self.safety());
        let _slot = self.slot(&record, time.of_a_turn(arrived, policy.call.hang_after)).await?;
        let mut earlier: Option<Earlier> = None;
        let mut permit = Permit::Free;
        let (mut patience, mut order) = (None, LONGEST_WAIT);
        // Why it is sent again, until it has a seat: a generation may end before that.
        let mut retry = None;
        loop {
            let until = time.of_a_try(shared.clock.now());
            let bound = Bound::after(earlier.as_ref(), policy.state == ServerState::Process);
            let held = patience.map_or(until, |patience| until.min(patience));
            course.reaches(Stage::Waiting);
            let admitted = self.admit(&record, held, bound).await?;
            let link = match (admitted, earlier.take()) {
                (Some(link), None) => link,
                (Some(link), Some(earlier)) if self.permits(&mut permit, &link, until).await => {
                    let from = earlier.link.generation.number();
                    retry = earlier.reason.map(|reason| (reason, from)).or(retry);
                    link
                }
                (_, Some(earlier)) => {
                    return self.settled(&earlier.link, earlier.lost, course.attempts());
                }
                // Only a call that has tried before is bound to a generation.
                (None, None) => continue,
            };
            if let Some(place) = &self.options.place
                && place.wait_for_turn(&mut order, shared.clock.at(until)).await.is_err()
            {
                return Err(self.held_too_long(&record));
            }
            if let Some(loss) = self.loss_before(&link) {
                return Err(self.held_back(loss, &record));
            }
            let mut lost = match self.attempt(&link, record, &mut retry, until, time, course).await {
                Try::Answer(frame) => match self.judged(&link, frame, record, until).await {
                    Ok(answer) => {
                        self.uses(&link);
                        if answer.error().is_none() {
                            shared.wishes.granted(self.method, self.params);
                            match (self.method, self.options.tasks) {
                                ("tools/call", Some(owner)) => {
                                    shared.audience.answered(link.generation, owner, answer.result());
                                }
                                ("tools/call", None) => {
                                    shared.audience.answered_alone(link.generation, answer.result());
                                }
                                _ => {}
                            }
                        }
                        // MCP 2026-07-28: -32021, the request needs a capability that the client did not declare.
                        if answer.error().is_some_and(lacks_capability) {
                            shared.audience.wants("a capability that is not declared here (-32021)");
                        }
                        return Ok(answer);
                    }
                    Err(lost) => lost,
                },
                Try::Over(kind, record, cause) => {
                    if kind == CallErrorKind::BadAnswer {
                        self.uses(&link);
                    }
                    return Err(self.error(kind, Phase::AtServer, cause, &record));
                }
                Try::Lost(lost) => lost,
            };
            // However often it is refused, it waits for the line only once.
            patience = match lost.record.delivery() {
                Some(Delivery::NotExecuted(_) | Delivery::Refused(_)) => {
                    patience.or_else(|| Some(shared.clock.now() + policy.call.wait_for_line))
                }
                _ => None,
            };
            match self.after_loss(&link, &mut lost, time.of_a_try(shared.clock.now())).await {
                Some(again) => {
                    record = again.record;
                    permit = permit.or(again.permit);
                    earlier = Some(Earlier { link, lost, reason: again.reason });
                }
                None => return self.settled(&link, lost, course.attempts()),
            }
        }
    }

    /// Whether a call that is sent again may run in this generation. What an earlier generation declared of its tool is
    /// not this one's word.
    async fn permits(&self, permit: &mut Permit, link: &Live, deadline: Instant) -> bool {
        match *permit {
            Permit::Free => true,
            Permit::By(generation) if generation == link.generation => true,
            Permit::By(_) => {
                let (declared, by) = self.declared(link.generation, deadline).await;
                *permit = Permit::By(by);
                declared == Declared::Safe && by == link.generation
            }
        }
    }

    /// The record of this call, before anything of it was sent. Its verdict covers every round.
    fn record(&self, safety: Safety) -> Record {
        let record = Record::new(safety);
        if self.options.is_later_round { record.after_an_answered_round() } else { record }
    }

    fn safety(&self) -> Safety {
        let method = match self.method {
            "tools/call" => Method::CallTool,
            "server/discover" => Method::Discover,
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => Method::List,
            "resources/read" => Method::ReadResource,
            "prompts/get" => Method::GetPrompt,
            "completion/complete" => Method::Complete,
            "tasks/get" => Method::GetTask,
            "tasks/result" => Method::TaskResult,
            _ => Method::Other,
        };
        let listed = self.tool.is_some_and(|tool| self.shared.server.safe_tools.contains(tool));
        Safety::of(method, self.shared.server.policy.settings().trust_annotations, listed)
    }

    /// A place among the calls in flight, or in the queue for one.
    async fn slot(&self, record: &Record, deadline: Instant) -> Result<Slot, CallError> {
        let slot = async {
            // One that waited in its session's backlog until its end is not sent any more.
            let is_in_time = self.shared.clock.now() < deadline;
            if is_in_time { self.shared.turns.take(self.options.caller).await } else { pending().await }
        };
        match late::before(self.shared.clock.at(deadline), slot).await {
            Some(Ok(slot)) => Ok(slot),
            Some(Err(Full)) => {
                let queue = self.shared.server.policy.settings().limits.queue;
                let cause = format!("{queue} calls are already queued for this server");
                let record = record.step(RecordStep::Cancel).unwrap_or(*record);
                Err(self.error(CallErrorKind::Overloaded, Phase::BeforeSending, cause, &record))
            }
            None => {
                let record = record.step(RecordStep::Expire).unwrap_or(*record);
                let cause = "timed out in the queue: earlier calls are still unanswered".to_owned();
                Err(self.error(CallErrorKind::TimedOut, Phase::BeforeSending, cause, &record))
            }
        }
    }

    /// Waits at the gate, and knocks if it has to. `None` if the call is bound to a generation that takes no calls any
    /// more.
    async fn admit(
        &self,
        record: &Record,
        deadline: Instant,
        bound: Bound,
    ) -> Result<Option<Arc<Live>>, CallError> {
        let clock = self.shared.clock;
        let mut published = self.shared.published.clone();
        let (mut held, mut wait): (Option<Held>, _) = (None, Wait::default());
        loop {
            let (gate, link) = {
                let now = published.borrow_and_update();
                (now.gate, now.connection.live().cloned())
            };
            if let Bound::Only(only) = bound
                && gate != (Gate::Go { generation: only })
            {
                return Ok(None);
            }
            let admission = match held {
                None => gate.admit(clock.now()),
                Some(held) => gate.recheck(held),
            };
            let admission = match admission {
                Admission::Knock => self.knock().await,
                other => other,
            };
            match admission {
                Admission::Go { generation } if bound == Bound::Not(generation) => {
                    let soon = clock.now() + self.shared.server.policy.settings().call.wait_for_line;
                    if self.changed_before(&mut published, soon.min(deadline), &mut wait).await.is_err() {
                        return Err(self.held_too_long(record));
                    }
                }
                Admission::Go { generation } => match link.filter(|link| link.generation == generation) {
                    Some(link) => return Ok(Some(link)),
                    // What the tender said is newer than what we read: read again.
                    None => tokio::task::yield_now().await,
                },
                Admission::Hold(now_held) => {
                    held = Some(now_held);
                    let until = now_held.until.min(deadline);
                    if self.changed_before(&mut published, until, &mut wait).await.is_err() {
                        return Err(self.held_too_long(record));
                    }
                }
                Admission::Refuse { why, next } => return Err(self.refused(why, next, record)),
                Admission::Knock => {
                    return Err(self.refused(Refusal::Closed, linetender_core::NextTry::Never, record));
                }
            }
        }
    }

    async fn changed_before(
        &self,
        published: &mut watch::Receiver<Published>,
        until: Instant,
        wait: &mut Wait,
    ) -> Result<(), ()> {
        match wait.until(self.shared.clock.at(until), published.changed()).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(()),
        }
    }

    async fn knock(&self) -> Admission {
        let (reply, told) = oneshot::channel();
        let closed = Admission::Refuse { why: Refusal::Closed, next: linetender_core::NextTry::Never };
        if self.shared.inbox.send(Inbox::Knock(reply)).await.is_err() {
            return closed;
        }
        // A tender that panicked has not answered, and the line lives on.
        let waits = Admission::Refuse { why: Refusal::Waiting, next: linetender_core::NextTry::Underway };
        told.await.unwrap_or(if self.shared.inbox.is_closed() { closed } else { waits })
    }

    /// One try on one generation.
    async fn attempt(
        &self,
        link: &Arc<Live>,
        record: Record,
        retry: &mut Option<(RetryReason, u64)>,
        until: Instant,
        time: Time,
        course: &mut Course<'_>,
    ) -> Try {
        course.tries(link);
        let params = course.params().or(self.params);
        let params = if self.options.is_modern { Params::of_modern(params) } else { Params::of(params) };
        let progress = self.options.progress.clone();
        let heed = Heed::of(params.token(), progress, self.options.place.clone());
        let frame = |id| self.frame(id, link, &params);
        self.shared.audience.used_by(link.generation, self.options.caller.principal());
        let seat = match self.options.way {
            Way::Handed => {
                link.ledger.register(Some(heed), record, frame).map(|(entry, answer)| (entry, answer, None))
            }
            Way::Carried => link.ledger.carry(Some(heed), record, frame),
        };
        let (entry, answer, exchange) = match seat {
            Ok(seat) => seat,
            Err(NoSeat::Sealed) => {
                // The death is published a moment after the seal. Once the gate says something else, it was.
                let mut published = self.shared.published.clone();
                if published.borrow_and_update().gate == (Gate::Go { generation: link.generation }) {
                    let soon =
                        self.shared.clock.now() + self.shared.server.policy.settings().call.wait_for_line;
                    let _ = self.changed_before(&mut published, soon, &mut Wait::default()).await;
                }
                // It never left us, and that generation is over: lost as a call that was still queued.
                let record = record.step(RecordStep::Lose(LossReport::Nothing)).unwrap_or(record);
                return Try::Lost(Lost::with_all(record, None));
            }
            Err(NoSeat::Full) => {
                let record = record.step(RecordStep::Cancel).unwrap_or(record);
                return Try::Over(
                    CallErrorKind::Overloaded,
                    record,
                    "the server is not reading its input (back-pressure)".into(),
                );
            }
        };
        if let Some(place) = &self.options.place {
            place.mark_sent();
        }
        course.sits(&entry);
        let generation = link.generation.number();
        if let Some((reason, from)) = retry.take() {
            course.retries(self, reason, from, generation);
        }
        let _at_server = AtServer { call: self, link, entry: Arc::clone(&entry) };
        let _redirects = Redirects { call: self, course, entry: Arc::clone(&entry), generation };
        Out::new(self.shared, link, entry, until).wait(answer, exchange, time).await
    }

    fn frame(&self, id: u64, link: &Live, params: &Params<'_>) -> Frame {
        let modern = (link.era() == Era::Modern).then_some(&self.shared.server.hello);
        let params = params.spell(id, self.options.progress.is_some(), modern);
        frame::request(id, self.method, params.as_deref()).carrying(self.options.kept.clone())
    }

    fn last_cause(&self) -> Option<String> {
        let outsiders = self.shared.outsiders;
        self.shared.published.borrow().status.cause.as_ref().map(|why| why.told(outsiders).to_owned())
    }

    /// What a program is told: a result, or why there is none.
    pub(crate) async fn answer(self) -> Result<Answer, CallError> {
        let shared = self.shared;
        let reply = self.run().await?;
        Answer::of(reply).map_err(|reply| {
            let rpc = RpcError::of(reply.error().unwrap_or_default());
            let server = Arc::clone(&shared.server.name);
            CallError::answered(server, rpc, reply.refusal, reply.attempts)
        })
    }

    /// Why nothing could even be tried.
    pub(crate) fn error_before(&self, kind: CallErrorKind, cause: String) -> CallError {
        let record = self.record(Safety::Protocol);
        let record = record.step(RecordStep::Expire).unwrap_or(record);
        self.error(kind, Phase::BeforeSending, cause, &record)
    }

    fn error(&self, kind: CallErrorKind, phase: Phase, cause: String, record: &Record) -> CallError {
        let (next_try, why, ended) = {
            let now = self.shared.published.borrow();
            (now.status.next_try_by(now.gate), now.status.cause.clone(), now.status.last_ended())
        };
        let stderr = why.and_then(|why| self.stderr_of(ended, &why));
        CallError {
            kind,
            server: Arc::clone(&self.shared.server.name),
            phase,
            cause,
            delivery: record.verdict().unwrap_or(Delivery::NotExecuted(Evidence::Queued)),
            next_try,
            stderr,
            answered: None,
            context: None,
            attempts: 0,
        }
    }

    /// The error of a call that is not executed because its agent has to know first that a context was replaced.
    fn held_back(&self, loss: ContextLoss, record: &Record) -> CallError {
        let record = record.step(RecordStep::Cancel).unwrap_or(*record);
        let error =
            self.error(CallErrorKind::ContextReplaced, Phase::BeforeSending, loss.to_string(), &record);
        error.with_loss(Some(loss))
    }

    /// The last lines of what an ended generation wrote to stderr, if this caller may see them.
    fn stderr_of(&self, ended: Generation, why: &Why) -> Option<String> {
        why.stderr.as_ref().map(|stderr| self.visible_stderr(ended, stderr))
    }

    fn visible_stderr(&self, of: Generation, stderr: &str) -> String {
        let may = self.shared.audience.may_see(of, self.options.caller.principal());
        if may { stderr.to_owned() } else { WITHHELD.to_owned() }
    }

    fn refused(&self, why: Refusal, next: linetender_core::NextTry, record: &Record) -> CallError {
        let words = why.words();
        let cause = match self.last_cause() {
            // What an operator did says all. What failed before is none of it.
            Some(cause) if why != Refusal::OutOfService => format!("{words}; last error: {cause}"),
            _ => words.to_owned(),
        };
        let record = record.step(RecordStep::Cancel).unwrap_or(*record);
        let mut error = self.error(CallErrorKind::Refused(why), Phase::BeforeSending, cause, &record);
        // What is under way may still wait for its turn, which the error knows.
        if next != linetender_core::NextTry::Underway {
            error.next_try = NextTry::of(next, self.shared.clock);
        }
        if why == Refusal::OutOfService {
            error.stderr = None;
        }
        error
    }

    fn held_too_long(&self, record: &Record) -> CallError {
        let (waits, starting) = {
            let now = self.shared.published.borrow();
            let starting = match &now.connection {
                Connection::Starting(link) => Some(Arc::clone(link)),
                Connection::None | Connection::Live(_) | Connection::Over(_) => None,
            };
            (now.status.waits, starting)
        };
        // What it writes while it starts says more than why an earlier one ended.
        let written = starting.and_then(|link| Some((link.generation, link.reach.last_words()?)));
        let cause = match (&written, self.last_cause()) {
            (Some(_), _) => "the server is still starting".to_owned(),
            (None, last) => {
                let words = waits.cause().unwrap_or("the server was not ready in time");
                last.map_or_else(|| words.to_owned(), |last| format!("{words}; last error: {last}"))
            }
        };
        let record = record.step(RecordStep::Expire).unwrap_or(*record);
        let mut error = self.error(CallErrorKind::HeldTooLong, Phase::BeforeSending, cause, &record);
        if let Some((generation, written)) = written {
            error.stderr = Some(self.visible_stderr(generation, written.as_str()));
        }
        error
    }
}

/// Whether this is the error for a request that needs a capability which the client did not declare.
fn lacks_capability(error: &str) -> bool {
    Members::of(error).and_then(|members| Some(members.get("code")?.get() == "-32021")).unwrap_or_default()
}

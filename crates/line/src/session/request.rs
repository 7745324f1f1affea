//! One request of an agent's, from its words to the answer in them.
//!
//! A session runs each as a task of its own. A request that stands by itself, on a line that others share, needs no session:
//! nothing that such a line says by itself is for it, and dropping it takes it back.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;
use linetender_core::{Delivery, Evidence, Instant};
use linetender_wire::frame::{self, Frame, Kept, Message, Passed};
use linetender_wire::handshake::{Era, Greeting};
use linetender_wire::queue::{self, Receiver};
use tokio::sync::mpsc;

use super::hear::progress_to;
use super::rounds::{self, Round};
use super::subscriptions::Undone;
use super::text::Text;
use super::{WAITING_BYTES, bridge, replies, tasks};
use crate::basics::error::{CallError, CallErrorKind};
use crate::basics::kind::Kind;
use crate::basics::order::Place;
use crate::basics::params::Params;
use crate::basics::progress::OnProgress;
use crate::call::turns::{Caller, Guest};
use crate::call::{AgentContext, Options, Way};
use crate::line::Line;
use crate::outcome::{Here, Verdict};

/// A request, and what its session knows.
pub(super) struct Request {
    pub(super) line: Line,
    /// The agent's era.
    pub(super) era: Era,
    pub(super) id: Box<str>,
    pub(super) method: Box<str>,
    /// As they lie in the message that they came in.
    pub(super) params: Option<ByteString>,
    /// What is taken back if the server refuses it.
    pub(super) undone: Option<Undone>,
    /// What came with it, and lasts as long.
    pub(super) kept: Kept,
    /// From which level on the agent wants to see log messages.
    pub(super) level: Option<String>,
    /// What it says of itself to a modern server, as members of `_meta`.
    pub(super) introduction: Option<Arc<str>>,
    pub(super) promised: Arc<OnceLock<Arc<Greeting>>>,
    pub(super) progress: Option<OnProgress>,
    /// Whose turn it takes.
    pub(super) caller: Caller,
    /// The name of whom it is made for, if that is known.
    pub(super) principal: Option<Arc<str>>,
    /// Where a modern server's questions to a legacy agent go.
    pub(super) rounds: Option<mpsc::Sender<Round>>,
    /// Whether its params are a modern request's in all its words, and ask for no progress.
    pub(super) is_plain: bool,
    /// What the agent relies on in the server's memory, if it is known from one request to the next.
    pub(super) context: Option<AgentContext>,
    /// When the agent's session heard it.
    pub(super) arrived: Instant,
    /// Its place among the requests of that session.
    pub(super) place: Option<Place>,
}

/// The answer to a request, as the agent is to read it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replied {
    /// The message.
    pub text: Text,
    /// The code, if it is an error of the server's.
    pub error: Option<i64>,
}

/// How a request ended whose agent may be gone by then.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The answer.
    pub replied: Replied,
    /// Whether it was executed.
    pub delivery: Delivery,
}

/// Progress of one request that waits to be read, and how much it may weigh.
const STEPS: usize = 1024;
const BYTES_OF_STEPS: usize = 1024 * 1024;

/// A request that stands by itself, under way.
#[derive(Debug)]
pub struct Alone<F> {
    /// The answer. It goes as far as this is polled; dropping it takes the request back.
    pub reply: F,
    /// What the agent is to hear before that: notifications of progress, if it asked for them. Whoever reads them too slowly
    /// misses some.
    pub progress: Option<Receiver<Passed>>,
}

/// A modern agent's request that stands by itself, on a line that it shares; whoever lets it in has seen that its `_meta` says
/// what it must. `None` if it needs a session: because more than its answer and progress may come of it, or because it is no
/// request, or larger than the line's limits.
///
/// `of` is whose it is: requests of the same take turns as those of one agent.
pub fn ask(
    line: &Line,
    frame: &Frame,
    of: Guest,
) -> Option<Alone<impl Future<Output = Replied> + Send + use<>>> {
    let (asked, progress) = request(line, frame, of, Era::Modern)?;
    Some(Alone { reply: asked.answered(), progress })
}

/// The same of an agent of either era, with how it ended: for whoever keeps answers of agents that may be gone. What a modern server asks
/// a legacy agent back is not answered.
pub fn ask_for(
    line: &Line,
    frame: &Frame,
    of: Guest,
    era: Era,
) -> Option<Alone<impl Future<Output = Settled> + Send + use<>>> {
    let (asked, progress) = request(line, frame, of, era)?;
    Some(Alone { reply: asked.settled(), progress })
}

fn request(line: &Line, frame: &Frame, of: Guest, era: Era) -> Option<(Request, Option<Receiver<Passed>>)> {
    let Message::Request { id, method, params } = frame.message() else { return None };
    let alone = !matches!(method, "ping" | "initialize" | "subscriptions/listen");
    if !alone || !frame.is_within(crate::server::limits(line.policy())) {
        return None;
    }
    let (heard, progress) = Params::asks_for_progress(params)
        .then(|| queue::queue(STEPS, BYTES_OF_STEPS))
        .map(|(to, steps)| (progress_to(&to), steps))
        .unzip();
    let asked = Request {
        line: line.clone(),
        era,
        id: id.into(),
        method: method.into(),
        params: frame.params(),
        undone: None,
        kept: frame.kept(),
        level: None,
        introduction: None,
        promised: Arc::default(),
        is_plain: era == Era::Modern && heard.is_none(),
        progress: heard,
        caller: Caller::Known(of.who),
        principal: Some(of.name),
        rounds: None,
        context: None,
        arrived: line.now(),
        place: None,
    };
    Some((asked, progress))
}

impl Request {
    /// Its agent has sent more than can wait.
    pub(super) fn shed(&self) -> Bytes {
        let cause = format!("{} MiB of requests are already queued for this server", WAITING_BYTES >> 20);
        self.refused(&self.line.refused_before(CallErrorKind::Overloaded, cause))
    }

    /// Its turn did not come.
    pub(super) fn late(&self) -> Bytes {
        let cause = "timed out in the queue: earlier calls are still unanswered".to_owned();
        self.refused(&self.line.refused_before(CallErrorKind::TimedOut, cause))
    }

    fn refused(&self, error: &CallError) -> Bytes {
        let code = i64::from(error.code().number());
        self.ends_here(Verdict::NOT_SENT, Some(code));
        replies::failed(&self.line, &self.method, &self.id, error, self.era)
    }

    /// It ends without its line.
    fn ends_here(&self, verdict: Verdict, code: Option<i64>) {
        let Some(witness) = self.line.witness() else { return };
        let params = self.params.as_deref();
        let here = Here {
            method: &self.method,
            params,
            principal: self.principal.clone(),
            since: self.line.at(self.arrived),
        };
        here.ended(witness, verdict, code);
    }

    /// What linetender answers by itself, if it can.
    async fn answered_here(&self) -> Option<Replied> {
        let Self { line, era, id, method, params, promised, .. } = self;
        let (era, params) = (*era, params.as_deref());
        // It is the first request of many agents, and then nobody knows yet whether the server can read it.
        let quoted = era == Era::Modern
            && &**method == "server/discover"
            && (replies::era(line).await == Some(Era::Legacy) || !line.is_up());
        let listed = if line.is_up() { None } else { replies::listed(line, id, method, params, era) };
        let text = match (era, &**method, listed) {
            (Era::Legacy, "initialize", _) => replies::initialized(line, id, params, promised).await,
            (_, _, Some(listed)) => listed,
            _ if quoted => replies::discovered(line, id, promised).await,
            _ => {
                let refused = tasks::not_its(line, method, params, self.caller, era)?;
                let error = Some(replies::code(refused));
                self.ends_here(Verdict::NOT_SENT, error);
                return Some(Replied { text: frame::error_reply(id, refused).into(), error });
            }
        };
        self.ends_here(Verdict::Answered, None);
        Some(Replied { text: text.into(), error: None })
    }

    pub(super) async fn answered(self) -> Replied {
        self.settled().await.replied
    }

    async fn settled(self) -> Settled {
        if let Some(replied) = self.answered_here().await {
            return Settled { replied, delivery: Delivery::NotExecuted(Evidence::Queued) };
        }
        let Self {
            line,
            era,
            id,
            method,
            params,
            undone,
            kept,
            level,
            introduction,
            promised,
            progress,
            caller,
            principal,
            rounds,
            is_plain,
            context,
            arrived,
            place,
        } = self;
        let ours = |text: Bytes| Replied { text: text.into(), error: None };
        let (deadline, arrived) = (line.deadline(), Some(arrived));
        let options = Options {
            deadline,
            progress,
            caller,
            tasks: Some(tasks::owner(caller, era)),
            principal,
            way: Way::Carried,
            is_modern: is_plain,
            kept,
            context,
            arrived,
            place,
            ..Options::default()
        };
        // On a line of its own it was introduced by that, and on one that it shares no level is told.
        let params = match (level, introduction) {
            (Some(level), _) if line.era() == Some(Era::Modern) => {
                Some(bridge::with_log_level(params.as_deref(), &level).into())
            }
            (None, Some(meta)) if line.era() == Some(Era::Modern) => {
                Some(bridge::with_meta(params.as_deref(), &meta).into())
            }
            _ => params,
        };
        let call = rounds::Call { line: &line, method: &method, options, rounds: rounds.as_ref(), era };
        let first_page = Kind::asked_by(&method).and_then(|_| params.clone());
        let task = tasks::named(&method, params.as_deref());
        let outcome = call.run(params).await;
        let is_granted = outcome.as_ref().is_ok_and(|answer| answer.error().is_none());
        if let Some(undone) = undone.filter(|_| !is_granted) {
            undone.undo(&line);
        }
        if &*method == "server/discover"
            && let Some(greeting) = line.greeting()
        {
            let _ = promised.set(greeting);
        }
        let delivery = outcome.as_ref().map_or_else(|error| error.delivery, |_| Delivery::Answered);
        let replied = match outcome {
            Ok(answer) => {
                let broken = replies::broken(&line, &promised, &method, &id, &answer, era);
                let own = || tasks::own(&line, &method, &id, &answer, caller, era);
                let lost = || tasks::lost(&line, task.as_deref()?, &id, &answer);
                let none = || tasks::none(&line, task.as_deref()?, &id, &answer, caller);
                match broken.or_else(own).or_else(lost).or_else(none) {
                    Some(text) => ours(text),
                    None => Replied {
                        text: bridge::answer(&answer, era, &method, &id),
                        error: answer.error().map(replies::code),
                    },
                }
            }
            // A server that is down keeps its lists.
            Err(error) => ours(
                replies::listed(&line, &id, &method, first_page.as_deref(), era)
                    .unwrap_or_else(|| replies::failed(&line, &method, &id, &error, era)),
            ),
        };
        Settled { replied, delivery }
    }
}

//! What the agent says, what the server says, and what becomes of it.

use std::sync::Arc;

use bytes::Bytes;
use linetender_core::Generation;
use linetender_wire::frame::{self, Frame, Message, Passed, Routing};
use linetender_wire::handshake::Era;
use linetender_wire::seam::Refused;
use linetender_wire::{About, Item, Steady, queue, test_hooks};

use super::questions::Asker;
use super::request::Request;
use super::rounds::Round;
use super::subscriptions::Wished;
use super::{Open, SPARE_TASKS, Session, Waits};
use crate::audience::{FromServer, in_words_of, too_many_questions};
use crate::audience::{TASK_CHANGED, UPDATED};
use crate::basics::kind::Kind;
use crate::basics::params::Params;
use crate::basics::progress::OnProgress;
use crate::line::Event;
use crate::server::Deadline;

/// Something to hear.
pub(super) enum Heard {
    Agent(Item),
    Server(FromServer),
    Changed(Kind),
    Round(Round),
    /// Whatever asked a question in this generation, or in one before, is gone.
    Gone(Generation),
    /// The task of one of the agent's requests, or another of the session's.
    Panicked(tokio::task::Id),
    /// The line is over for good: its server was taken away, or is another now.
    Over,
}

impl Open {
    pub(super) async fn next(&mut self) -> Heard {
        tokio::select! {
            Some(said) = self.said.recv(), if self.waits.is_none() => Heard::Server(said),
            event = self.events.next(), if !self.over => match event {
                Some(Event::Changed(kind, _)) => Heard::Changed(kind),
                Some(Event::State(status)) => Heard::Gone(status.last_ended()),
                Some(
                    Event::Missed(_) | Event::Ended { .. } | Event::Left(_) | Event::ContainerLeft { .. },
                ) => {
                    Heard::Gone(self.line.status().last_ended())
                }
                None => {
                    self.over = true;
                    Heard::Over
                }
            },
            else => std::future::pending().await,
        }
    }
}

impl Session {
    pub(super) async fn hear(&mut self, said: Heard) {
        if let Heard::Agent(Item::Frame(frame)) = &said {
            self.heard = Some(frame.clone());
        }
        test_hooks::point("session");
        match said {
            Heard::Agent(item) => self.hear_agent(item).await,
            Heard::Server(said) => {
                for text in self.heard_from_server(&said) {
                    self.tell(text).await;
                }
            }
            Heard::Changed(kind) => self.changed(kind).await,
            Heard::Round(round) => self.ask(round).await,
            Heard::Gone(generation) => {
                let open = self.open.as_mut();
                let numbers = open.map(|open| open.questions.orphaned(generation)).unwrap_or_default();
                for number in numbers {
                    self.tell(taken_back(number)).await;
                }
            }
            Heard::Panicked(task) => self.request_panicked(task).await,
            Heard::Over => {
                let ends = self.open.as_mut().map(|open| open.subscriptions.end()).unwrap_or_default();
                for text in ends {
                    self.tell(text).await;
                }
            }
        }
        self.heard = None;
    }

    pub(super) async fn tell(&self, text: impl Into<Passed>) {
        // An agent that does not read its stream holds up itself alone; that its end is deaf is found by the writer.
        let _ = self.to_agent.send(text.into().one_line()).await;
    }

    async fn hear_agent(&mut self, item: Item) {
        self.sweep();
        let frame = match item {
            Item::Frame(frame) => frame,
            Item::Noise(_) => return,
            Item::Unreadable { about, bad, .. } => return self.unreadable(&about, &bad).await,
        };
        match frame.message() {
            Message::Request { id, method: "ping", .. } => self.tell(frame::reply(id, "{}")).await,
            Message::Request { id, method, params } => {
                if method != "initialize" {
                    self.listens().await;
                }
                if let Some(text) = self.request((id, method, params), &frame) {
                    self.tell(text).await;
                }
            }
            Message::Notification { method: "notifications/initialized", .. } => self.listens().await,
            Message::Notification { method: "notifications/cancelled", params } => self.cancel(params),
            // On a shared line nobody's notification speaks for all.
            Message::Notification { method, .. }
                if self.open.as_ref().is_some_and(|open| open.listener.is_some())
                    && !may_be_passed(method) => {}
            // MCP 2026-07-28 has neither; a modern server could only refuse it.
            Message::Notification {
                method: "notifications/roots/list_changed" | "notifications/progress",
                ..
            } if self.open.as_ref().is_some_and(|open| open.line.era() == Some(Era::Modern)) => {}
            Message::Notification { .. } => self.tell_server(frame),
            Message::Response { .. } => self.answer(&frame),
        }
    }

    /// The agent's handshake is complete: it says so, or asks for something. It is told what waited for that.
    async fn listens(&mut self) {
        let Some(Waits { hears, changed }) = self.open.as_mut().and_then(|open| open.waits.take()) else {
            return;
        };
        loop {
            let said = self.open.as_mut().and_then(|open| open.said.try_recv().ok());
            if let Some(said) = said {
                for text in self.heard_from_server(&said) {
                    self.tell(text).await;
                }
                continue;
            }
            let mut hears = hears.lock();
            if self.open.as_ref().is_none_or(|open| open.said.is_empty()) {
                *hears = true;
                break;
            }
        }
        for kind in changed {
            self.changed(kind).await;
        }
    }

    /// Takes out requests that are over; not at each message, since there may be thousands.
    fn sweep(&mut self) {
        if self.running.len() >= self.sweep_at {
            self.running.retain(|_, task| !task.is_finished());
            self.sweep_at = SPARE_TASKS.max(2 * self.running.len());
        }
    }

    async fn unreadable(&self, about: &About, bad: &frame::Bad) {
        let id = match about {
            About::Question(Some(id)) => id,
            About::Question(None) | About::Answer(_) => return,
            About::Unknown => "null",
        };
        let error = serde_json::json!({ "code": -32600, "message": format!("the message is {bad}") });
        self.tell(frame::error_reply(id, &error.to_string())).await;
    }

    /// Passes a notification on. It never overtakes a call that the agent sent before it: the server may know what it is about only
    /// from that call. Whoever was greeted may take it that the server hears what it says: while the server starts, that waits as
    /// a call does.
    fn tell_server(&mut self, frame: Frame) {
        let Some(open) = &self.open else { return };
        let line = open.line.clone();
        let arrival = self.order.arrive();
        if arrival.is_next() && line.is_up() && line.tell(frame.clone(), None).is_ok() {
            return;
        }
        let waiting = match self.backlog.as_ref().map(|backlog| backlog.enter(frame.text().len())) {
            Some(None) => {
                tracing::warn!(server = line.name(), "notification dropped: too much waits for this server");
                return;
            }
            waiting => waiting.flatten(),
        };
        self.tasks.spawn(arrival.follow(async move {
            if line.ready().await.is_ok() {
                line.tell_surely(frame.into(), None).await;
            }
            drop(waiting);
        }));
    }

    /// Passes on the answer to a question of this generation. It waits for no call: a call may wait for it.
    fn answer_server(&mut self, frame: Frame, asker: Generation) {
        let Some(open) = &self.open else { return };
        match open.line.tell(frame.clone(), Some(asker)) {
            // The agent is gone.
            Ok(()) | Err(Refused::Sealed) => {}
            Err(Refused::Full) => {
                let line = open.line.clone();
                self.tasks.spawn(async move { line.tell_surely(frame.into(), Some(asker)).await });
            }
        }
    }

    /// A request of the agent's: what can be answered at once, or a task that will answer it.
    fn request(&mut self, (id, method, params): (&str, &str, Option<&str>), frame: &Frame) -> Option<Bytes> {
        let line = self.line(method, params);
        let open = self.open.as_mut()?;
        let (other, undone) = match open.answer_locally(id, method, params) {
            Wished::Answered(answer) => return Some(answer),
            Wished::Asked { params, undone } => (params, undone),
        };
        // One that did not ask for progress must not get any: some agents hang up on it.
        let progress = Params::asks_for_progress(params).then(|| progress_to(&self.to_agent));
        let arrival = self.order.arrive();
        let asked = Request {
            arrived: line.now(),
            place: Some(arrival.place()),
            line,
            era: open.era,
            id: id.into(),
            method: method.into(),
            params: other.map(Into::into).or_else(|| frame.params()),
            undone,
            kept: frame.kept(),
            level: open.level.clone(),
            introduction: open.introduction.clone(),
            promised: Arc::clone(&open.promised),
            progress,
            caller: open.caller,
            principal: open.principal.clone(),
            rounds: Some(self.rounds.0.clone()),
            is_plain: false,
            context: Some(self.context.clone()),
        };
        // The calls before it have ended by then, or its own time is over.
        let policy = asked.line.policy().call;
        let longest = match asked.line.deadline() {
            Deadline::Agent => policy.hang_after,
            ours => ours.limits(&policy).1,
        };
        let length = method.len() + params.map_or(0, str::len);
        let waiting = match self.backlog.as_ref().map(|backlog| backlog.enter(length)) {
            Some(None) => return Some(asked.shed()),
            waiting => waiting.flatten(),
        };
        let to_agent = self.to_agent.clone();
        let task = self.tasks.spawn(Steady::new(Box::pin(async move {
            let mut turn = None;
            let answered = async {
                if let Some(waiting) = waiting {
                    turn = waiting.turn(longest).await;
                    if turn.is_none() {
                        return asked.late().into();
                    }
                }
                test_hooks::point("request");
                asked.answered().await.text
            };
            let text = arrival.run(answered).await;
            // It has its turn until its answer has room: an agent that does not read holds up its own calls.
            let _ = to_agent.send(text.whole().one_line()).await;
            drop(turn);
        })));
        self.running.insert(id.into(), task);
        None
    }

    /// The agent wants no answer any more: dropping the call tells the server.
    fn cancel(&mut self, params: Option<&str>) {
        let routing = Routing::of("notifications/cancelled", params).ok();
        let Some(id) = routing.and_then(|routing| routing.request_id) else { return };
        let call = self.running.remove(id.get());
        let Some(open) = &mut self.open else { return };
        match call {
            Some(call) if !call.is_finished() => call.abort(),
            // The answer and the cancellation have crossed.
            _ => self.context.was_not_told(open.line.now()),
        }
        open.unlisten(id.get());
    }

    /// The agent answers a question: of the server's, if the one that asked still lives, or of a call of its own.
    fn answer(&mut self, frame: &Frame) {
        let Some(open) = &mut self.open else { return };
        match frame.response_number().and_then(|number| open.questions.answered(number)) {
            Some(Asker::Server(generation, id, _)) => {
                self.answer_server(frame.with_id(&id), generation);
            }
            Some(Asker::Round(answer)) => drop(answer.send(frame.clone())),
            None => {}
        }
    }

    async fn changed(&mut self, kind: Kind) {
        let Some(open) = &mut self.open else { return };
        if let Some(waits) = &mut open.waits {
            waits.changed.insert(kind);
            return;
        }
        match open.era {
            Era::Legacy => self.tell(frame::notification(kind.notification(), None)).await,
            Era::Modern => {
                for text in open.subscriptions.changed(kind) {
                    self.tell(text).await;
                }
            }
        }
    }

    /// What the server asks, takes back, or says to streams of the agent's, as the agent is to read it.
    fn heard_from_server(&mut self, FromServer { generation, frame, question }: &FromServer) -> Vec<Passed> {
        let Some(open) = &mut self.open else { return Vec::new() };
        match frame.message() {
            Message::Request { id, .. } => {
                // One whose end has begun hears no answer; its calls may have been told already.
                if open.questions.is_gone(*generation) || !open.line.hears(*generation) {
                    return Vec::new();
                }
                let number = open.questions.ask(Asker::Server(*generation, id.into(), question.clone()));
                if number.is_none() {
                    // If it does not read either, it is not told: nothing may pile up for it.
                    let refusal = frame::error_reply(id, &too_many_questions());
                    let _ = open.line.tell(refusal, Some(*generation));
                }
                number.map(|number| frame.with_id(&number.to_string()).into()).into_iter().collect()
            }
            Message::Notification { method: UPDATED, params: Some(params) } => {
                open.subscriptions.updated(frame, params).map(Into::into).collect()
            }
            Message::Notification { method: TASK_CHANGED, params: Some(params) } => {
                open.subscriptions.task_changed(frame, params).map(Into::into).collect()
            }
            Message::Notification { method: method @ "notifications/cancelled", params: Some(params) } => {
                let params = open.questions.taken_back(*generation, params);
                params.map(|params| frame::notification(method, Some(&params)).into()).into_iter().collect()
            }
            // It waited for the agent's handshake.
            Message::Notification { params, .. } => vec![in_words_of(open.era, frame, params)],
            Message::Response { .. } => Vec::new(),
        }
    }

    /// A call of the agent's needs something from it before it can go on.
    async fn ask(&mut self, round: Round) {
        let Some(open) = &mut self.open else { return };
        let Round { method, params, answer } = round;
        // If too many are open the call is told by its sender being gone.
        if let Some(number) = open.questions.ask(Asker::Round(answer)) {
            self.tell(frame::request(number, &method, params.as_deref())).await;
        }
    }
}

/// Whether an agent on a line that it shares may notify the server of this: not of what is known to be about it alone, nor of a request
/// that was sent as a notification.
#[doc(hidden)] // for linetender's gateway
pub fn may_be_passed(method: &str) -> bool {
    let known = [
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/message",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/tasks/status",
    ];
    method.starts_with("notifications/") && !known.contains(&method)
}

/// The agent need not answer this question: whoever asked it is gone.
// MCP 2025-11-25, "Cancellation": either side may take back a request that it issued.
fn taken_back(number: u64) -> Bytes {
    let params = format!(
        r#"{{"requestId":{number},"reason":"linetender: the server that sent this request is gone"}}"#
    );
    frame::notification("notifications/cancelled", Some(&params))
}

/// Tells the agent of progress.
pub(super) fn progress_to(agent: &queue::Sender<Passed>) -> OnProgress {
    let agent = agent.clone();
    Arc::new(move |params| {
        let text = frame::notification("notifications/progress", Some(params));
        // An agent that reads too slowly misses some; never an answer.
        let _ = agent.try_send(frame::one_line(text).into());
    })
}

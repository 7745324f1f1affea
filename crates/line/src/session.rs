//! One agent's view of a line: frames in, frames out, for as long as the agent lives.
//!
//! The agent's connection outlives every generation behind it. Its `initialize` is answered once; after that a server
//! may die as often as it likes: each call gets its answer, or an error that says what happened.

mod agent;
mod questions;
mod replies;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use linetender_core::Generation;
use linetender_wire::frame::{self, Frame, Message};
use linetender_wire::handshake::{Era, Eras, Hello};
use linetender_wire::{About, Item, Lines, queue};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{broadcast, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use crate::call::{Deadline, Options, Params};
use crate::catalogue::Kind;
use crate::clock::duration;
use crate::ledger::{Agent, FromServer};
use crate::line::{Event, Line};
use crate::rig::Rig;
use crate::server::Server;
use questions::Questions;
pub(crate) use replies::TOO_MANY_QUESTIONS;

/// Frames that wait to be read by the agent, and how much they may weigh.
const TO_AGENT: usize = 1024;
const BYTES_TO_AGENT: usize = 64 * 1024 * 1024;

/// More work than a line takes at once: an agent that has so much open reads no answers, and is not read either.
const SPARE_TASKS: usize = 64;

/// How long calls under way may still be answered after the agent stopped asking.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
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
}

/// Serves one agent on these pipes until it goes, or until `stop`; then the server goes too, politely.
///
/// The agent owns the deadline of its calls. Its capabilities and its name go to the server, and the server's requests
/// come to it: it is the only agent on this line.
pub async fn serve<R, W>(
    server: Server,
    rig: &Rig,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
) -> Ended
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let limits = server.policy.settings().limits;
    let most_tasks = usize::from(limits.in_flight) + usize::from(limits.queue) + SPARE_TASKS;
    let limits = frame::Limits { length: limits.message as usize, depth: limits.depth.into() };
    let (to_agent, frames) = queue::queue(TO_AGENT, BYTES_TO_AGENT);
    let mut tasks = JoinSet::new();
    let writer = tasks.spawn(agent::write(output, frames));
    let mut agent = agent::Reader::new(input, Lines::new(limits));
    let mut session =
        Session { server, rig: rig.clone(), to_agent, tasks, running: HashMap::new(), open: None };
    let mut stop = std::pin::pin!(stop);
    let ended = loop {
        let said = async {
            match &mut session.open {
                Some(open) => open.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            item = agent.next(), if session.tasks.len() < most_tasks => match item {
                Some(item) => {
                    // An agent that does not read holds up itself, and must not hold up the end.
                    tokio::select! {
                        () = session.hear_agent(item) => {}
                        () = &mut stop => break Ended::Stopped,
                    }
                }
                None => break Ended::AgentGone,
            },
            said = said => {
                tokio::select! {
                    () = session.hear_server(said) => {}
                    () = &mut stop => break Ended::Stopped,
                }
            }
            Some(done) = session.tasks.join_next_with_id() => {
                if done.is_ok_and(|(id, ())| id == writer.id()) {
                    break Ended::AgentDeaf;
                }
            }
            () = &mut stop => break Ended::Stopped,
        }
    };
    session.end(ended).await;
    ended
}

struct Session {
    server: Server,
    rig: Rig,
    to_agent: queue::Sender<Bytes>,
    tasks: JoinSet<()>,
    /// The agent's requests that are under way, by their id as it was spelt.
    running: HashMap<Box<str>, AbortHandle>,
    open: Option<Open>,
}

/// The line, once the agent has said who it is.
struct Open {
    line: Line,
    said: mpsc::Receiver<FromServer>,
    events: broadcast::Receiver<Event>,
    questions: Questions,
}

/// Something for the agent.
enum Said {
    Server(FromServer),
    Changed(Kind),
}

impl Open {
    async fn next(&mut self) -> Said {
        loop {
            tokio::select! {
                Some(said) = self.said.recv() => return Said::Server(said),
                event = self.events.recv() => match event {
                    Ok(Event::Changed(kind, _)) => return Said::Changed(kind),
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }
}

impl Session {
    async fn tell(&self, text: Bytes) {
        // An agent that does not read its stream holds up itself alone; that its end is deaf is found by the writer.
        let _ = self.to_agent.send(frame::one_line(text)).await;
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

    async fn hear_agent(&mut self, item: Item) {
        self.running.retain(|_, task| !task.is_finished());
        let frame = match item {
            Item::Frame(frame) => frame,
            Item::Noise(_) => return,
            Item::Unreadable { about, bad, .. } => return self.unreadable(&about, &bad).await,
        };
        match frame.message() {
            Message::Request { id, method: "ping", .. } => self.tell(frame::reply(id, "{}")).await,
            Message::Request { id, method, params } => self.request(id, method, params),
            Message::Notification { method: "notifications/initialized", .. } => {}
            Message::Notification { method: "notifications/cancelled", params } => self.cancel(params),
            Message::Notification { .. } => {
                self.tell_server(frame.text().clone(), None);
            }
            Message::Response { .. } => self.answer(&frame),
        }
    }

    fn tell_server(&mut self, text: Bytes, only: Option<Generation>) {
        let Some(open) = &self.open else { return };
        if !open.line.tell(text.clone(), only) {
            let line = open.line.clone();
            self.tasks.spawn(async move { line.tell_surely(text, only).await });
        }
    }

    fn request(&mut self, id: &str, method: &str, params: Option<&str>) {
        let line = self.line(method, params);
        let (to_agent, id, method) = (self.to_agent.clone(), Box::<str>::from(id), method.to_owned());
        // One that did not ask for progress must not get any: some agents hang up on it.
        let asks_for_progress = Params::of(params).token().is_some();
        let params = params.map(str::to_owned);
        let key = id.clone();
        let task = self.tasks.spawn(async move {
            let text = if method == "initialize" {
                replies::initialized(&line, &id).await
            } else {
                let progress = to_agent.clone();
                let options = Options::default().deadline(Deadline::Agent);
                let options = if asks_for_progress {
                    options.on_progress(move |params| {
                        let text = frame::notification("notifications/progress", Some(params));
                        // An agent that reads too slowly misses some; never an answer.
                        let _ = progress.try_send(frame::one_line(text));
                    })
                } else {
                    options
                };
                match line.request(&method, params.as_deref(), options).await {
                    Ok(answer) => answer.with_id(&id),
                    Err(error) => replies::failed(&method, &id, &error),
                }
            };
            let _ = to_agent.send(frame::one_line(text)).await;
        });
        self.running.insert(key, task);
    }

    /// The line; the agent's first request says in which era it is spoken for.
    fn line(&mut self, method: &str, params: Option<&str>) -> Line {
        if let Some(open) = &self.open {
            return open.line.clone();
        }
        let legacy = method == "initialize";
        let server = self.server.clone().eras(Eras::Only(if legacy { Era::Legacy } else { Era::Modern }));
        let server = match params {
            Some(params) if legacy => server.hello(Hello::Agent(params.into())),
            _ => server,
        };
        let (tell, said) = mpsc::channel(TO_AGENT);
        let agent = Agent { said: tell, direct: self.to_agent.clone() };
        let line = Line::on(server, self.rig.dial_gate(), Some(agent), None);
        line.wake();
        let events = line.events();
        self.open = Some(Open { line: line.clone(), said, events, questions: Questions::default() });
        line
    }

    /// The agent wants no answer any more: dropping the call tells the server.
    fn cancel(&mut self, params: Option<&str>) {
        #[derive(serde::Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a serde_json::value::RawValue,
        }
        let cancelled: Option<Cancelled<'_>> = params.and_then(|params| serde_json::from_str(params).ok());
        if let Some(task) = cancelled.and_then(|cancelled| self.running.remove(cancelled.id.get())) {
            task.abort();
        }
    }

    /// The agent answers a question of the server's: the one that asked, if it still lives.
    fn answer(&mut self, frame: &Frame) {
        let Some(open) = &mut self.open else { return };
        let question = frame.response_number().and_then(|number| open.questions.answered(number));
        if let Some((generation, id)) = question {
            self.tell_server(frame.with_id(&id), Some(generation));
        }
    }

    async fn hear_server(&mut self, said: Said) {
        let text = match said {
            Said::Changed(kind) => frame::notification(kind.notification(), None),
            Said::Server(said) => match self.question(said) {
                Some(text) => text,
                None => return,
            },
        };
        self.tell(text).await;
    }

    /// What the server asks, or takes back, as the agent is to read it.
    fn question(&mut self, FromServer { generation, frame }: FromServer) -> Option<Bytes> {
        let questions = &mut self.open.as_mut()?.questions;
        match frame.message() {
            Message::Request { id, .. } => {
                let number = questions.ask(generation, id);
                if number.is_none()
                    && let Some(open) = &self.open
                {
                    // If it does not read either, it is not told: nothing may pile up for it.
                    open.line.tell(frame::error_reply(id, TOO_MANY_QUESTIONS), Some(generation));
                }
                Some(frame.with_id(&number?.to_string()))
            }
            Message::Notification { method, params: Some(params) } => {
                let params = questions.taken_back(generation, params)?;
                Some(frame::notification(method, Some(&params)))
            }
            Message::Notification { .. } | Message::Response { .. } => None,
        }
    }

    /// Answers that are on their way still reach an agent that only stopped asking; then everything goes.
    async fn end(self, why: Ended) {
        let Self { mut tasks, running, to_agent, open, .. } = self;
        if why == Ended::AgentGone {
            let answered = async {
                while running.values().any(|task| !task.is_finished()) {
                    tasks.join_next().await;
                }
            };
            let _ = tokio::time::timeout(LAST_ANSWERS, answered).await;
        }
        running.values().for_each(AbortHandle::abort);
        drop(to_agent);
        // A tree that will not die is left to its reaper.
        if let Some(open) = open {
            let limit = duration(open.line.policy().close.worst()) + LAST_WORDS;
            let _ = tokio::time::timeout(limit, open.line.close()).await;
        }
        let _ = tokio::time::timeout(LAST_WORDS, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.abort_all();
    }
}

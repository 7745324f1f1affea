//! Carrying what was decided: one task per agent, one way to each server that it uses.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use linetender::AgentContext;
use linetender::session::Agent;
use linetender_wire::frame::{self, Frame, Message, Passed};
use linetender_wire::{caught, caught_now, queue, test_hooks};
use tokio::sync::{mpsc, watch};

use super::acts::Act;
use super::durable::{self, Asker, Waits};
use super::{OPEN, State};
use crate::ends::Ended;
use crate::failed::{Failed, Full};
use crate::gateway::Gateway;
use crate::kept::Of;
use crate::listing::{Endpoint, Listing, Route, View};
use crate::principal::Visitor;
use crate::tasks::OwnTasks;

/// Frames that wait to be read by the agent, and how much they may weigh.
const TO_AGENT: usize = 1024;
const BYTES_TO_AGENT: usize = 64 * 1024 * 1024;

/// Servers that are not configured any more, and whose contexts are remembered in case they come back.
const CONTEXTS_OF_OTHERS: usize = 64;

/// Frames that an agent may hand over before it has to wait.
const FROM_AGENT: usize = 64;

/// How long calls under way may still be answered after the agent stopped asking, if the settings leave them so much.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// A way to one server.
struct Pipe {
    to: u64,
    server: Arc<str>,
    agent: Agent,
    /// The largest result that is passed on as it is, also if the server has gone from the config.
    limit: Option<usize>,
}

struct Mux {
    gateway: Gateway,
    endpoint: Endpoint,
    visitor: Visitor,
    state: State,
    view: Arc<View>,
    listing: watch::Receiver<Arc<Listing>>,
    pipes: VecDeque<Pipe>,
    /// What the agent relies on in the memory of each server. It outlives a reload of the server's configuration.
    contexts: HashMap<Arc<str>, AgentContext>,
    /// Calls that outlive the agent.
    waits: Waits,
    to_agent: queue::Sender<Passed>,
    limits: frame::Limits,
    /// What the agent said, until it is known what to do about it: if that panics, it still has to be answered.
    heard: Option<Frame>,
    tasks: Forgets,
}

/// When the agent is gone, so are the tasks that nobody else can ask for.
struct Forgets(OwnTasks);

impl Drop for Forgets {
    fn drop(&mut self) {
        self.0.gone();
    }
}

/// An agent at this endpoint, in this process.
#[expect(clippy::disallowed_methods, reason = "it ends with the agent's end, which its owner holds")]
pub(crate) fn open(gateway: Gateway, endpoint: Endpoint, visitor: Visitor) -> Agent {
    let (to_agent, from) = queue::queue(TO_AGENT, BYTES_TO_AGENT);
    let (to, said) = mpsc::channel(FROM_AGENT);
    let mut mux = Mux::new(gateway, endpoint, visitor, to_agent);
    tokio::spawn(async move {
        if caught(mux.run(said)).await.is_err() {
            mux.broken().await;
        }
    });
    Agent { to, from }
}

impl Mux {
    fn new(gateway: Gateway, endpoint: Endpoint, visitor: Visitor, to_agent: queue::Sender<Passed>) -> Self {
        let mut listing = gateway.listing();
        let view = view(&listing.borrow_and_update(), &endpoint, &visitor);
        let limits = gateway.settings().limits();
        let tasks = gateway.tasks_of(&visitor);
        let state = State::with(tasks.clone());
        view.wake();
        let (pipes, waits) = (VecDeque::new(), Waits::default());
        let heard = None;
        let tasks = Forgets(tasks);
        Self {
            gateway,
            endpoint,
            visitor,
            state,
            view,
            listing,
            pipes,
            contexts: HashMap::new(),
            waits,
            to_agent,
            limits,
            heard,
            tasks,
        }
    }

    async fn run(&mut self, mut said: mpsc::Receiver<Passed>) {
        loop {
            tokio::select! {
                text = said.recv() => match text {
                    Some(said) => self.agent_said(said).await,
                    None => return self.last_answers().await,
                },
                (to, text) = next(&mut self.pipes) => self.line_said(to, text).await,
                text = self.waits.next(self.state.is_modern()) => self.tell(text).await,
                changed = self.listing.changed() => match changed {
                    Ok(()) => self.changed().await,
                    Err(_) => return,
                },
                () = self.to_agent.closed() => return self.gone().await,
            }
        }
    }

    /// An agent that only stopped asking still hears what it asked for, or that it cannot be waited for; one that is gone does
    /// not listen either.
    async fn last_answers(&mut self) {
        let drain = Duration::from_millis(self.gateway.settings().drain);
        let end = tokio::time::Instant::now() + drain.min(LAST_ANSWERS);
        while !self.state.is_idle() || self.waits.len() > 0 {
            tokio::select! {
                (to, text) = next(&mut self.pipes) => self.line_said(to, text).await,
                text = self.waits.next(self.state.is_modern()) => self.tell(text).await,
                () = self.to_agent.closed() => return self.gone().await,
                () = tokio::time::sleep_until(end) => {
                    for text in self.waits.cut(self.state.is_modern()) {
                        self.tell(text).await;
                    }
                    let acts = self.state.cut();
                    return self.act(acts, None).await;
                }
            }
        }
    }

    /// Whatever is under way is taken back: dropping the ways to its servers alone would leave it its time.
    async fn gone(&mut self) {
        let acts = self.state.gone();
        self.act(acts, None).await;
    }

    /// Tells every open request that it cannot be answered, the one whose handling panicked too. Then the agent's end is closed.
    async fn broken(&mut self) {
        let mut told = caught_now(|| self.state.broken()).unwrap_or_default();
        if let Some(Message::Request { id, method, .. }) = self.heard.as_ref().map(Frame::message) {
            told.push(Act::Tell(Failed::broken().reply(id, method, false).into()));
        }
        let tell = async {
            for act in told {
                if let Act::Tell(text) = act {
                    self.tell(text).await;
                }
            }
        };
        let _ = tokio::time::timeout(LAST_ANSWERS, tell).await;
    }

    async fn agent_said(&mut self, said: Passed) {
        let frames = match said {
            // Whoever handed it over has read it, within the same limits.
            Passed::Frame(frame) => Ok(vec![frame]),
            Passed::Text(text) => frame::parse_all(&text, self.limits),
        };
        match frames {
            Ok(frames) => {
                for frame in frames {
                    self.heard = Some(frame.clone());
                    test_hooks::point("mux");
                    let Some(frame) = self.waits.heard(frame).filter(|frame| !self.asks_durably(frame))
                    else {
                        self.heard = None;
                        continue;
                    };
                    let modern = self.state.is_modern();
                    let kept = self.gateway.kept_results();
                    let acts = match kept.read(&frame, &self.view, &self.visitor.principal, modern) {
                        Some((reply, ended)) => vec![Act::End(reply.into(), ended)],
                        None => self.state.agent_said(&frame, &self.view),
                    };
                    self.heard = None;
                    self.act(acts, Some(&frame)).await;
                }
                self.sweep();
            }
            Err(bad) => {
                let error = serde_json::json!({ "code": -32600, "message": format!("the message is {bad}") });
                self.tell(frame::error_reply("null", &error.to_string())).await;
            }
        }
    }

    /// Whether the agent asks for a call that outlives it. It is waited for then.
    fn asks_durably(&mut self, frame: &Frame) -> bool {
        let Message::Request { id, .. } = frame.message() else { return false };
        let is_full = self.waits.len() >= OPEN;
        let tasks = &self.tasks.0;
        let (gateway, view, visitor, era) = (&self.gateway, &*self.view, &self.visitor, self.state.era());
        let asker = Asker { gateway, view, visitor, tasks, era, is_full };
        let Some(asked) = durable::ask(&asker, frame) else { return false };
        self.waits.add(id, asked, self.to_agent.clone());
        true
    }

    async fn line_said(&mut self, from: u64, said: Option<Passed>) {
        let acts = if let Some(said) = said {
            said.into_frame().map(|frame| self.heard_line(from, &frame)).unwrap_or_default()
        } else {
            let Some(at) = self.pipes.iter().position(|pipe| pipe.to == from) else { return };
            let gone = self.pipes.remove(at);
            gone.map(|pipe| self.state.lost(from, &pipe.server)).unwrap_or_default()
        };
        self.act(acts, None).await;
        self.sweep();
    }

    /// What a line says leads to this; its results are no larger than they may be.
    fn heard_line(&mut self, from: u64, frame: &Frame) -> Vec<Act> {
        let mut acts = self.state.line_said(from, frame, &self.view);
        let limit = self.pipes.iter().find(|pipe| pipe.to == from).and_then(|pipe| pipe.limit);
        if let (Some(limit), Message::Response { .. }) = (limit, frame.message()) {
            let of = Of { principal: &self.visitor.principal, berth: from, limit };
            for act in &mut acts {
                if let Act::Tell(Passed::Frame(answer)) = act {
                    *answer = self.gateway.kept_results().cut(answer.clone(), of);
                }
            }
        }
        acts
    }

    /// Does what was decided, about a message of the agent if there is one.
    async fn act(&mut self, acts: Vec<Act>, heard: Option<&Frame>) {
        for act in acts {
            match act {
                Act::Tell(text) => self.tell(text).await,
                Act::End(text, ended) => self.end(text, ended, heard).await,
                Act::Ask { to, id, frame } => {
                    if let Err(failed) = self.hand(to, frame.into()) {
                        let server = self.view.route(to).map(|route| route.berth.name());
                        let (text, ended) = self.state.not_taken(&id, &failed.of(server));
                        self.end(text.into(), ended, heard).await;
                    }
                }
                Act::Say(to, text) => {
                    let _ = self.hand(to, text);
                }
                Act::IfOpen(to, text) => {
                    if let Some(pipe) = self.pipes.iter().find(|pipe| pipe.to == to) {
                        // A line that takes nothing more has hundreds of calls open, and each has its end.
                        let _ = pipe.agent.to.try_send(text);
                    }
                }
            }
        }
    }

    /// What the agent asked ends here.
    async fn end(&self, text: Passed, ended: Ended, heard: Option<&Frame>) {
        if let Some(asked) = heard {
            self.gateway.ends().saw(asked, &self.visitor.principal, ended);
        }
        self.tell(text).await;
    }

    /// Hands something to a server. One that takes nothing must not hold up the others: then why not.
    fn hand(&mut self, to: u64, text: Passed) -> Result<(), Failed> {
        if !self.pipes.iter().any(|pipe| pipe.to == to) {
            let route = self.view.route(to).cloned().ok_or_else(Failed::nowhere)?;
            self.open_pipe(&route)?;
        }
        let pipe = self.pipes.iter().find(|pipe| pipe.to == to).ok_or_else(Failed::nowhere)?;
        pipe.agent.to.try_send(text).map_err(|not_taken| match not_taken {
            mpsc::error::TrySendError::Full(_) => Failed::full(Full::Requests),
            mpsc::error::TrySendError::Closed(_) => Failed::not_handed(),
        })
    }

    fn open_pipe(&mut self, route: &Route) -> Result<(), Failed> {
        let (to, server): (_, Arc<str>) = (route.berth.number, Arc::from(route.berth.name()));
        let context = self.contexts.entry(Arc::clone(&server)).or_default().clone();
        let agent =
            self.gateway.pipe(route, &self.visitor, &context).ok_or_else(|| Failed::full(Full::Lines))?;
        for text in self.state.opening(to, &server) {
            // It is new, and has room for more than these.
            let _ = agent.to.try_send(text.into());
        }
        self.pipes.push_back(Pipe { to, server, agent, limit: route.berth.entry.result_limit });
        Ok(())
    }

    /// Servers have come, gone or changed, or what they offer has.
    async fn changed(&mut self) {
        let now = view(&self.listing.borrow_and_update(), &self.endpoint, &self.visitor);
        let before = std::mem::replace(&mut self.view, now);
        for pipe in &mut self.pipes {
            if let Some(route) = self.view.route(pipe.to) {
                pipe.limit = route.berth.entry.result_limit;
            }
        }
        let texts = self.state.changed(&before, &self.view);
        for text in texts {
            self.tell(text).await;
        }
        for route in self.view.routes.clone() {
            let known = self.pipes.iter().any(|pipe| pipe.to == route.berth.number);
            if !known && self.state.listens_to(route.berth.name()) {
                // Where there is no room for a line, there is nothing to hear from it.
                let _ = self.open_pipe(&route);
            }
        }
        self.sweep();
    }

    /// Ways to servers that are no more, once nothing is under way there.
    fn sweep(&mut self) {
        let (view, state) = (&self.view, &self.state);
        self.pipes.retain(|pipe| view.route(pipe.to).is_some() || state.is_busy(pipe.to));
        // A server that comes back under its name has lost what it kept; not for ever, though.
        if self.contexts.len() > view.routes.len() + CONTEXTS_OF_OTHERS {
            self.contexts.retain(|name, _| view.routes.iter().any(|route| route.berth.name() == &**name));
        }
    }

    async fn tell(&self, text: impl Into<Passed>) {
        // An agent that does not read holds up itself alone.
        let _ = self.to_agent.send(text.into()).await;
    }
}

fn view(listing: &Listing, endpoint: &Endpoint, of: &Visitor) -> Arc<View> {
    listing.seen_by(&of.principal).view(endpoint).cloned().unwrap_or_default()
}

/// The next thing that any of them says, and who; each has its turn.
async fn next(pipes: &mut VecDeque<Pipe>) -> (u64, Option<Passed>) {
    std::future::poll_fn(|context| {
        for _ in 0..pipes.len() {
            if let Some(pipe) = pipes.front_mut() {
                let said = pin!(pipe.agent.from.recv()).poll(context);
                if let Poll::Ready(text) = said {
                    let to = pipe.to;
                    pipes.rotate_left(1);
                    return Poll::Ready((to, text));
                }
            }
            pipes.rotate_left(1);
        }
        Poll::Pending
    })
    .await
}

//! One agent on many servers.
//!
//! It is an agent's session above as many sessions as it has servers, each of which already does eras, progress,
//! cancellation and deaths. What is left is to say which server a message is for, and to call things by the names that
//! the agent knows: [`State`] decides that and touches nothing; [`run`] carries what it decides.

mod acts;
mod asks;
mod durable;
mod durable_tasks;
mod enter;
mod extensions;
mod greet;
mod once;
mod results;
mod run;
mod screen;
mod subscriptions;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use linetender::session::{self, LIST_TTL, may_be_passed};
use linetender::{Era, Kind};
use linetender_wire::frame::{self, Frame, Members, Message, Passed, sole, string};

pub(crate) use acts::{is_unasked, request_id};
pub(crate) use durable::{unread, with_key};
pub(crate) use enter::{NoAgent, Way};
pub(crate) use once::{Answer, Part, ask};
pub(crate) use results::error_code;
pub(crate) use run::{LAST_ANSWERS, open};
pub(crate) use screen::{Screened, filter_changes, filtered, is_hidden, screened};

use crate::ends::Ended;
use crate::failed::{Failed, Full};
use crate::listing::{Route, View};
use crate::names::Naming;
use crate::tasks::OwnTasks;
use acts::Act;
use asks::Asks;
use results::Told;
use subscriptions::Listens;

/// The most requests that an agent may have open at once: a batch of them, for example.
const OPEN: usize = frame::BATCH;

/// No name of a log level is longer.
const LEVEL: usize = 32;

/// What a list has in the modern era, for this one who looks at it.
// MCP 2026-07-28, "Caching".
fn modern_list(kind: Kind, view: &View) -> String {
    let good = view.freshness(kind);
    let scope = if good.is_private { "private" } else { "public" };
    let ttl = good.ttl.unwrap_or(LIST_TTL);
    format!(r#""resultType":"complete","ttlMs":{ttl},"cacheScope":"{scope}","#)
}

/// What an agent has said so far, and what it waits for.
#[derive(Debug, Default)]
pub(crate) struct State {
    era: Option<Era>,
    /// The params of its `initialize`.
    hello: Option<String>,
    /// The level of its `logging/setLevel`, as params.
    level: Option<String>,
    /// Its requests that are under way, by their id as it was spelt.
    running: HashMap<Box<str>, Running>,
    asks: Asks,
    listens: Listens,
    own: OwnIds,
    /// The tasks that it began.
    tasks: OwnTasks,
}

/// The ids of our own requests to a line, whose answers are for nobody. An agent chooses its ids itself, so ours begin with
/// something that it cannot know.
#[derive(Debug, Default)]
struct OwnIds {
    /// Empty until there is one.
    begin: String,
    last: u64,
}

impl OwnIds {
    fn next(&mut self) -> String {
        if self.begin.is_empty() {
            // If the system has no random bytes, a guess does no more than it did to whoever guessed: its request has no answer.
            let mut key = [0; 16];
            let _ = getrandom::fill(&mut key);
            self.begin = format!("\"linetender:{:032x}:", u128::from_be_bytes(key));
        }
        self.last += 1;
        format!("{}{}\"", self.begin, self.last)
    }

    fn is_one(&self, id: &str) -> bool {
        !self.begin.is_empty() && id.starts_with(&self.begin)
    }
}

/// A request that is under way.
#[derive(Debug)]
struct Running {
    /// The server it went to.
    to: u64,
    method: Box<str>,
    /// What that server's things are called, also if it has gone meanwhile.
    naming: Arc<Naming>,
}

impl State {
    /// One whose tasks are these.
    pub(crate) fn with(tasks: OwnTasks) -> Self {
        Self { tasks, ..Self::default() }
    }

    /// What the agent says leads to this.
    pub(crate) fn agent_said(&mut self, frame: &Frame, view: &View) -> Vec<Act> {
        match frame.message() {
            Message::Request { id, method, params } => {
                self.era.get_or_insert(if method == "initialize" { Era::Legacy } else { Era::Modern });
                self.asked(frame, id, method, params, view)
            }
            Message::Notification { method: "notifications/cancelled", params } => {
                self.cancelled(frame, params)
            }
            // What an agent has to say of itself concerns the servers that know it.
            Message::Notification { method: "notifications/initialized", .. } => Vec::new(),
            Message::Notification { method, .. } => {
                // What linetender does not know may be for any server that the agent uses.
                let to = |route: &&Route| {
                    (route.is_own() || may_be_passed(method)) && acts::may_be_told(route, method)
                };
                let told = view.routes.iter().filter(to);
                let tell = |route: &Route| (route.berth.number, frame.clone().into());
                if view.is_of_one() && may_be_passed(method) {
                    told.map(tell).map(|(to, text)| Act::Say(to, text)).collect()
                } else {
                    told.map(tell).map(|(to, text)| Act::IfOpen(to, text)).collect()
                }
            }
            Message::Response { .. } => {
                let named = tasks::reply(frame, &self.tasks);
                self.asks.answered(named.as_ref().unwrap_or(frame)).into_iter().collect()
            }
        }
    }

    fn asked(
        &mut self,
        frame: &Frame,
        id: &str,
        method: &str,
        params: Option<&str>,
        view: &View,
    ) -> Vec<Act> {
        if self.running.len() >= OPEN {
            return vec![Act::refuse(&Failed::full(Full::Requests), id, method, self.is_modern())];
        }
        match method {
            "ping" => vec![Act::answer(frame::reply(id, "{}"))],
            "initialize" => {
                self.hello = params.map(str::to_owned);
                vec![Act::answer(frame::reply(id, &greet::initialized(params, view)))]
            }
            "server/discover" => vec![Act::answer(frame::reply(id, &greet::discovered(view)))],
            "logging/setLevel" => self.set_level(id, params, view),
            "subscriptions/listen" => self.listen(id, params, view),
            _ if !view.is_of_one() && tasks::is_about(method, self.is_modern()) => {
                self.task_asked(frame, id, method, params, view)
            }
            _ => match Kind::ALL.into_iter().find(|kind| kind.method() == method) {
                Some(kind) => vec![Act::answer(self.listed(id, kind, view))],
                None => self.route(frame, id, method, params, view),
            },
        }
    }

    /// The era of the agent, as far as it is known: whoever greeted nobody is modern.
    fn era(&self) -> Era {
        self.era.unwrap_or(Era::Modern)
    }

    fn is_modern(&self) -> bool {
        self.era == Some(Era::Modern)
    }

    /// A list, as this agent's era wants it. It is all on one page.
    fn listed(&self, id: &str, kind: Kind, view: &View) -> Frame {
        // Who looks at lists has those read again whose time is over, whatever its era.
        let modern = modern_list(kind, view);
        let modern = if self.is_modern() { &*modern } else { "" };
        frame::response(id, &["{", modern, "\"", kind.member(), "\":", &view.offer.list(kind), "}"])
    }

    fn route(
        &mut self,
        frame: &Frame,
        id: &str,
        method: &str,
        params: Option<&str>,
        view: &View,
    ) -> Vec<Act> {
        match acts::routed(method, params, view) {
            Ok((route, params)) => {
                let to = route.berth.number;
                if let "resources/subscribe" | "resources/unsubscribe" = method
                    && let Some(own) = acts::own_uri(&params)
                {
                    self.note_subscription(method, route.berth.name(), &own);
                }
                let naming = Arc::clone(&route.naming);
                self.running.insert(id.into(), Running { to, method: method.into(), naming });
                vec![Act::Ask { to, id: id.into(), frame: frame.with_params(&params) }]
            }
            Err(unroutable) => {
                vec![Act::refuse(&unroutable.failed(method, view), id, method, self.is_modern())]
            }
        }
    }

    fn set_level(&mut self, id: &str, params: Option<&str>, view: &View) -> Vec<Act> {
        // The word alone: an agent decides what else is there, and it is kept for as long as its session.
        let level = params.and_then(|params| Members::of(params)?.string("level"));
        if !level.as_deref().is_some_and(session::is_level) {
            let error = r#"{"code":-32602,"message":"linetender: no such log level"}"#;
            return vec![Act::End(frame::error_reply(id, error).into(), Ended::Refused(-32602))];
        }
        self.level = level
            .filter(|level| level.len() <= LEVEL)
            .map(|level| format!(r#"{{"level":{}}}"#, frame::respell(&level)));
        let mut acts = vec![Act::answer(frame::reply(id, "{}"))];
        for route in &view.routes {
            let Some(text) = self.level_request() else { break };
            let to = route.berth.number;
            // A line that would be opened for this agent alone is told when it is.
            acts.push(if route.is_own() { Act::IfOpen(to, text.into()) } else { Act::Say(to, text.into()) });
        }
        acts
    }

    fn level_request(&mut self) -> Option<Bytes> {
        let params = self.level.clone()?;
        Some(self.own_request("logging/setLevel", &params))
    }

    /// A request of our own.
    fn own_request(&mut self, method: &str, params: &str) -> Bytes {
        let method = frame::respell(method);
        let id = self.own.next();
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#).into()
    }

    /// The agent wants no answer any more, or to hear no more.
    fn cancelled(&mut self, frame: &Frame, params: Option<&str>) -> Vec<Act> {
        let Some(id) = acts::request_id(params) else { return Vec::new() };
        // It is not answered any more, so nothing else would end it.
        let on = match self.running.remove(id) {
            Some(running) => vec![running.to],
            None => self.listens.end(id),
        };
        on.into_iter().map(|to| Act::IfOpen(to, frame.clone().into())).collect()
    }

    /// What a new way to a server begins with: who the agent is, and what it wanted of all servers.
    pub(crate) fn opening(&mut self, to: u64, server: &str) -> Vec<Bytes> {
        let mut first = Vec::new();
        if self.era == Some(Era::Legacy) {
            let hello = self.hello.clone().unwrap_or_else(|| "{}".to_owned());
            first.push(self.own_request("initialize", &hello));
            first.push(frame::notification("notifications/initialized", None));
            first.extend(self.level_request());
        }
        first.extend(self.resubscribe(to, server));
        first
    }

    /// What a line says leads to this.
    pub(crate) fn line_said(&mut self, from: u64, frame: &Frame, view: &View) -> Vec<Act> {
        match frame.message() {
            Message::Response { id: Some(id), .. } => self.line_answered(id, frame, view),
            Message::Response { id: None, .. } => Vec::new(),
            Message::Request { id, .. } => {
                let named = tasks::question(frame, from, &self.tasks);
                vec![self.asks.ask(from, id, named.as_ref().unwrap_or(frame))]
            }
            Message::Notification { method, params } => {
                self.line_told(from, frame, method, params, view).map(Act::Tell).into_iter().collect()
            }
        }
    }

    fn line_answered(&mut self, id: &str, frame: &Frame, view: &View) -> Vec<Act> {
        if self.own.is_one(id) {
            return Vec::new();
        }
        let Some(Running { to, method, naming }) = self.running.remove(id) else {
            // A server ended a stream of its own; the agent's goes on, since it may hear of others.
            return Vec::new();
        };
        if &*method == "tasks/list" && *naming != Naming::Plain {
            return vec![Act::Tell(self.tasks_listed(frame, to, view).into())];
        }
        let told = Told { method: &method, naming: &naming, from: to, tasks: &self.tasks };
        vec![Act::Tell(told.named(frame).into())]
    }

    fn line_told(
        &mut self,
        from: u64,
        frame: &Frame,
        method: &str,
        params: Option<&str>,
        view: &View,
    ) -> Option<Passed> {
        match method {
            // The listing says so, once for all.
            _ if Kind::ALL.iter().any(|kind| kind.notification() == method) => None,
            // We have said so ourselves.
            "notifications/subscriptions/acknowledged" => None,
            "notifications/cancelled" => self.asks.taken_back(from, params?).map(Into::into),
            // What a rule or filter hides since it was subscribed to is not told of any more.
            "notifications/resources/updated" => {
                let route = view.route(from)?;
                let uri = string(sole(params?, "uri").ok()??)?;
                if !route.lets(Kind::Resources, &uri) {
                    return None;
                }
                results::updated(frame, params?, &route.naming).map(Into::into)
            }
            "notifications/tasks/status" if !view.is_of_one() => {
                tasks::status(frame, params?, from, &self.tasks).map(Into::into)
            }
            "notifications/tasks" if !view.is_of_one() => {
                let naming = &view.route(from)?.naming;
                let told = Told { method, naming, from, tasks: &self.tasks };
                told.task(frame, params?).map(Into::into)
            }
            _ => Some(frame.clone().into()),
        }
    }

    /// A way to a server ended. Nothing that was under way there is answered any more.
    pub(crate) fn lost(&mut self, from: u64, server: &str) -> Vec<Act> {
        let mut acts = self.asks.forget(from);
        let modern = self.is_modern();
        let failed = Failed::taken_away().of(Some(server));
        let gone = self.running.extract_if(|_, running| running.to == from);
        acts.extend(gone.map(|(id, running)| Act::Tell(failed.reply(&id, &running.method, modern).into())));
        acts
    }

    /// Nothing that is under way is waited for any longer: whoever asked is told, and whoever was asked.
    pub(crate) fn cut(&mut self) -> Vec<Act> {
        let (modern, failed) = (self.is_modern(), Failed::cut());
        let told: Vec<_> = (self.running.iter())
            .map(|(id, running)| Act::Tell(failed.reply(id, &running.method, modern).into()))
            .collect();
        told.into_iter().chain(self.gone()).collect()
    }

    /// The task that carries this panicked: every open request is told.
    pub(crate) fn broken(&mut self) -> Vec<Act> {
        let (modern, failed) = (self.is_modern(), Failed::broken());
        let told =
            |(id, running): (Box<str>, Running)| Act::Tell(failed.reply(&id, &running.method, modern).into());
        self.running.drain().map(told).collect()
    }

    /// The agent is gone, and wants no answers any more.
    pub(crate) fn gone(&mut self) -> Vec<Act> {
        let cancel = |(id, running): (Box<str>, Running)| {
            let params = format!(r#"{{"requestId":{id},"reason":"the agent disconnected"}}"#);
            Act::IfOpen(running.to, frame::notification("notifications/cancelled", Some(&params)).into())
        };
        self.running.drain().map(cancel).collect()
    }

    /// A request could not be handed to its server.
    pub(crate) fn not_taken(&mut self, id: &str, failed: &Failed) -> (Bytes, Ended) {
        let method = self.running.remove(id).map(|running| running.method);
        let text = failed.reply(id, method.as_deref().unwrap_or_default(), self.is_modern());
        (text, Ended::Refused(failed.code()))
    }

    /// Whether anything is under way at a server.
    pub(crate) fn is_busy(&self, to: u64) -> bool {
        self.running.values().any(|running| running.to == to)
    }

    /// Whether nothing is under way anywhere.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// What is offered is something else now.
    pub(crate) fn changed(&mut self, before: &View, now: &View) -> Vec<Bytes> {
        let mut told: Vec<&str> = Vec::new();
        let mut texts = Vec::new();
        for kind in now.offer.changes_since(&before.offer) {
            // Resources and their templates are one notification.
            if told.contains(&kind.notification()) {
                continue;
            }
            told.push(kind.notification());
            match self.era {
                Some(Era::Legacy) => texts.push(frame::notification(kind.notification(), None)),
                Some(Era::Modern) => texts.extend(self.listens.changed(kind)),
                None => {}
            }
        }
        // Its only server was taken away, and with it the endpoint.
        if now.routes.is_empty() && !before.routes.is_empty() && before.is_of_one() {
            texts.extend(self.listens.end_all());
        }
        texts
    }
}

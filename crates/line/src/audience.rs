//! Who hears what a server says by itself: the one agent that a line was opened for, or each of several that share it.
//!
//! On a shared line nothing links a server's question to a call, so none is passed on: a wrong guess would show one agent's
//! question to another. What each agent asked to hear of, it hears, and nobody else.

mod agent;
mod parts;
mod tasks;
mod users;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use linetender_core::Generation;
use linetender_wire::frame::{Frame, Message};
use linetender_wire::handshake::Era;
use linetender_wire::renewed;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::watch;

use crate::basics::code::Code;
pub(crate) use agent::{Agent, FromServer, Hears, WhileOpen, in_words_of};
pub(crate) use parts::with_wholes;
pub(crate) use tasks::TaskOwner;
use tasks::Tasks;
use users::Users;

/// The levels of log messages, from the most to the least verbose.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Whether there is such a level.
pub fn is_level(level: &str) -> bool {
    LEVELS.contains(&level)
}

/// What servers ask agents.
const QUESTIONS: [&str; 3] = ["roots/list", "sampling/createMessage", "elicitation/create"];

/// What a server is told that asks what no agent can answer.
const NO_AGENT: &str =
    r#"{"code":-32601,"message":"linetender: no connected agent can answer this request"}"#;

/// The notification that a resource changed.
pub(crate) const UPDATED: &str = "notifications/resources/updated";

/// The notification of the modern era that a task changed. The legacy era has another one.
// The extension `io.modelcontextprotocol/tasks`, "Task Status Notifications".
pub(crate) const TASK_CHANGED: &str = "notifications/tasks";

/// The name of that extension.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What a server is told that asks more than an agent can answer.
pub(crate) fn too_many_questions() -> String {
    Code::Overloaded.error("too many requests to the agent are pending")
}

/// Everybody who listens on a line.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    listeners: Mutex<Listeners>,
    users: Users,
    tasks: Tasks,
    /// Whether whoever shares it may be a stranger to the others: then a task that nobody is known to have begun is nobody's.
    strangers: bool,
    /// What the server wanted that only an agent that is alone with it can give.
    wants: watch::Sender<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Listeners {
    /// The one agent that the line was opened for.
    alone: Option<Agent>,
    many: HashMap<u64, Listener>,
    /// How many of them want to hear of a resource. Agents decide how many resources that are.
    wanted: HashMap<String, usize>,
    /// How many resources agents of each principal want to hear of.
    by_principal: HashMap<u64, usize>,
    last: u64,
}

/// One of several.
#[derive(Debug)]
struct Listener {
    agent: Agent,
    /// Whom it acts for.
    principal: u64,
    /// Whose tasks are its own.
    tasks: TaskOwner,
    /// Resources it wants to hear of.
    resources: HashSet<String>,
    /// The least urgent log message it wants to see, as a place in [`LEVELS`].
    level: Option<usize>,
}

impl Audience {
    pub(crate) fn alone(agent: Option<Agent>) -> Self {
        let listeners = Mutex::new(Listeners { alone: agent, ..Listeners::default() });
        Self { listeners, ..Self::default() }
    }

    /// The same for agents of principals who are strangers to each other.
    pub(crate) fn of_strangers(self, strangers: bool) -> Self {
        Self { strangers, ..self }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        // Who is there is beyond doubt; how many want what is counted again.
        renewed(&self.listeners, |listeners| {
            listeners.wanted.clear();
            listeners.by_principal.clear();
            for listener in listeners.many.values() {
                for uri in &listener.resources {
                    *listeners.wanted.entry(uri.clone()).or_default() += 1;
                }
                *listeners.by_principal.entry(listener.principal).or_default() += listener.resources.len();
            }
        })
    }

    /// One more agent; its number.
    pub(crate) fn join(&self, agent: Agent, tasks: impl FnOnce(u64) -> TaskOwner) -> u64 {
        let mut listeners = self.listeners();
        listeners.last += 1;
        let number = listeners.last;
        let tasks = tasks(number);
        let (principal, resources) = (tasks.principal, HashSet::new());
        listeners.many.insert(number, Listener { agent, principal, tasks, resources, level: None });
        number
    }

    /// It is gone. The resources that nobody wants to hear of any more.
    pub(crate) fn leave(&self, number: u64) -> Vec<String> {
        let mut listeners = self.listeners();
        let Some(gone) = listeners.many.remove(&number) else { return Vec::new() };
        listeners.fewer(gone.principal, gone.resources.len());
        gone.resources.into_iter().filter(|uri| listeners.is_last(uri)).collect()
    }

    /// It wants to hear of a resource; whether it is the first.
    pub(crate) fn subscribe(&self, number: u64, uri: &str) -> bool {
        let mut listeners = self.listeners();
        let new =
            listeners.many.get_mut(&number).is_some_and(|listener| listener.resources.insert(uri.to_owned()));
        if !new {
            return false;
        }
        let wanted = listeners.wanted.entry(uri.to_owned()).or_default();
        *wanted += 1;
        let first = *wanted == 1;
        if let Some(principal) = listeners.many.get(&number).map(|listener| listener.principal) {
            *listeners.by_principal.entry(principal).or_default() += 1;
        }
        first
    }

    /// Whether an agent may want to hear of a resource: those of one principal have all but an eighth of so many, so that others can too.
    pub(crate) fn may_subscribe(&self, number: u64, uri: &str, most: usize) -> bool {
        let listeners = self.listeners();
        let Some(listener) = listeners.many.get(&number).filter(|_| self.strangers) else { return true };
        if listener.resources.contains(uri) {
            return true;
        }
        listeners.by_principal.get(&listener.principal).is_none_or(|wanted| *wanted < most - most / 8)
    }

    pub(crate) fn is_subscribed(&self, number: u64, uri: &str) -> bool {
        self.listeners().many.get(&number).is_some_and(|listener| listener.resources.contains(uri))
    }

    /// Whether any agent wants to hear of a resource.
    pub(crate) fn is_wanted(&self, uri: &str) -> bool {
        self.listeners().wanted.contains_key(uri)
    }

    /// It does not any more; whether it was the last.
    pub(crate) fn unsubscribe(&self, number: u64, uri: &str) -> bool {
        let mut listeners = self.listeners();
        let Some(listener) = listeners.many.get_mut(&number) else { return false };
        let (had, principal) = (listener.resources.remove(uri), listener.principal);
        if had {
            listeners.fewer(principal, 1);
        }
        had && listeners.is_last(uri)
    }

    /// It wants to see log messages from this level on. The most verbose that anybody wants.
    pub(crate) fn level(&self, number: u64, level: &str) -> Option<&'static str> {
        let mut listeners = self.listeners();
        let place = LEVELS.iter().position(|known| *known == level)?;
        listeners.many.get_mut(&number)?.level = Some(place);
        let verbose = listeners.many.values().filter_map(|listener| listener.level).min()?;
        LEVELS.get(verbose).copied()
    }

    /// A generation is sent a call of this principal's.
    pub(crate) fn used_by(&self, generation: Generation, principal: u64) {
        self.users.note(generation, principal);
    }

    /// Whether this principal may see what a generation wrote by itself: it may quote whoever's calls it was sent.
    pub(crate) fn may_see(&self, generation: Generation, principal: u64) -> bool {
        !self.users.has_others(generation, principal)
    }

    /// A call of this one's was answered so.
    pub(crate) fn answered(&self, generation: Generation, owner: TaskOwner, result: &str) {
        self.tasks.note(generation, owner, result);
    }

    /// Whether tasks were begun in this generation: nobody here knows when they end.
    pub(crate) fn has_tasks(&self, generation: Generation) -> bool {
        self.tasks.last() == Some(generation)
    }

    /// A call of somebody who is alone on the line was answered so.
    pub(crate) fn answered_alone(&self, generation: Generation, result: &str) {
        self.tasks.note_begun(generation, result);
    }

    /// Whether this one may ask for a task. Among people who are no strangers, one that nobody is known to have begun is anybody's:
    /// it may be older than this process.
    pub(crate) fn may_ask_for(&self, task: &str, owner: TaskOwner) -> bool {
        self.tasks.known(task).map_or(!self.strangers, |(_, of)| of == owner)
    }

    /// Whether a task is known to be this one's.
    pub(crate) fn is_of(&self, task: &str, owner: TaskOwner) -> bool {
        self.tasks.known(task).is_some_and(|(_, of)| of == owner)
    }

    /// Which generation began a task, if that is known.
    pub(crate) fn began(&self, task: &str) -> Option<Generation> {
        self.tasks.known(task).map(|(generation, _)| generation)
    }

    /// Hands a question to the agent that the line was opened for, or says why it cannot be asked.
    pub(crate) fn ask(&self, said: FromServer) -> Result<(), Cow<'static, str>> {
        match &self.listeners().alone {
            // A modern agent knows no questions from servers.
            Some(agent) if agent.era == Era::Legacy => {
                agent.said.try_send(said).map_err(|error| match error {
                    TrySendError::Full(_) => too_many_questions().into(),
                    TrySendError::Closed(_) => NO_AGENT.into(),
                })
            }
            _ => {
                if let Message::Request { method, .. } = said.frame.message()
                    && QUESTIONS.contains(&method)
                {
                    self.wants(method);
                }
                Err(NO_AGENT.into())
            }
        }
    }

    /// The server wants something that only an agent that is alone with it can give.
    pub(crate) fn wants(&self, what: &str) {
        self.wants.send_if_modified(|wants| {
            let first = wants.is_none();
            if first {
                *wants = Some(what.into());
            }
            first
        });
    }

    /// What the server wanted first that only an agent that is alone with it can give.
    pub(crate) fn wanted(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.wants.subscribe()
    }

    /// A notification goes to whoever asked for it; how many missed it because they read too slowly.
    pub(crate) fn tell(&self, generation: Generation, frame: &Frame) -> usize {
        let Message::Notification { method, params } = frame.message() else { return 0 };
        let missed = |agent: &&Agent| !agent.is_told(generation, frame, method, params);
        let listeners = self.listeners();
        if let Some(agent) = &listeners.alone {
            return usize::from(missed(&agent));
        }
        // Read once, however many agents there are.
        let mut about = About::of(method, params);
        if let About::Resource(uris) = &mut about {
            uris.retain(|uri| listeners.wanted.contains_key(uri));
        }
        // A log message may quote anybody's call. Of a resource only its address is told.
        let hears = |listener: &&Listener| {
            !matches!(about, About::Message(_)) || !self.users.has_others(generation, listener.principal)
        };
        // A task's state is told to whoever began it.
        let of_task = match &about {
            About::Task(task) => self.tasks.known(task).map(|(_, owner)| owner),
            _ => None,
        };
        let wants = |listener: &&Listener| listener.wants(&about) || of_task == Some(listener.tasks);
        let wanting = listeners.many.values().filter(wants).filter(hears);
        wanting.map(|listener| &listener.agent).filter(missed).count()
    }
}

impl Listeners {
    /// A principal's agents want to hear of so many resources less.
    fn fewer(&mut self, principal: u64, count: usize) {
        if let Some(wanted) = self.by_principal.get_mut(&principal) {
            *wanted = wanted.saturating_sub(count);
            if *wanted == 0 {
                self.by_principal.remove(&principal);
            }
        }
    }

    /// One agent less wants to hear of a resource; whether it was the last.
    fn is_last(&mut self, uri: &str) -> bool {
        let Some(wanted) = self.wanted.get_mut(uri) else { return false };
        *wanted -= 1;
        let last = *wanted == 0;
        if last {
            self.wanted.remove(uri);
        }
        last
    }
}

/// What a notification is about, as far as agents choose by it.
enum About {
    /// A resource: its address, and those that it may be a part of.
    Resource(Vec<String>),
    /// A log message, by its place in [`LEVELS`], if it has one.
    Message(Option<usize>),
    /// The state of a task.
    Task(String),
    /// Nobody knows whose it is: everybody's.
    Unknown,
}

impl About {
    fn of(method: &str, params: Option<&str>) -> Self {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Read {
            uri: String,
            level: String,
            #[serde(rename = "taskId")]
            task: String,
        }
        let read =
            || -> Read { params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default() };
        match method {
            UPDATED => Self::Resource(with_wholes(&read().uri).map(str::to_owned).collect()),
            "notifications/message" => {
                let level = read().level;
                Self::Message(LEVELS.iter().position(|known| *known == level))
            }
            // MCP 2025-11-25, "Task Status Notification". The modern era has them on streams that ask for them.
            "notifications/tasks/status" | TASK_CHANGED => Self::Task(read().task),
            _ => Self::Unknown,
        }
    }
}

impl Listener {
    fn wants(&self, about: &About) -> bool {
        match about {
            About::Resource(uris) => uris.iter().any(|uri| self.resources.contains(uri)),
            // A server sends what it likes to whoever set no level.
            About::Message(place) => self.level.is_none_or(|least| place.is_none_or(|place| place >= least)),
            About::Task(_) => false,
            About::Unknown => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Agent, Audience, FromServer, Hears, TaskOwner};
    use linetender_core::Generation;
    use linetender_wire::handshake::Era;
    use linetender_wire::{frame, queue};
    use tokio::sync::mpsc;

    fn said(text: &str) -> frame::Frame {
        frame::parse(&text.to_owned().into(), frame::Limits { length: 1000, depth: 8 }).unwrap()
    }

    fn agent(era: Era) -> (Agent, queue::Receiver<frame::Passed>, mpsc::Receiver<FromServer>) {
        let (direct, heard) = queue::queue(8, 10_000);
        let (said, asked) = mpsc::channel(8);
        (Agent { era, said, direct, hears: Hears::from(true) }, heard, asked)
    }

    fn of(principal: u64) -> impl FnOnce(u64) -> TaskOwner {
        move |number| TaskOwner { principal, session: Some(number) }
    }

    fn tell(audience: &Audience, method: &str, params: &str) -> usize {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        audience.tell(Generation::new(1), &said(&text))
    }

    #[test]
    fn x07_one_principal_never_has_all_subscriptions() {
        let audience = Audience::default().of_strangers(true);
        let [one, two] = [0, 1].map(|_| audience.join(agent(Era::Legacy).0, of(1)));
        let other = audience.join(agent(Era::Legacy).0, of(2));
        for at in 0..7 {
            let (number, uri) = (if at % 2 == 0 { one } else { two }, at.to_string());
            assert!(audience.may_subscribe(number, &uri, 8), "{at}");
            audience.subscribe(number, &uri);
        }
        assert!(!audience.may_subscribe(one, "more", 8) && !audience.may_subscribe(two, "more", 8));
        assert!(audience.may_subscribe(one, "0", 8), "it has that already");
        assert!(audience.may_subscribe(other, "more", 8));
        audience.leave(two);
        assert!(audience.may_subscribe(one, "more", 8));
        assert!(Audience::default().may_subscribe(one, "more", 0), "whoever is alone has all of them");
    }

    #[test]
    fn the_state_of_a_task_is_told_to_whoever_began_it() {
        let audience = Audience::default();
        let ((to_a, mut a, _a), (to_b, mut b, _b)) = (agent(Era::Legacy), agent(Era::Legacy));
        let hers = audience.join(to_a, of(1));
        audience.join(to_b, of(1));
        audience.answered(Generation::new(1), of(1)(hers), r#"{"task":{"taskId":"t"}}"#);
        for task in ["t", "u"] {
            let params = format!(r#"{{"taskId":"{task}","status":"working"}}"#);
            assert_eq!(tell(&audience, "notifications/tasks/status", &params), 0);
        }
        assert!(a.try_recv().is_some() && a.try_recv().is_none());
        assert!(b.try_recv().is_none(), "it is another agent's, of the same principal");
    }

    #[test]
    fn the_state_of_a_modern_task_is_told_to_sessions_of_whoever_began_it() {
        let audience = Audience::default().of_strangers(true);
        let of = |principal| TaskOwner { principal, session: None };
        let ((to_her, mut direct, mut hers), (to_him, _him, mut his)) =
            (agent(Era::Modern), agent(Era::Modern));
        audience.join(to_her, |_| of(1));
        audience.join(to_him, |_| of(2));
        audience.answered(Generation::new(1), of(1), r#"{"resultType":"task","taskId":"t"}"#);
        for task in ["t", "u"] {
            let params = format!(r#"{{"taskId":"{task}","status":"completed"}}"#);
            assert_eq!(tell(&audience, super::TASK_CHANGED, &params), 0);
        }
        assert!(hers.try_recv().is_ok() && hers.try_recv().is_err(), "its session knows its streams");
        assert!(direct.try_recv().is_none() && his.try_recv().is_err());
        assert!(audience.is_of("t", of(1)) && !audience.is_of("t", of(2)) && !audience.is_of("u", of(1)));
    }

    #[test]
    fn what_was_tagged_for_us_is_told_in_the_words_of_the_agents_era() {
        let tagged = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7,"a":1.50},"uri":"x"}"#;
        let (legacy, mut heard, mut asked) = agent(Era::Legacy);
        let audience = Audience::alone(Some(legacy));
        assert_eq!(tell(&audience, super::UPDATED, tagged), 0);
        assert!(heard.try_recv().unwrap().text().ends_with(br#""params":{"_meta":{"a":1.50},"uri":"x"}}"#));
        assert!(asked.try_recv().is_err());
        let (modern, mut heard, mut asked) = agent(Era::Modern);
        let audience = Audience::alone(Some(modern));
        assert_eq!(tell(&audience, super::UPDATED, tagged), 0);
        assert!(heard.try_recv().is_none() && asked.try_recv().is_ok(), "its session knows its streams");
    }

    #[test]
    fn each_hears_what_it_asked_for_and_nobody_elses() {
        let audience = Audience::default();
        let ((to_a, mut a, _a), (to_b, mut b, _b)) = (agent(Era::Legacy), agent(Era::Legacy));
        let (a_number, b_number) = (audience.join(to_a, of(0)), audience.join(to_b, of(0)));
        assert!(audience.subscribe(a_number, "x"), "the first");
        assert!(!audience.subscribe(b_number, "x"));
        assert!(audience.subscribe(b_number, "y"));
        assert_eq!(audience.level(a_number, "error"), Some("error"));
        assert_eq!(audience.level(b_number, "info"), Some("info"), "the most verbose");
        assert_eq!(audience.level(a_number, "nonsense"), None);
        for (params, method) in [
            (r#"{"uri":"y/part"}"#, super::UPDATED),
            (r#"{"uri":"yy"}"#, super::UPDATED),
            (r#"{"uri":"y"}"#, super::UPDATED),
            (r#"{"level":"warning","data":1}"#, "notifications/message"),
            (r#"{"anything":1}"#, "notifications/custom"),
        ] {
            assert_eq!(tell(&audience, method, params), 0);
        }
        assert!(
            a.try_recv().is_some() && a.try_recv().is_none(),
            "but for the last, it asked for none of these"
        );
        assert!((0..4).all(|_| b.try_recv().is_some()) && b.try_recv().is_none());
        assert_eq!(audience.leave(b_number), ["y"], "x is still wanted");
        assert!(audience.unsubscribe(a_number, "x"), "the last");
    }
}

//! What an agent wants to hear of by itself, wherever the server's own era would have put it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use linetender_wire::frame::{self, Frame, Members};
use linetender_wire::handshake::{CAPABILITIES_IN_META, Era, SUBSCRIPTION_IN_META};
use serde::{Deserialize, Serialize};

use super::{Open, bridge, tasks};
use crate::audience::{TASKS_EXTENSION, is_level, with_wholes};
use crate::basics::code::Code;
use crate::basics::kind::Kind;
use crate::basics::params::{with_meta_member, without_modern_meta};
use crate::generation::RESOURCES;
use crate::line::Line;

/// The most streams that an agent may have open.
const LISTENS: usize = 64;

/// The longest address of a resource that an agent may want to hear of, in bytes.
const ADDRESS: usize = 8 * 1024;

/// The most tasks that a stream may tell of, and the longest id of one, in bytes.
const TASKS: usize = 256;
const TASK: usize = 256;

/// What is said to whoever asks for tasks and has not declared them.
// The tasks extension, "Task Status Notifications": a client that does not declare it MUST be refused.
const UNDECLARED: &str = r#"{"code":-32021,"message":"linetender: the client did not declare the extension io.modelcontextprotocol/tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;

/// The listening requests of a modern agent, by their id as it was spelt.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(HashMap<Box<str>, Filter>);

/// What a listening request asks for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Filter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_ids: Vec<String>,
}

#[derive(Deserialize)]
struct Listen {
    #[serde(default)]
    notifications: Filter,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

#[derive(Deserialize)]
struct Level {
    level: String,
}

/// What becomes of a request about what an agent wants to hear of.
pub(super) enum Wished {
    Answered(Bytes),
    /// The server is asked, with other params if there are any.
    Asked {
        params: Option<String>,
        /// What is taken back if it refuses.
        undone: Option<Undone>,
    },
}

impl Wished {
    const ASKED: Self = Self::Asked { params: None, undone: None };
}

/// A subscription that a server has not granted yet.
pub(super) struct Undone {
    listener: u64,
    uri: String,
}

impl Undone {
    /// The server refused it.
    pub(super) fn undo(self, line: &Line) {
        if line.audience().unsubscribe(self.listener, &self.uri) {
            line.wants_not(&self.uri);
        }
    }
}

impl Subscriptions {
    /// A list changed: what each stream that asked for it is told.
    pub(super) fn changed(&self, kind: Kind) -> Vec<Bytes> {
        let wants = |filter: &Filter| match kind {
            Kind::Tools => filter.tools_list_changed,
            Kind::Prompts => filter.prompts_list_changed,
            Kind::Resources | Kind::Templates => filter.resources_list_changed,
        };
        let streams = self.0.iter().filter(|(_, filter)| wants(filter));
        streams.map(|(id, _)| tagged(kind.notification(), id, None)).collect()
    }

    /// A resource changed: what each stream that asked for it is told, with all that the server said of it.
    pub(super) fn updated(&self, frame: &Frame, params: &str) -> impl Iterator<Item = Frame> {
        let uri = serde_json::from_str(params).ok().map(|Resource { uri }| uri);
        let plain = without_modern_meta(params);
        let wants = move |filter: &Filter| {
            let wants = |one: &str| filter.resource_subscriptions.iter().any(|wanted| wanted == one);
            uri.as_ref().is_some_and(|uri| with_wholes(uri).any(wants))
        };
        let tagged =
            move |id: &str| with_meta_member(Some(&plain), &format!(r#""{SUBSCRIPTION_IN_META}":{id}"#));
        let streams = self.0.iter().filter(move |(_, filter)| wants(filter));
        streams.map(move |(id, _)| frame.with_params(&tagged(id)))
    }

    /// A task changed: what each stream that asked for it is told, with all that the server said of it.
    pub(super) fn task_changed(&self, frame: &Frame, params: &str) -> impl Iterator<Item = Frame> {
        let task = Members::of(params).and_then(|members| members.string("taskId").map(Cow::into_owned));
        let plain = without_modern_meta(params);
        let streams = self
            .0
            .iter()
            .filter(move |(_, filter)| task.as_ref().is_some_and(|task| filter.task_ids.contains(task)));
        streams.map(move |(id, _)| {
            let meta = format!(r#""{SUBSCRIPTION_IN_META}":{id}"#);
            frame.with_params(&with_meta_member(Some(&plain), &meta))
        })
    }

    /// All tasks that any of them tells of, once for each stream.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(|filter| &filter.task_ids).map(String::as_str)
    }

    /// Nothing more will be told: each stream has its proper end, and whoever listened may listen anew.
    pub(super) fn end(&mut self) -> Vec<Bytes> {
        self.0.drain().map(|(id, _)| listened(&id, None)).collect()
    }
}

/// The answer to a listening request: the proper end of its stream. `more` are further members of its `_meta`, raw.
// MCP 2026-07-28, "Subscriptions": a server that ends one SHOULD send its response.
pub fn listened(id: &str, more: Option<&str>) -> Bytes {
    let more = more.map(|more| format!(",{more}")).unwrap_or_default();
    let meta = format!(r#"{{"{SUBSCRIPTION_IN_META}":{id}{more}}}"#);
    frame::reply(id, &format!(r#"{{"resultType":"complete","_meta":{meta}}}"#))
}

/// A notification of the stream that this request opened.
// MCP 2026-07-28, "Subscriptions": every notification carries the id of its request.
fn tagged(method: &str, id: &str, more: Option<&str>) -> Bytes {
    let more = more.map(|more| format!(",{more}")).unwrap_or_default();
    let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_IN_META}":{id}}}{more}}}"#);
    frame::notification(method, Some(&params))
}

/// Whether a request says that its client knows tasks.
fn declares_tasks(params: Option<&str>) -> bool {
    let declared = || {
        let meta = Members::of(Members::of(params?)?.get("_meta")?.get())?;
        let all = Members::of(meta.get(CAPABILITIES_IN_META)?.get())?;
        Members::of(all.get("extensions")?.get())?.get(TASKS_EXTENSION)
    };
    declared().is_some()
}

impl Open {
    /// What can be answered without the server, because the server's era or the others on the line want it otherwise.
    pub(super) fn answer_locally(&mut self, id: &str, method: &str, params: Option<&str>) -> Wished {
        match (self.era, method) {
            (Era::Modern, "subscriptions/listen") => Wished::Answered(self.listen(id, params)),
            (Era::Legacy, "logging/setLevel") => self.set_level(id, params),
            (Era::Legacy, "resources/subscribe") => self.subscribe(id, params),
            (Era::Legacy, "resources/unsubscribe") => self.unsubscribe(id, params),
            _ => Wished::ASKED,
        }
    }

    /// A stream begins with what it will tell. It has no answer until it ends.
    fn listen(&mut self, id: &str, params: Option<&str>) -> Bytes {
        let Listen { mut notifications } = params
            .and_then(|params| serde_json::from_str(params).ok())
            .unwrap_or(Listen { notifications: Filter::default() });
        if self.subscriptions.0.len() >= LISTENS {
            return frame::error_reply(
                id,
                &Code::Overloaded.error("too many streams are open: close one first"),
            );
        }
        // What it is told first is what it will hear of: resources for which there is no room are not among them.
        notifications.resource_subscriptions.truncate(RESOURCES);
        notifications.resource_subscriptions.retain(|uri| uri.len() <= ADDRESS && self.want(uri));
        if !notifications.task_ids.is_empty() && !declares_tasks(params) {
            return frame::error_reply(id, UNDECLARED);
        }
        self.keep_own_tasks(&mut notifications.task_ids);
        let agreed = serde_json::to_string(&notifications).unwrap_or_default();
        // An id that was used before is that of another stream now.
        let before = self.subscriptions.0.insert(id.into(), notifications);
        for task in before.iter().flat_map(|before| &before.task_ids) {
            self.line.unwatch_task(task);
        }
        tagged("notifications/subscriptions/acknowledged", id, Some(&format!(r#""notifications":{agreed}"#)))
    }

    /// The agent wants to hear no more of it.
    pub(super) fn unlisten(&mut self, id: &str) {
        let Some(gone) = self.subscriptions.0.remove(id) else { return };
        for task in &gone.task_ids {
            self.line.unwatch_task(task);
        }
        let others = self.subscriptions.0.values().flat_map(|filter| &filter.resource_subscriptions);
        let others: HashSet<&String> = others.collect();
        gone.resource_subscriptions
            .iter()
            .filter(|uri| !others.contains(uri))
            .for_each(|uri| self.want_not(uri));
    }

    /// Leaves those tasks of which the agent will be told: its own, of a server that tells of them.
    fn keep_own_tasks(&self, tasks: &mut Vec<String>) {
        let (owner, mut seen) = (tasks::owner(self.caller, self.era), HashSet::new());
        let audience = self.line.audience();
        tasks.truncate(TASKS);
        tasks.retain(|task| {
            let is_own = self.listener.is_none() || audience.is_of(task, owner);
            task.len() <= TASK && is_own && seen.insert(task.clone()) && self.line.watch_task(task)
        });
    }

    /// Whether there is room for it.
    fn want(&self, uri: &str) -> bool {
        let may = |listener| self.line.audience().may_subscribe(listener, uri, RESOURCES);
        if !self.listener.is_none_or(may) {
            return false;
        }
        let first = self.listener.is_none_or(|listener| self.line.audience().subscribe(listener, uri));
        if !first || self.line.subscribe(uri) {
            return true;
        }
        if let Some(listener) = self.listener {
            self.line.audience().unsubscribe(listener, uri);
        }
        false
    }

    fn want_not(&self, uri: &str) {
        let last = self.listener.is_none_or(|listener| self.line.audience().unsubscribe(listener, uri));
        if last {
            self.line.unsubscribe(uri);
        }
    }

    /// A legacy server says itself whether it can be asked this, and a modern one has said what it offers.
    fn subscribe(&self, id: &str, params: Option<&str>) -> Wished {
        let Some(Resource { uri }) = params.and_then(|params| serde_json::from_str(params).ok()) else {
            return Wished::ASKED;
        };
        let room =
            || Code::Overloaded.error(&format!("subscription limit of this server reached ({RESOURCES})"));
        if self.line.era() == Some(Era::Modern) {
            return Wished::Answered(match self.refused("resources", Some("subscribe")) {
                Some(error) => frame::error_reply(id, &error),
                None if self.want(&uri) => frame::reply(id, "{}"),
                None => frame::error_reply(id, &room()),
            });
        }
        let Some(listener) = self.listener else { return Wished::ASKED };
        let audience = self.line.audience();
        if !audience.may_subscribe(listener, &uri, RESOURCES) || !self.line.has_room_for(&uri) {
            return Wished::Answered(frame::error_reply(id, &room()));
        }
        // It hears of it from now on: the server may tell of it before it answers.
        let is_new = !audience.is_subscribed(listener, &uri);
        audience.subscribe(listener, &uri);
        self.line.asks_for(&uri);
        Wished::Asked { params: None, undone: is_new.then_some(Undone { listener, uri }) }
    }

    fn unsubscribe(&self, id: &str, params: Option<&str>) -> Wished {
        let Some(Resource { uri }) = params.and_then(|params| serde_json::from_str(params).ok()) else {
            return Wished::ASKED;
        };
        let Some(listener) = self.listener.filter(|_| self.line.era() != Some(Era::Modern)) else {
            if self.line.era() != Some(Era::Modern) {
                return Wished::ASKED;
            }
            self.want_not(&uri);
            return Wished::Answered(frame::reply(id, "{}"));
        };
        // While others listen the server is not told; whoever never did hears what the server says of that.
        let audience = self.line.audience();
        if audience.is_subscribed(listener, &uri) && !audience.unsubscribe(listener, &uri) {
            return Wished::Answered(frame::reply(id, "{}"));
        }
        if audience.is_wanted(&uri) {
            return Wished::Answered(frame::reply(id, "{}"));
        }
        self.line.wants_not(&uri);
        Wished::ASKED
    }

    fn set_level(&mut self, id: &str, params: Option<&str>) -> Wished {
        let level = params.and_then(|params| serde_json::from_str(params).ok()).map(|Level { level }| level);
        if self.line.era() == Some(Era::Modern) {
            let refused = self.refused("logging", None).or_else(|| {
                let known = level.as_deref().is_some_and(is_level);
                (!known).then(|| r#"{"code":-32602,"message":"linetender: no such log level"}"#.to_owned())
            });
            if let Some(error) = refused {
                return Wished::Answered(frame::error_reply(id, &error));
            }
            // Modern servers are told with each request. On a shared line nobody could say whose a message is.
            if self.listener.is_none() {
                self.level = level;
            }
            return Wished::Answered(frame::reply(id, "{}"));
        }
        let wanted = self.listener.zip(level);
        // The server is told the most verbose level that any of its agents wants, and says itself what it knows.
        let verbose = wanted.and_then(|(listener, level)| {
            let verbose = self.line.audience().level(listener, &level)?;
            (verbose != level).then(|| bridge::level(verbose))
        });
        Wished::Asked { params: verbose, undone: None }
    }

    /// The error for what a modern server does not offer.
    fn refused(&self, capability: &str, member: Option<&str>) -> Option<String> {
        let greeting = self.line.greeting()?;
        let all = Members::of(Members::of(&greeting.result)?.get("capabilities")?.get())?;
        let has = all.get(capability).is_some_and(|offered| {
            let on = |member| Members::of(offered.get())?.get(member).map(|on| on.get() == "true");
            member.is_none_or(|member| on(member).unwrap_or_default())
        });
        let words = r#"{"code":-32601,"message":"linetender: the server does not offer this"}"#;
        (!has).then(|| words.to_owned())
    }
}

//! What the agent wants to hear of by itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use linetender::{Era, Kind, session};
use linetender_wire::frame;
use linetender_wire::handshake::SUBSCRIPTION_IN_META;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::acts::Act;
use super::{State, extensions, tasks};
use crate::failed::{Failed, Full};
use crate::listing::View;

/// The most streams that an agent may have open.
const LISTENS: usize = 64;

/// The most resources that an agent may want to hear of, and the longest address of one, in bytes.
const RESOURCES: usize = 1024;
const ADDRESS: usize = 8 * 1024;

/// The most tasks that a stream may tell of.
const TASKS: usize = 256;

/// A modern agent's listening requests, by their id as it was spelt, and a legacy agent's resources.
#[derive(Debug, Default)]
pub(super) struct Listens {
    open: HashMap<Box<str>, Listen>,
    /// Own addresses, by their server's name.
    legacy: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
struct Listen {
    wants: Filter,
    /// The addresses that each server is asked to watch, by its name; the numbers of those that were asked.
    at: BTreeMap<String, Vec<String>>,
    asked: Vec<u64>,
}

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

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListenParams {
    notifications: Filter,
    #[serde(rename = "_meta")]
    meta: Option<Box<serde_json::value::RawValue>>,
}

impl Listens {
    /// The agent wants to hear no more: the servers that were asked.
    pub(super) fn end(&mut self, id: &str) -> Vec<u64> {
        self.open.remove(id).map(|listen| listen.asked).unwrap_or_default()
    }

    /// Nothing is left to hear of: each stream has its proper end.
    pub(super) fn end_all(&mut self) -> Vec<Bytes> {
        self.open.drain().map(|(id, _)| session::listened(&id, None)).collect()
    }

    /// A list changed: what each stream that asked for it is told.
    pub(super) fn changed(&self, kind: Kind) -> Vec<Bytes> {
        let wants = |wants: &Filter| match kind {
            Kind::Tools => wants.tools_list_changed,
            Kind::Prompts => wants.prompts_list_changed,
            Kind::Resources | Kind::Templates => wants.resources_list_changed,
        };
        let streams = self.open.iter().filter(|(_, listen)| wants(&listen.wants));
        streams
            .map(|(id, _)| {
                let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_IN_META}":{id}}}}}"#);
                frame::notification(kind.notification(), Some(&params))
            })
            .collect()
    }
}

impl State {
    /// A stream begins with what it will tell. Each server is asked for what it knows, under the same id.
    // MCP 2026-07-28, "Subscriptions": the acknowledgement is the first message.
    pub(super) fn listen(&mut self, id: &str, params: Option<&str>, view: &View) -> Vec<Act> {
        if self.listens.open.len() >= LISTENS {
            let failed = Failed::full(Full::Requests);
            return vec![Act::refuse(&failed, id, "subscriptions/listen", self.is_modern())];
        }
        let asked: ListenParams =
            params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let mut wants = asked.notifications;
        wants.resource_subscriptions.truncate(RESOURCES);
        wants.resource_subscriptions.retain(|uri| uri.len() <= ADDRESS);
        if !wants.task_ids.is_empty() && !params.is_some_and(tasks::declares) {
            return vec![Act::refuse(&tasks::undeclared(), id, "subscriptions/listen", self.is_modern())];
        }
        let (mut at, mut numbers) = (BTreeMap::<String, Vec<String>>::new(), Vec::new());
        let tasks = self.own_tasks(&mut wants.task_ids, view);
        numbers.extend(tasks.keys().copied());
        wants.resource_subscriptions.retain(|public| match view.named(Kind::Resources, public) {
            Some((route, own)) => {
                at.entry(route.berth.name().to_owned()).or_default().push(own);
                if !numbers.contains(&route.berth.number) {
                    numbers.push(route.berth.number);
                }
                true
            }
            None => false,
        });
        let agreed = json!({ "_meta": {}, "notifications": wants });
        let agreed = agreed.to_string().replacen("{}", &format!(r#"{{"{SUBSCRIPTION_IN_META}":{id}}}"#), 1);
        let told = frame::notification("notifications/subscriptions/acknowledged", Some(&agreed));
        let mut acts = vec![Act::Tell(told.into())];
        let meta = asked.meta.map(|meta| meta.get().to_owned());
        for number in &numbers {
            let Some(route) = view.route(*number) else { continue };
            let uris = at.get(route.berth.name()).map(Vec::as_slice).unwrap_or_default();
            let tasks = tasks.get(number).map(Vec::as_slice).unwrap_or_default();
            acts.push(Act::Say(*number, listen_request(id, uris, tasks, meta.as_deref()).into()));
        }
        self.listens.open.insert(id.into(), Listen { wants, at, asked: numbers });
        acts
    }

    /// Leaves those tasks of which the agent can be told: its own, of servers that tell of them. What each server calls them.
    // The extension `io.modelcontextprotocol/tasks`, "Task Status Notifications".
    fn own_tasks(&self, tasks: &mut Vec<String>, view: &View) -> BTreeMap<u64, Vec<String>> {
        let (mut at, mut seen) = (BTreeMap::<u64, Vec<String>>::new(), BTreeSet::new());
        // Alone at its address a server's tasks have their own names, which are not known here.
        tasks.truncate(if view.is_of_one() { 0 } else { TASKS });
        tasks.retain(|public| {
            let Some((number, own)) = self.tasks.find(public).filter(|_| seen.insert(public.clone())) else {
                return false;
            };
            let declared = view.route(number).and_then(|route| route.berth.line.declared());
            let tells = declared.is_some_and(|declared| {
                declared.era == Era::Modern && declared.extensions.contains_key(extensions::TASKS)
            });
            if tells {
                at.entry(number).or_default().push(own);
            }
            tells
        });
        at
    }

    /// What a server is asked that took another's place. Tasks are lost with theirs.
    pub(super) fn resubscribe(&mut self, to: u64, server: &str) -> Vec<Bytes> {
        let mut texts = Vec::new();
        match self.era {
            Some(Era::Legacy) => {
                for uri in self.listens.legacy.get(server).cloned().unwrap_or_default() {
                    texts.push(self.own_request("resources/subscribe", &json!({ "uri": uri }).to_string()));
                }
            }
            Some(Era::Modern) | None => {
                for (id, listen) in &mut self.listens.open {
                    if let Some(uris) = listen.at.get(server).filter(|_| !listen.asked.contains(&to)) {
                        listen.asked.push(to);
                        texts.push(listen_request(id, uris, &[], None));
                    }
                }
            }
        }
        texts
    }

    /// Keeps in mind what a legacy agent wants to hear of.
    pub(super) fn note_subscription(&mut self, method: &str, server: &str, own: &str) {
        let wanted = self.listens.legacy.entry(server.to_owned()).or_default();
        match method {
            "resources/subscribe" if wanted.len() < RESOURCES => {
                wanted.insert(own.to_owned());
            }
            "resources/unsubscribe" => {
                wanted.remove(own);
            }
            _ => {}
        }
    }

    /// Whether the agent wants to hear of something that this server has.
    pub(crate) fn listens_to(&self, server: &str) -> bool {
        self.listens.legacy.get(server).is_some_and(|uris| !uris.is_empty())
            || self.listens.open.values().any(|listen| listen.at.contains_key(server))
    }
}

fn listen_request(id: &str, uris: &[String], tasks: &[String], meta: Option<&str>) -> Bytes {
    let meta = meta.map(|meta| format!(r#""_meta":{meta},"#)).unwrap_or_default();
    let mut wants = json!({ "resourceSubscriptions": uris });
    if !tasks.is_empty() {
        wants["taskIds"] = json!(tasks);
    }
    let params = format!(r#"{{{meta}"notifications":{wants}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#).into()
}

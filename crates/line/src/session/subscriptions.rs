//! What an agent wants to hear of by itself, wherever the server's own era would have put it.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use linetender_wire::frame::{self, Frame};
use linetender_wire::handshake::{Era, SUBSCRIPTION_IN_META};
use serde::{Deserialize, Serialize};

use super::{Open, bridge};
use crate::audience::with_wholes;
use crate::basics::code::Code;
use crate::basics::kind::Kind;
use crate::basics::params::{with_meta_member, without_modern_meta};
use crate::generation::RESOURCES;

/// The most streams that an agent may have open.
const LISTENS: usize = 64;

/// The longest address of a resource that an agent may want to hear of, in bytes.
const ADDRESS: usize = 8 * 1024;

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

impl Open {
    /// What can be answered without the server, because the server's era or the others on the line want it otherwise.
    pub(super) fn answer_locally(&mut self, id: &str, method: &str, params: Option<&str>) -> Option<Bytes> {
        match (self.era, method) {
            (Era::Modern, "subscriptions/listen") => Some(self.listen(id, params)),
            (Era::Legacy, "logging/setLevel") => self.set_level(id, params),
            (Era::Legacy, "resources/subscribe" | "resources/unsubscribe") => {
                self.subscribe(id, method == "resources/subscribe", params)
            }
            _ => None,
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
        let agreed = serde_json::to_string(&notifications).unwrap_or_default();
        self.subscriptions.0.insert(id.into(), notifications);
        tagged("notifications/subscriptions/acknowledged", id, Some(&format!(r#""notifications":{agreed}"#)))
    }

    /// The agent wants to hear no more of it.
    pub(super) fn unlisten(&mut self, id: &str) {
        let Some(gone) = self.subscriptions.0.remove(id) else { return };
        let others = self.subscriptions.0.values().flat_map(|filter| &filter.resource_subscriptions);
        let others: HashSet<&String> = others.collect();
        gone.resource_subscriptions
            .iter()
            .filter(|uri| !others.contains(uri))
            .for_each(|uri| self.want_not(uri));
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

    /// A legacy agent that is alone with a legacy server asks it itself.
    fn subscribe(&self, id: &str, wants: bool, params: Option<&str>) -> Option<Bytes> {
        if self.listener.is_none() && self.line.era() != Some(Era::Modern) {
            return None;
        }
        let Resource { uri } = serde_json::from_str(params?).ok()?;
        if !wants {
            self.want_not(&uri);
        } else if !self.want(&uri) {
            let message = format!("subscription limit of this server reached ({RESOURCES})");
            return Some(frame::error_reply(id, &Code::Overloaded.error(&message)));
        }
        Some(frame::reply(id, "{}"))
    }

    fn set_level(&mut self, id: &str, params: Option<&str>) -> Option<Bytes> {
        let Level { level } = serde_json::from_str(params?).ok()?;
        match self.listener {
            // What a modern server logs belongs to one request, and on a shared line nobody could say to whose.
            Some(_) if self.line.era() == Some(Era::Modern) => Some(frame::reply(id, "{}")),
            Some(listener) => {
                let verbose = self.line.audience().level(listener, &level);
                if let (Some(verbose), Some(Era::Legacy)) = (verbose, self.line.era()) {
                    self.line.wish_level(&bridge::level(verbose));
                }
                Some(frame::reply(id, "{}"))
            }
            None if self.line.era() == Some(Era::Modern) => {
                // Modern servers are told with each request.
                self.level = Some(level);
                Some(frame::reply(id, "{}"))
            }
            None => None,
        }
    }
}

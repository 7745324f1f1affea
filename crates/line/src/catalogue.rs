//! What a server offers: tools, prompts, resources. Read anew each generation, compared, and kept while it is down.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use linetender_wire::frame::{Message, Outcome};
use linetender_wire::http::headers::{Invalid, ParamHeaders};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::dial::Link;
use crate::entry::Reply;

/// The most pages of one list that are read.
const PAGES: usize = 50;

/// What a server offers, as it was spelt.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The generation that it was read from; zero if none of this line was read yet.
    pub generation: u64,
    lists: BTreeMap<Kind, Vec<Item>>,
    /// Lists that the server says it has, and that were never read.
    unread: BTreeSet<Kind>,
    /// Lists that this generation did not give: they are what they were.
    kept: BTreeSet<Kind>,
    /// Whether it was known before this line.
    remembered: bool,
}

/// Which list.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Item {
    name: String,
    text: Box<str>,
    safe: bool,
}

/// How one list differs from what it was.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Change {
    /// New names.
    pub added: Vec<String>,
    /// Names that are gone.
    pub removed: Vec<String>,
    /// Names that mean something else now.
    pub changed: Vec<String>,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Whether a notification says that one of these changed.
    pub(crate) fn changed_by(method: &str) -> bool {
        Self::ALL.iter().any(|kind| kind.notification() == method)
    }

    /// The notification that says that it changed.
    pub const fn notification(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }

    /// What a server that has such a list names in its capabilities.
    const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The list that a method asks for.
    pub(crate) fn asked_by(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that lists it.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of the answer that it stands in.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }
}

impl Catalogue {
    /// The entries of a list, raw, in the server's order.
    pub fn list(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.lists.get(&kind).into_iter().flatten().map(|item| &*item.text)
    }

    /// What was known of the server before this line: it is shown, but it is nobody's word that a tool is safe.
    pub(crate) fn remembered(lists: BTreeMap<Kind, Vec<Box<RawValue>>>) -> Self {
        let items = |list: Vec<Box<RawValue>>| list.iter().map(|entry| Item::of(entry).hearsay()).collect();
        let lists = lists.into_iter().map(|(kind, list)| (kind, items(list))).collect();
        Self { lists, remembered: true, ..Self::default() }
    }

    /// Its lists, to be known the next time.
    pub(crate) fn to_remember(&self) -> BTreeMap<Kind, Vec<Box<RawValue>>> {
        let raw = |item: &Item| RawValue::from_string(item.text.to_string()).ok();
        self.lists.iter().map(|(kind, list)| (*kind, list.iter().filter_map(raw).collect())).collect()
    }

    /// Which lists there are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.lists.keys().copied()
    }

    /// Whether it says anything of the server, be it of this line or of one before.
    pub(crate) fn is_known(&self) -> bool {
        self.generation > 0 || self.remembered
    }

    /// Whether every list that the server has was read from it.
    pub(crate) fn is_whole(&self) -> bool {
        self.generation > 0 && self.unread.is_empty() && self.kept.is_empty()
    }

    /// A whole list as the result of asking for it, if it is known.
    pub(crate) fn result(&self, kind: Kind) -> Option<String> {
        let items = self.lists.get(&kind)?;
        let entries: Vec<&str> = items.iter().map(|item| &*item.text).collect();
        Some(format!(r#"{{"{}":[{}]}}"#, kind.member(), entries.join(",")))
    }

    /// Whether the server calls this tool read-only or idempotent.
    pub(crate) fn declares_safe(&self, tool: &str) -> bool {
        self.lists.get(&Kind::Tools).into_iter().flatten().any(|item| item.name == tool && item.safe)
    }

    /// Which arguments of which tools a modern server wants to see in headers.
    pub(crate) fn mirrored(&self) -> HashMap<String, ParamHeaders> {
        let tools = self.lists.get(&Kind::Tools).into_iter().flatten();
        tools
            .filter_map(|item| Some((item.name.clone(), item.mirrored().ok()?)))
            .filter(|(_, one)| !one.is_empty())
            .collect()
    }

    /// What is different now, per list; nothing if nothing is.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<(Kind, Change)> {
        let none = Vec::new();
        let lists = |catalogue: &Self, kind| catalogue.lists.get(&kind).cloned().unwrap_or_default();
        let mut changes = Vec::new();
        for kind in Kind::ALL {
            // What could not be read has not changed.
            if before.unread.contains(&kind) || self.unread.contains(&kind) {
                continue;
            }
            let (old, new) = (lists(before, kind), self.lists.get(&kind).unwrap_or(&none));
            let named = |list: &[Item], name: &str| list.iter().position(|item| item.name == name);
            let mut change = Change::default();
            for item in new {
                match named(&old, &item.name) {
                    None => change.added.push(item.name.clone()),
                    Some(at) if old[at].text != item.text => change.changed.push(item.name.clone()),
                    Some(_) => {}
                }
            }
            change.removed = old
                .iter()
                .filter(|item| named(new, &item.name).is_none())
                .map(|item| item.name.clone())
                .collect();
            if change != Change::default() {
                changes.push((kind, change));
            }
        }
        changes
    }

    /// Whether a list could be read at all.
    pub(crate) fn is_read(&self, kind: Kind) -> bool {
        !self.unread.contains(&kind)
    }

    /// Reads all lists that the server says it has. A list that fails keeps what it was, and says so; if it never was
    /// anything, it stays unread: an empty list would be a lie, and the next one a change that never happened. `None` if
    /// the generation is over.
    pub(crate) async fn read(link: &Arc<Link>, meta: Option<String>, before: &Self) -> Option<Self> {
        let greeting = link.greeting.get();
        let capabilities: serde_json::Value = greeting
            .and_then(|greeting| serde_json::from_str(&greeting.result).ok())
            .map(|result: serde_json::Value| result["capabilities"].clone())
            .unwrap_or_default();
        let (mut lists, mut unread, mut was_kept) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        for kind in Kind::ALL {
            if capabilities.get(kind.capability()).is_none() {
                continue;
            }
            let items = if let Some(mut items) = read_list(link, kind, meta.as_deref()).await {
                // MCP 2026-07-28, Streamable HTTP: a tool whose annotations break the rules is not to be offered.
                if kind == Kind::Tools && meta.is_some() && link.reach.has_exchanges() {
                    items.retain(Item::may_be_called);
                }
                items
            } else {
                if link.ledger.is_sealed() {
                    return None;
                }
                tracing::warn!(list = kind.member(), "a list could not be read; the last one is kept");
                let Some(kept) = before.lists.get(&kind) else {
                    unread.insert(kind);
                    continue;
                };
                was_kept.insert(kind);
                // It is shown, but it is not this generation's word: nothing is safe because of it.
                kept.iter().map(Item::hearsay).collect()
            };
            lists.insert(kind, items);
        }
        Some(Self { generation: link.generation.number(), lists, unread, kept: was_kept, remembered: false })
    }
}

async fn read_list(link: &Arc<Link>, kind: Kind, meta: Option<&str>) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let mut params = serde_json::Map::new();
        if let Some(cursor) = cursor.take() {
            params.insert("cursor".into(), cursor.into());
        }
        if let Some(meta) = meta.and_then(|meta| serde_json::from_str(meta).ok()) {
            params.insert("_meta".into(), meta);
        }
        let params = serde_json::Value::Object(params).to_string();
        let Ok(Reply::Answer(frame)) = link.ask(kind.method(), Some(&params))?.await else { return None };
        let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message() else {
            return None;
        };
        let page: BTreeMap<String, Box<RawValue>> = serde_json::from_str(result).ok()?;
        let entries: Vec<Box<RawValue>> = serde_json::from_str(page.get(kind.member())?.get()).ok()?;
        items.extend(entries.into_iter().map(|entry| Item::of(&entry)));
        cursor = page.get("nextCursor").and_then(|cursor| serde_json::from_str(cursor.get()).ok());
        if cursor.is_none() {
            return Some(items);
        }
    }
    Some(items)
}

impl Item {
    fn mirrored(&self) -> Result<ParamHeaders, Invalid> {
        #[derive(Deserialize)]
        struct Tool<'a> {
            #[serde(borrow, rename = "inputSchema")]
            schema: &'a RawValue,
        }
        match serde_json::from_str::<Tool<'_>>(&self.text) {
            Ok(tool) => ParamHeaders::of(tool.schema.get()),
            Err(_) => Ok(ParamHeaders::default()),
        }
    }

    fn may_be_called(&self) -> bool {
        match self.mirrored() {
            Ok(_) => true,
            Err(invalid) => {
                tracing::warn!(tool = %self.name, %invalid, "a tool is not offered: its headers break the rules");
                false
            }
        }
    }

    fn hearsay(&self) -> Self {
        Self { safe: false, ..self.clone() }
    }

    fn of(entry: &RawValue) -> Self {
        #[derive(Default, Deserialize)]
        struct Looked {
            #[serde(default)]
            name: String,
            #[serde(default)]
            uri: String,
            #[serde(default, rename = "uriTemplate")]
            template: String,
            #[serde(default)]
            annotations: Option<Annotations>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Annotations {
            read_only_hint: bool,
            idempotent_hint: bool,
        }
        let looked: Looked = serde_json::from_str(entry.get()).unwrap_or_default();
        let name = [looked.uri, looked.template, looked.name]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        let safe = looked.annotations.is_some_and(|hints| hints.read_only_hint || hints.idempotent_hint);
        Self { name, text: entry.get().into(), safe }
    }
}

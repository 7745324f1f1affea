//! Reading a server's lists: page by page, no more than so much, and compared with what was known before.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use linetender_wire::aside;
use linetender_wire::frame::{Frame, Message, Outcome};
use linetender_wire::http::headers::ParamHeaders;
use serde_json::value::RawValue;

use super::hidden::Hidden;
use super::item::Item;
use super::shelf::{Good, Shelf};
use super::{Catalogue, Change, Kind};
use crate::book::Reply;
use crate::generation::Live;
use crate::keys::KeyRing;

/// The most pages of one list that are read.
const PAGES: usize = 200;

/// The most entries of one list that are kept, and how many bytes they may have together. No model could be shown more.
const ENTRIES: usize = 20_000;
const BYTES: usize = 8 * 1024 * 1024;

/// The longest name of an entry, in bytes. Names are in logs, errors and headers; what is longer is left out.
const NAME: usize = 8 * 1024;

/// Work on more text than this is done where it holds up no other task.
const LONG: usize = 64 * 1024;

/// A list that takes longer than this is waited for, but the others are not kept back for it.
const SLOW: Duration = Duration::from_secs(2);

/// What was read, and what the tender and others need to know of it: nobody has to look at it again.
pub(crate) struct Reading {
    pub(crate) catalogue: Catalogue,
    /// How it differs from the one before; nothing, if there was none.
    pub(crate) changes: Vec<(Kind, Change)>,
    /// Which arguments of which tools a modern server wants to see in headers; `None` if the tools were not asked for.
    pub(crate) mirrored: Option<HashMap<String, ParamHeaders>>,
}

/// What came of asking for a list.
enum Came {
    /// All of it.
    List(List),
    /// The server says that it has no such list, whatever its capabilities say: many have resources and no templates.
    Absent,
    /// Nothing that can be used.
    Nothing,
}

/// JSON-RPC 2.0: the server does not know the method.
const METHOD_NOT_FOUND: i64 = -32601;

/// One list.
#[derive(Clone, Default)]
struct List {
    items: Vec<Item>,
    safe: Vec<String>,
    read_only: Vec<String>,
    bytes: usize,
    cut: bool,
    good: Option<Good>,
}

impl Reading {
    /// Reads those of the `wanted` lists that the server says it has; the others stay what they are. A list that fails keeps what it
    /// was, and says so; if it never was anything, it stays unread: an empty list would be a lie, and the next one a change that never
    /// happened. `None` if the generation is over.
    ///
    /// Each list has `limit` to come. While one lets us wait, those that came are told: a list that hangs must not keep the
    /// others from agents.
    pub(crate) async fn of<Told: Future<Output = ()>>(
        (server, link): (&str, &Live),
        wanted: &BTreeSet<Kind>,
        keys: Option<Arc<KeyRing>>,
        meta: Option<String>,
        mut before: Arc<Catalogue>,
        limit: Duration,
        tell: impl Fn(Self) -> Told,
    ) -> Option<Self> {
        let capabilities: serde_json::Value = serde_json::from_str(&link.greeting.result)
            .ok()
            .map(|result: serde_json::Value| result["capabilities"].clone())
            .unwrap_or_default();
        let mut read: BTreeMap<Kind, List> = BTreeMap::new();
        let generation = link.generation.number();
        let headers = link.reach.has_exchanges();
        // MCP 2026-07-28, Streamable HTTP: a tool whose annotations break the rules is not to be offered.
        let strict = headers && meta.is_some();
        // Of another generation nothing stays: that was its word.
        let all = before.generation != generation;
        let asked: BTreeSet<Kind> =
            Kind::ALL.into_iter().filter(|kind| all || wanted.contains(kind)).collect();
        let offered: Vec<Kind> =
            asked.iter().copied().filter(|kind| capabilities.get(kind.capability()).is_some()).collect();
        let told: Arc<BTreeSet<Kind>> = Arc::new(link.tells_of().collect());
        let (mut unread, mut kept) = (BTreeSet::new(), BTreeSet::new());
        for (place, kind) in offered.iter().copied().enumerate() {
            let mut reading =
                pin!(tokio::time::timeout(limit, read_list(link, keys.as_deref(), kind, meta.as_deref())));
            let list = match tokio::time::timeout(SLOW, &mut reading).await {
                Ok(list) => list,
                Err(_) if read.is_empty() => reading.await,
                Err(_) => {
                    let rest = offered[place..].iter().copied();
                    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
                        rest.partition(|kind| before.lists.contains_key(kind));
                    let without = (&unread | &new, &kept | &old);
                    let (part, of, asked) = (read.clone(), Arc::clone(&before), asked.clone());
                    let long = is_long(&part);
                    let told = Arc::clone(&told);
                    let part =
                        move || compared(generation, (part, asked), without, (&of, &told), (headers, strict));
                    if let Some(part) = worked(long, part).await {
                        part.warn(server, &before);
                        before = Arc::new(part.catalogue.clone());
                        tell(part).await;
                    }
                    reading.await
                }
            };
            match list {
                Ok(Came::List(list)) => {
                    read.insert(kind, list);
                    continue;
                }
                Ok(Came::Absent) => continue,
                Ok(Came::Nothing) | Err(_) => {}
            }
            if link.ledger.is_sealed() {
                return None;
            }
            // Said once, not for each try: a server decides how often its lists are read.
            if before.lists.contains_key(&kind) {
                if !before.kept.contains(&kind) {
                    tracing::warn!(
                        server,
                        list = kind.member(),
                        "list refresh failed; keeping the previous list"
                    );
                }
                kept.insert(kind);
            } else {
                if !before.unread.contains(&kind) {
                    tracing::warn!(server, list = kind.member(), "list refresh failed; retrying");
                }
                unread.insert(kind);
            }
        }
        let long = is_long(&read);
        let of = Arc::clone(&before);
        let whole =
            move || compared(generation, (read, asked), (unread, kept), (&of, &told), (headers, strict));
        let whole = worked(long, whole).await?;
        whole.warn(server, &before);
        Some(whole)
    }

    /// Logs what is not offered of what was read. Once: the server decides how often its lists are read.
    fn warn(&self, server: &str, before: &Catalogue) {
        for kind in self.catalogue.cut.difference(&before.cut) {
            let list = kind.member();
            tracing::warn!(
                server,
                list,
                entries = ENTRIES,
                bytes = BYTES,
                "list truncated: too many entries, too long, or with overlong names"
            );
        }
        if self.catalogue.hidden != before.hidden {
            self.catalogue.hidden.warn(server);
        }
    }
}

fn is_long(read: &BTreeMap<Kind, List>) -> bool {
    read.values().map(|list| list.bytes).sum::<usize>() > LONG
}

/// Does this here, or aside if it is long.
async fn worked<T: Send + 'static>(long: bool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if long { aside(work).await } else { Some(work()) }
}

/// Puts together what was read of what was asked for, and what was not asked for, and compares it.
fn compared(
    generation: u64,
    (mut read, asked): (BTreeMap<Kind, List>, BTreeSet<Kind>),
    (unread, kept): (BTreeSet<Kind>, BTreeSet<Kind>),
    (before, told): (&Catalogue, &BTreeSet<Kind>),
    (headers, strict): (bool, bool),
) -> Reading {
    let (mut mirrored, mut hidden) = (HashMap::new(), Hidden::default());
    if let Some(tools) = read.get_mut(&Kind::Tools).filter(|_| headers) {
        (mirrored, hidden) = mirror(tools, strict);
    }
    let with_rest = |kinds: BTreeSet<Kind>, rest: &BTreeSet<Kind>| &kinds | &(rest - &asked);
    let cut = read.iter().filter(|(_, list)| list.cut).map(|(kind, _)| *kind).collect();
    let cut = with_rest(cut, &before.cut);
    // What is kept is shown, but it is not this generation's word: nothing is safe because of it.
    let (safe, read_only): (HashSet<String>, HashSet<String>) = read
        .get_mut(&Kind::Tools)
        .map(|tools| (tools.safe.drain(..).collect(), tools.read_only.drain(..).collect()))
        .unwrap_or_default();
    let good_now = read.iter().filter_map(|(kind, list)| Some((*kind, list.good?)));
    let good_before = kept.iter().filter_map(|kind| Some((*kind, before.shelf.good(*kind)?)));
    let shelf = Shelf::new(good_now.chain(good_before).collect(), told)
        .with_rest(&before.shelf, |kind| !asked.contains(&kind));
    let (mut safe, mut read_only) = (Arc::new(safe), Arc::new(read_only));
    let tools_were_asked = asked.contains(&Kind::Tools);
    if !tools_were_asked {
        (safe, read_only) = (Arc::clone(&before.safe), Arc::clone(&before.read_only));
        hidden = before.hidden.clone();
    }
    let mut lists: BTreeMap<Kind, Arc<Vec<Item>>> = BTreeMap::new();
    for (kind, list) in read {
        let same = before.lists.get(&kind).filter(|old| ***old == list.items);
        lists.insert(kind, same.cloned().unwrap_or_else(|| Arc::new(list.items)));
    }
    let stays = |kind: &Kind| kept.contains(kind) || !asked.contains(kind);
    lists.extend(
        before.lists.iter().filter(|(kind, _)| stays(kind)).map(|(kind, old)| (*kind, Arc::clone(old))),
    );
    let catalogue = Catalogue {
        generation,
        lists,
        safe,
        read_only,
        unread: with_rest(unread, &before.unread),
        kept: with_rest(kept, &before.kept),
        cut,
        hidden,
        remembered: false,
        shelf,
    };
    let changes = if before.is_known() { catalogue.changes_since(before) } else { Vec::new() };
    Reading { catalogue, changes, mirrored: tools_were_asked.then_some(mirrored) }
}

/// The headers that each tool wants; where the rules are strict, tools that break them are taken out.
fn mirror(tools: &mut List, strict: bool) -> (HashMap<String, ParamHeaders>, Hidden) {
    let (mut mirrored, mut hidden) = (HashMap::new(), Hidden::default());
    tools.items.retain(|tool| match tool.mirrored() {
        Ok(headers) => {
            if !headers.is_empty() {
                mirrored.insert(tool.name.clone(), headers);
            }
            true
        }
        Err(invalid) if strict => {
            hidden.add(&tool.name, &invalid);
            false
        }
        Err(_) => true,
    });
    (mirrored, hidden)
}

async fn read_list(link: &Live, keys: Option<&KeyRing>, kind: Kind, meta: Option<&str>) -> Came {
    read_pages(link, keys, kind, meta).await.unwrap_or(Came::Nothing)
}

async fn read_pages(link: &Live, keys: Option<&KeyRing>, kind: Kind, meta: Option<&str>) -> Option<Came> {
    let mut list = List::default();
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
        let frame = ask(link, keys, kind, &params).await?;
        // A server that has tools and cannot list them is broken: what was known of them stays, and it is asked again.
        if kind != Kind::Tools && is_unknown_method(&frame) {
            return Some(Came::Absent);
        }
        let long = frame.text().len() > LONG;
        (list, cursor) = worked(long, move || list.and(&frame, kind)).await??;
        if cursor.is_none() || list.cut {
            return Some(Came::List(list));
        }
    }
    list.cut = true;
    Some(Came::List(list))
}

fn is_unknown_method(frame: &Frame) -> bool {
    #[derive(serde::Deserialize)]
    struct Said {
        code: i64,
    }
    let Message::Response { outcome: Some((Outcome::Error, error)), .. } = frame.message() else {
        return false;
    };
    serde_json::from_str::<Said>(error).is_ok_and(|said| said.code == METHOD_NOT_FOUND)
}

/// Asks for a page, and once more if the key was refused and there is another.
async fn ask(link: &Live, keys: Option<&KeyRing>, kind: Kind, params: &str) -> Option<Frame> {
    match link.ask_when_room(kind.method(), Some(params)).await?.await {
        Ok(Reply::Answer(frame)) => return Some(frame),
        Ok(Reply::Lost(lost)) => keys?.renewed(lost.refused.as_ref()?, true).await.ok()?,
        _ => return None,
    }
    match link.ask_when_room(kind.method(), Some(params)).await?.await {
        Ok(Reply::Answer(frame)) => Some(frame),
        _ => None,
    }
}

impl List {
    /// With one more page, and where the next one is; `None` if it is no page.
    fn and(mut self, page: &Frame, kind: Kind) -> Option<(Self, Option<String>)> {
        let Message::Response { outcome: Some((Outcome::Result, result)), .. } = page.message() else {
            return None;
        };
        let page: BTreeMap<String, &RawValue> = serde_json::from_str(result).ok()?;
        let ttl = page.get("ttlMs").and_then(|ttl| serde_json::from_str(ttl.get()).ok());
        let scope = page.get("cacheScope").and_then(|scope| serde_json::from_str::<String>(scope.get()).ok());
        let good = Good::of(ttl, scope.as_deref());
        self.good = match (self.good, good) {
            (Some(before), Some(good)) => Some(before.and(good)),
            (before, good) => before.or(good),
        };
        let entries: Vec<&RawValue> = serde_json::from_str(page.get(kind.member())?.get()).ok()?;
        for entry in entries {
            let bytes = self.bytes + entry.get().len();
            if self.items.len() >= ENTRIES || bytes > BYTES {
                self.cut = true;
                break;
            }
            self.bytes = bytes;
            let (item, hints) = Item::of(entry);
            if item.name.len() > NAME {
                self.cut = true;
                continue;
            }
            if hints.read_only_hint && kind == Kind::Tools {
                self.read_only.push(item.name.clone());
            }
            if (hints.read_only_hint || hints.idempotent_hint) && kind == Kind::Tools {
                self.safe.push(item.name.clone());
            }
            self.items.push(item);
        }
        let next = page.get("nextCursor").and_then(|cursor| serde_json::from_str(cursor.get()).ok());
        Some((self, next))
    }
}

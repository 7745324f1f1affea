//! What many servers offer together, as it is listed: the gateway's order, then each server's own.

use std::collections::HashMap;
use std::sync::Arc;

use bytestring::ByteString;
use linetender::{Catalogue, Kind};
use linetender_wire::frame::{Members, respell, sole, string};
use linetender_wire::http::headers::ParamHeaders;

use crate::apps;
use crate::config::Entry;
use crate::grant::Grant;
use crate::names::Naming;
use crate::splice::Splice;

/// A list of nothing.
const EMPTY: ByteString = ByteString::from_static("[]");

/// The four lists, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// As raw JSON.
    lists: [ByteString; Kind::ALL.len()],
}

/// One server's part of the lists, under the names of one address. Made once for each catalogue of the server.
#[derive(Debug)]
pub(crate) struct Part {
    catalogue: Arc<Catalogue>,
    /// The entries of each list, with commas between them; once they are in an offer, a part of its text.
    entries: [ByteString; Kind::ALL.len()],
    /// How many bytes its catalogue has.
    pub(crate) weight: usize,
    /// The tools whose arguments are to be in headers too, by the server's own names. Hardly any are.
    pub(crate) mirrored: Arc<HashMap<String, ParamHeaders>>,
}

/// A server at an address, as somebody sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) grant: &'a Grant,
    pub(crate) naming: &'a Naming,
}

impl Default for Offer {
    fn default() -> Self {
        Self { lists: Kind::ALL.map(|_| EMPTY) }
    }
}

impl Part {
    pub(crate) fn of(of: Shown<'_>, catalogue: Arc<Catalogue>) -> Self {
        let mut weight = 0;
        let entries = Kind::ALL.map(|kind| {
            let own = catalogue.list(kind).inspect(|text| weight += text.len());
            own.filter_map(|text| shown(kind, of, text)).collect::<Vec<_>>().join(",").into()
        });
        let mirrored = Arc::new(catalogue.list(Kind::Tools).filter_map(mirrored).collect());
        Self { catalogue, entries, weight, mirrored }
    }

    /// The catalogue that it was made of, to be told from others.
    pub(crate) fn origin(&self) -> *const Catalogue {
        Arc::as_ptr(&self.catalogue)
    }

    /// Whether it was made of these lists. A server that comes back has another catalogue, and mostly the same lists.
    pub(crate) fn is_of(&self, catalogue: &Arc<Catalogue>) -> bool {
        Arc::ptr_eq(&self.catalogue, catalogue) || self.catalogue.shares_lists_with(catalogue)
    }
}

impl Offer {
    /// Puts together what these servers offer. A list that is what it was before is the same text: then it is known
    /// without a look at it that it did not change.
    pub(crate) fn of(parts: &[Arc<Part>], before: Option<&Self>) -> Self {
        let list = |at: usize| {
            let list =
                joined(parts.iter().map(|part| &*part.entries[at]).filter(|entries| !entries.is_empty()));
            match before.map(|before| &before.lists[at]).filter(|old| **old == list) {
                Some(old) => old.clone(),
                None => list,
            }
        };
        Self { lists: std::array::from_fn(list) }
    }

    /// The parts that it was made of, with its own text for theirs: thousands of servers' lists need not be kept twice.
    pub(crate) fn holding(&self, parts: Vec<Arc<Part>>) -> Vec<Arc<Part>> {
        // Where the next entries are, in each list: behind its bracket, and then behind a comma.
        let mut next = [1; Kind::ALL.len()];
        let held = |part: Arc<Part>| {
            let entries: [ByteString; Kind::ALL.len()] = std::array::from_fn(|at| {
                let (list, length) = (&self.lists[at], part.entries[at].len());
                if length == 0 {
                    return ByteString::default();
                }
                let from = next[at];
                next[at] += length + 1;
                list.get(from..from + length)
                    .map_or_else(ByteString::default, |entries| list.slice_ref(entries))
            });
            let same = |(one, other): (&ByteString, &ByteString)| {
                other.is_empty() || one.as_bytes().as_ptr() == other.as_bytes().as_ptr()
            };
            let is_held = entries.iter().zip(&part.entries).all(same);
            if is_held {
                return part;
            }
            let Part { catalogue, weight, mirrored, .. } = &*part;
            let (catalogue, mirrored) = (Arc::clone(catalogue), Arc::clone(mirrored));
            Arc::new(Part { catalogue, entries, weight: *weight, mirrored })
        };
        parts.into_iter().map(held).collect()
    }

    /// How many bytes it keeps.
    pub(crate) fn weight(&self) -> usize {
        self.lists.iter().map(|list| list.len()).sum()
    }

    /// Whether all lists are the same as those of an offer that this one was made after.
    pub(crate) fn is_same(&self, before: &Self) -> bool {
        self.lists.iter().zip(&before.lists).all(|(one, other)| same(one, other))
    }

    /// A list, as raw JSON.
    pub(crate) fn list(&self, kind: Kind) -> ByteString {
        let at = Kind::ALL.iter().position(|one| *one == kind);
        at.map_or(EMPTY, |at| self.lists[at].clone())
    }

    /// Which lists are others than they were.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<Kind> {
        let pairs = Kind::ALL.into_iter().zip(self.lists.iter().zip(&before.lists));
        pairs.filter(|(_, (now, before))| !same(now, before)).map(|(kind, _)| kind).collect()
    }
}

/// A list of these, in a text that has no room to spare: there may be thousands of servers behind one.
fn joined<'a>(entries: impl Iterator<Item = &'a str> + Clone) -> ByteString {
    let length: usize = entries.clone().map(|entries| entries.len() + 1).sum();
    if length == 0 {
        return EMPTY;
    }
    let mut list = String::with_capacity(length + 1);
    for entries in entries {
        list.push(if list.is_empty() { '[' } else { ',' });
        list.push_str(entries);
    }
    list.push(']');
    list.into()
}

/// Whether two lists are the same. Nearly always they are the same text, or differ in length.
fn same(one: &ByteString, other: &ByteString) -> bool {
    std::ptr::eq(one.as_bytes().as_ptr(), other.as_bytes().as_ptr()) || one == other
}

/// Whether a thing of this name is let through.
pub(crate) fn lets(kind: Kind, entry: &Entry, grant: &Grant, own: &str) -> bool {
    let shown = match kind {
        Kind::Tools => entry.tools.lets(own),
        Kind::Prompts => entry.prompts.lets(own),
        Kind::Resources | Kind::Templates => entry.resources.lets_uri(own),
    };
    shown && grant.lets(kind, own)
}

/// The name of a tool that wants some of its arguments in headers, and which.
fn mirrored(tool: &str) -> Option<(String, ParamHeaders)> {
    if !tool.contains("x-mcp-header") {
        return None;
    }
    let members = Members::of(tool)?;
    // One whose annotations break the rules is for agents to leave out.
    let headers = ParamHeaders::of(members.get("inputSchema")?.get()).ok().filter(|all| !all.is_empty())?;
    Some((members.string("name")?.into_owned(), headers))
}

/// An entry of a list under the name that agents know; `None` if it is not to be seen.
fn shown(kind: Kind, of: Shown<'_>, text: &str) -> Option<String> {
    let member = match kind {
        Kind::Tools | Kind::Prompts => "name",
        Kind::Resources => "uri",
        Kind::Templates => "uriTemplate",
    };
    // What one reader takes for something hidden and another does not is not shown.
    let value = sole(text, member).ok()??;
    let own = string(value)?;
    if !lets(kind, of.entry, of.grant, &own) {
        return None;
    }
    let public = match kind {
        Kind::Tools => of.naming.name(of.entry.tools.shown(&own)),
        Kind::Prompts => of.naming.name(&own),
        Kind::Resources | Kind::Templates => of.naming.uri(&own),
    };
    let mut splice = Splice::of(text);
    let description = of.entry.tools.description(&own).filter(|_| kind == Kind::Tools);
    match (description, description.and_then(|_| sole(text, "description").transpose())) {
        // One reader would take the old one for it.
        (Some(_), Some(Err(_))) => return None,
        (Some(new), Some(Ok(old))) => {
            splice.put(value, &public);
            splice.put(old, new);
        }
        (Some(new), None) => {
            splice.put_raw(value, format!(r#"{},"description":{}"#, respell(&public), respell(new)));
        }
        (None, _) => splice.put(value, &public),
    }
    if kind == Kind::Tools {
        apps::name_pages(text, &mut splice, of.naming);
    }
    Some(splice.done().into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Offer, Part, Shown, shown};
    use crate::config::load;
    use crate::grant::Grant;
    use crate::names::Naming;
    use bytestring::ByteString;
    use linetender::Kind;
    use std::sync::Arc;

    #[test]
    fn the_lists_of_many_servers_are_kept_once() {
        let part = |tools: &'static str, prompts: &'static str| {
            let entries = [tools, prompts, "", ""].map(|entries| ByteString::from(entries.to_owned()));
            Arc::new(Part { catalogue: Arc::default(), entries, weight: 0, mirrored: Arc::default() })
        };
        let parts = vec![
            part(r#"{"name":"a"},{"name":"b"}"#, ""),
            part("", r#"{"name":"p"}"#),
            part(r#"{"name":"ü"}"#, ""),
        ];
        let offer = Offer::of(&parts, None);
        assert_eq!(&*offer.list(Kind::ALL[0]), r#"[{"name":"a"},{"name":"b"},{"name":"ü"}]"#);
        assert_eq!([1, 2].map(|at| offer.list(Kind::ALL[at]).to_string()), [r#"[{"name":"p"}]"#, "[]"]);
        let held = offer.holding(parts.clone());
        for (now, before) in held.iter().zip(&parts) {
            assert_eq!(now.entries, before.entries, "the same text");
            for (at, entries) in now.entries.iter().enumerate().filter(|(_, entries)| !entries.is_empty()) {
                let list = offer.lists[at].as_bytes().as_ptr_range();
                assert!(list.contains(&entries.as_bytes().as_ptr()), "and none of its own");
            }
        }
        // What is made of the same is the same, and nothing of it is made again.
        let again = Offer::of(&held, Some(&offer));
        assert!(again.is_same(&offer));
        let kept = again.holding(held.clone());
        assert!(kept.iter().zip(&held).all(|(one, other)| Arc::ptr_eq(one, other)));
    }

    #[test]
    fn an_address_that_leads_out_of_a_filter_is_not_let_through() {
        let config =
            load("t", "[servers.a]\ncommand='x'\nresources.include=['file:///pub/*']", &|_| None).unwrap();
        let lets = |uri: &str| super::lets(Kind::Resources, &config.servers[0], &Grant::Whole, uri);
        assert!(lets("file:///pub/x") && lets("file:///pub/..x/.y") && lets("file:///pub/x?a=/../"));
        for out in ["../priv", "./x", "x/../../priv", "%2E%2e/priv", "..%2fpriv", "..\\priv", ".."] {
            assert!(!lets(&format!("file:///pub/{out}")), "{out}");
        }
    }

    #[test]
    fn only_the_name_of_an_entry_is_another() {
        let config = load("t", "[servers.a]\ncommand='x'\ntools.exclude=['no*']", &|_| None).unwrap();
        let of = Shown { entry: &config.servers[0], grant: &Grant::Whole, naming: &Naming::of("a", "__") };
        let tool = r#"{ "x":1.50, "name" : "echo", "inputSchema":{"name":"echo"} }"#;
        assert_eq!(
            shown(Kind::Tools, of, tool).unwrap(),
            r#"{ "x":1.50, "name" : "a__echo", "inputSchema":{"name":"echo"} }"#
        );
        for hidden in [r#"{"name":"nope"}"#, r#"{"name":"a","Name":"nope"}"#, r#"{"name":"a","name":"nope"}"#]
        {
            assert_eq!(shown(Kind::Tools, of, hidden), None, "{hidden}");
        }
        let described = "[servers.a]\ncommand='x'\ntools={rename={echo='say'},describe={echo='says \"it\"'}}";
        let config = load("t", described, &|_| None).unwrap();
        let told = Shown { entry: &config.servers[0], ..of };
        for (own, expected) in [
            (
                tool,
                Some(
                    r#"{ "x":1.50, "name" : "a__say","description":"says \"it\"", "inputSchema":{"name":"echo"} }"#,
                ),
            ),
            (r#"{"description":7,"name":"echo"}"#, Some(r#"{"description":"says \"it\"","name":"a__say"}"#)),
            (r#"{"name":"say"}"#, None),
            (r#"{"name":"echo","description":"a","Description":"b"}"#, None),
            (r#"{"name":"other","description":"b"}"#, Some(r#"{"name":"a__other","description":"b"}"#)),
        ] {
            assert_eq!(shown(Kind::Tools, told, own).as_deref(), expected, "{own}");
        }
        assert_eq!(shown(Kind::Prompts, told, r#"{"name":"echo"}"#).unwrap(), r#"{"name":"a__echo"}"#);
        let resource = r#"{"name":"n","uri":"file:///x"}"#;
        assert_eq!(
            shown(Kind::Resources, of, resource).unwrap(),
            r#"{"name":"n","uri":"linetender://a/file:///x"}"#
        );
        assert_eq!(shown(Kind::Resources, of, "7"), None, "what has no name cannot be asked for");
    }
}

//! What many servers offer together, as it is listed: the gateway's order, then each server's own.

use std::sync::Arc;

use linetender::{Catalogue, Kind};
use linetender_wire::frame::{Members, string};

use crate::config::Entry;
use crate::names::Naming;
use crate::splice::Splice;

/// The four lists, ready to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Offer {
    lists: [Arc<str>; Kind::ALL.len()],
}

impl Default for Offer {
    fn default() -> Self {
        Self { lists: Kind::ALL.map(|_| Arc::from("[]")) }
    }
}

impl Offer {
    /// Puts together what these servers offer.
    pub(crate) fn of<'a>(
        servers: &(impl Iterator<Item = (&'a Entry, &'a Naming, &'a Catalogue)> + Clone),
    ) -> Self {
        let list = |kind| {
            let entries: Vec<String> = servers
                .clone()
                .flat_map(|(entry, naming, catalogue)| {
                    catalogue.list(kind).filter_map(move |text| shown(kind, entry, naming, text))
                })
                .collect();
            Arc::from(format!("[{}]", entries.join(",")))
        };
        Self { lists: Kind::ALL.map(list) }
    }

    /// A list, as raw JSON.
    pub(crate) fn list(&self, kind: Kind) -> &str {
        let at = Kind::ALL.iter().position(|one| *one == kind);
        at.map_or("[]", |at| &*self.lists[at])
    }

    /// Which lists are others than they were.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| self.list(*kind) != before.list(*kind)).collect()
    }
}

/// Whether a thing of this name is let through.
pub(crate) fn lets(kind: Kind, entry: &Entry, own: &str) -> bool {
    match kind {
        Kind::Tools => entry.tools.lets(own),
        Kind::Prompts => entry.prompts.lets(own),
        Kind::Resources | Kind::Templates => entry.resources.lets(own),
    }
}

/// An entry of a list under the name that agents know; `None` if it is not to be seen.
fn shown(kind: Kind, entry: &Entry, naming: &Naming, text: &str) -> Option<String> {
    let member = match kind {
        Kind::Tools | Kind::Prompts => "name",
        Kind::Resources => "uri",
        Kind::Templates => "uriTemplate",
    };
    let value = Members::of(text)?.get(member)?;
    let own = string(value)?;
    if !lets(kind, entry, &own) {
        return None;
    }
    let public = match kind {
        Kind::Tools | Kind::Prompts => naming.name(&own),
        Kind::Resources | Kind::Templates => naming.uri(&own),
    };
    let mut splice = Splice::of(text);
    splice.put(value, &public);
    Some(splice.done().into_owned())
}

#[cfg(test)]
mod tests {
    use super::shown;
    use crate::config::load;
    use crate::names::Naming;
    use linetender::Kind;

    #[test]
    fn only_the_name_of_an_entry_is_another() {
        let config = load("t", "[servers.a]\ncommand='x'\ntools.exclude=['no*']", &|_| None).unwrap();
        let (entry, naming) = (&config.servers[0], Naming::of("a", "__"));
        let tool = r#"{ "x":1.50, "name" : "echo", "inputSchema":{"name":"echo"} }"#;
        assert_eq!(
            shown(Kind::Tools, entry, &naming, tool).unwrap(),
            r#"{ "x":1.50, "name" : "a__echo", "inputSchema":{"name":"echo"} }"#
        );
        assert_eq!(shown(Kind::Tools, entry, &naming, r#"{"name":"nope"}"#), None);
        let resource = r#"{"name":"n","uri":"file:///x"}"#;
        assert_eq!(
            shown(Kind::Resources, entry, &naming, resource).unwrap(),
            r#"{"name":"n","uri":"linetender://a/file:///x"}"#
        );
        assert_eq!(shown(Kind::Resources, entry, &naming, "7"), None, "what has no name cannot be asked for");
    }
}

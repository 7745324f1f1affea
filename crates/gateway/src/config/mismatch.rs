//! What a config says of tools and prompts that the server does not have: most often a name is misspelt, and then a filter hides less,
//! or more, than it was meant to.

use std::borrow::Cow;
use std::fmt;

use linetender::{Catalogue, Kind, visible};
use linetender_wire::frame::{sole, string};

use super::access::Whom;
use super::build::Entry;
use super::filter::{Filter, is_hidden_by, matches};

/// The most characters of a name that is repeated.
const SHOWN: usize = 128;

/// Something in a config that does not fit what the server lists.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// A tool of the server is hidden, because another was given its name.
    Replaced {
        /// The name, which is the hidden tool's own.
        name: String,
        /// The tool that was renamed to it.
        by: String,
    },
    /// The server lists nothing of this name, or nothing that a pattern matches.
    Unmatched {
        /// Where it stands, such as `tools.exclude`.
        setting: String,
        /// The name or pattern.
        name: String,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |name| visible::cut(name, SHOWN);
        match self {
            Self::Replaced { name, by } => {
                let (name, by) = (short(name), short(by));
                write!(f, "the server's own tool `{name}` is hidden, because `{by}` is renamed to `{name}`")
            }
            Self::Unmatched { setting, name } => {
                write!(
                    f,
                    "`{}` in {} matches nothing that the server lists",
                    short(name),
                    visible::cut(setting, SHOWN)
                )
            }
        }
    }
}

impl Entry {
    /// What of the config does not fit these lists. A list that is empty, or longer than is kept, says nothing.
    pub fn mismatches(&self, catalogue: &Catalogue) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let whole =
            |kind| Some(names(kind, catalogue)).filter(|names| !names.is_empty() && !catalogue.is_cut(kind));
        if let Some(tools) = whole(Kind::Tools) {
            let has = |name: &str| tools.iter().any(|tool| tool == name);
            unmatched("tools", self.tools.filter(), &tools, &mut found);
            for (setting, name) in self.tools.named().filter(|(_, name)| !has(name)) {
                found
                    .push(Mismatch::Unmatched { setting: format!("tools.{setting}"), name: name.to_owned() });
            }
            let replaced = self.tools.replaced().filter(|(name, _)| has(name));
            found.extend(
                replaced.map(|(name, by)| Mismatch::Replaced { name: name.to_owned(), by: by.to_owned() }),
            );
            for (whom, share) in self.access.rules() {
                unmatched(&format!("access.{}.tools", spelt(whom)), &share.tools, &tools, &mut found);
            }
        }
        if let Some(prompts) = whole(Kind::Prompts) {
            unmatched("prompts", &self.prompts, &prompts, &mut found);
            for (whom, share) in self.access.rules() {
                unmatched(&format!("access.{}.prompts", spelt(whom)), &share.prompts, &prompts, &mut found);
            }
        }
        found
    }

    /// Whether there is anything that could fail to fit.
    pub(crate) fn may_mismatch(&self) -> bool {
        !(self.tools.is_open()
            && self.prompts.is_open()
            && self.access.rules().iter().all(|(_, share)| share.is_open()))
    }
}

fn unmatched(setting: &str, filter: &Filter, names: &[Cow<'_, str>], found: &mut Vec<Mismatch>) {
    let lists = [("include", &filter.include), ("exclude", &filter.exclude)];
    for (list, pattern) in
        lists.iter().flat_map(|(list, patterns)| patterns.iter().map(move |one| (list, one)))
    {
        // Who hides everything need not know what there is.
        if pattern != "*" && !names.iter().any(|name| is_met(list, pattern, name)) {
            found.push(Mismatch::Unmatched { setting: format!("{setting}.{list}"), name: pattern.clone() });
        }
    }
}

fn is_met(list: &str, pattern: &str, name: &str) -> bool {
    if list == "include" { matches(pattern, name) } else { is_hidden_by(pattern, name) }
}

fn names(kind: Kind, catalogue: &Catalogue) -> Vec<Cow<'_, str>> {
    catalogue.list(kind).filter_map(|text| string(sole(text, "name").ok()??)).collect()
}

fn spelt(whom: &Whom) -> String {
    match whom {
        Whom::Everybody => "*".to_owned(),
        Whom::Name(name) => name.clone(),
        Whom::Group(name) => format!("group:{name}"),
    }
}

//! A server's tools: which are shown, under which names, and with which descriptions.
//!
//! Filters, access rules and `safe_tools` are written in the server's own names; a rename is the last thing that happens on the way to
//! an agent and the first on the way back. A shown name has one owner, which the config alone decides: so what a call means does not
//! depend on what a server happens to list.

use std::collections::BTreeMap;

use linetender::visible;
use schemars::JsonSchema;
use serde::Deserialize;

use super::filter::Filter;

/// The longest name that a tool may be given (MCP 2025-11-25, "Tool Names").
const LONGEST: usize = 128;

/// Which tools are listed and callable, and as what. Every key is a name that the server uses itself.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ToolsTable {
    /// Names to show; `*` matches any text [default: all].
    pub(super) include: Vec<String>,
    /// Names to hide, even if they match `include`.
    pub(super) exclude: Vec<String>,
    /// New names: `{ own_name = "shown_name" }`. A renamed tool is listed and callable under its new name only.
    pub(super) rename: BTreeMap<String, String>,
    /// Descriptions that replace the server's: `{ own_name = "text" }`.
    pub(super) describe: BTreeMap<String, String>,
}

/// The tools of a server as agents see them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tools {
    filter: Filter,
    /// From own names to shown ones, and back.
    renamed: BTreeMap<String, String>,
    owners: BTreeMap<String, String>,
    described: BTreeMap<String, String>,
}

/// What is wrong with the table: where (`rename`, and which of its keys), what, and what to do.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Wrong {
    pub(super) table: &'static str,
    pub(super) key: String,
    pub(super) what: String,
    pub(super) help: &'static str,
}

impl Tools {
    pub(super) fn of(table: ToolsTable, safe_tools: &[String]) -> Result<Self, Wrong> {
        let ToolsTable { include, exclude, rename, describe } = table;
        let mut tools = Self {
            filter: Filter { include, exclude },
            renamed: BTreeMap::new(),
            owners: BTreeMap::new(),
            described: BTreeMap::new(),
        };
        for (own, shown) in rename {
            tools.rename(own, shown)?;
        }
        for own in tools.filter.include.iter().filter(|name| !name.contains('*')).chain(describe.keys()) {
            tools.is_no_shown_name(own)?;
        }
        for own in safe_tools {
            tools.is_no_shown_name(own)?;
        }
        for (own, text) in &describe {
            let wrong = |what: String, help| Wrong { table: "describe", key: own.clone(), what, help };
            tools.is_shown_tool(own).map_err(|(what, help)| wrong(what, help))?;
            if text.trim().is_empty() {
                return Err(wrong(format!("the description of `{}` is empty", name(own)), "write a text"));
            }
        }
        tools.described = describe;
        Ok(tools)
    }

    fn rename(&mut self, own: String, shown: String) -> Result<(), Wrong> {
        let wrong = |what: String, help| Err(Wrong { table: "rename", key: own.clone(), what, help });
        if let Err((what, help)) = self.is_shown_tool(&own) {
            return wrong(what, help);
        }
        if !is_tool_name(&shown) {
            return wrong(
                format!("the new name of `{}` is not a valid tool name", name(&own)),
                "use 1 to 128 letters, digits, `_`, `-` and `.`",
            );
        }
        if let Some(other) = self.owners.get(&shown) {
            return wrong(
                format!("`{}` and `{}` would both be named `{shown}`", name(other), name(&own)),
                "give each tool a name of its own",
            );
        }
        self.owners.insert(shown.clone(), own.clone());
        self.renamed.insert(own, shown);
        Ok(())
    }

    /// Whether a key names one tool, which is shown.
    fn is_shown_tool(&self, own: &str) -> Result<(), (String, &'static str)> {
        if own.is_empty() || own.contains('*') {
            return Err((
                "a tool is named in full here: `*` is no wildcard, and an empty name names nothing"
                    .to_owned(),
                "write one line for each tool",
            ));
        }
        if !self.filter.lets(own) {
            return Err((
                format!("`{}` is hidden by `include` or `exclude`", name(own)),
                "filters use the server's own names, not the new ones: show the tool, or remove this line",
            ));
        }
        Ok(())
    }

    /// Refuses a name that stands for a tool of the server, but that another tool is to be shown under.
    fn is_no_shown_name(&self, own: &str) -> Result<(), Wrong> {
        match self.owners.get(own) {
            Some(other) if other != own && !self.renamed.contains_key(own) && self.filter.lets(own) => {
                let what = format!(
                    "`{}` is renamed to `{}`, which is used as a tool's own name",
                    name(other),
                    name(own)
                );
                let help = "everything but the new name itself is written in the server's own names; to show another tool in its place, rename or exclude that one";
                Err(Wrong { table: "rename", key: other.clone(), what, help })
            }
            _ => Ok(()),
        }
    }

    /// Whether a tool that the server calls so is shown. One whose name was given to another is not.
    pub fn lets(&self, own: &str) -> bool {
        self.filter.lets(own) && !self.is_replaced(own)
    }

    /// Whether all tools are shown as they are.
    pub fn is_open(&self) -> bool {
        self.hides_nothing() && self.described.is_empty()
    }

    /// Whether every tool can be called by its own name.
    pub(crate) fn hides_nothing(&self) -> bool {
        self.filter.is_open() && self.renamed.is_empty()
    }

    /// The name of a tool that is shown.
    pub fn shown<'a>(&'a self, own: &'a str) -> &'a str {
        self.renamed.get(own).map_or(own, String::as_str)
    }

    /// What the server calls the tool with this shown name; `None` if it has another name here.
    pub(crate) fn own<'a>(&'a self, shown: &'a str) -> Option<&'a str> {
        match self.owners.get(shown) {
            Some(own) => Some(own),
            None if self.renamed.contains_key(shown) => None,
            None => Some(shown),
        }
    }

    /// The description that replaces the server's.
    pub fn description(&self, own: &str) -> Option<&str> {
        self.described.get(own).map(String::as_str)
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Every own name that is written out, and where.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let renamed = self.renamed.keys().map(|own| ("rename", own.as_str()));
        renamed.chain(self.described.keys().map(|own| ("describe", own.as_str())))
    }

    /// Names that were given to other tools, and those.
    pub(super) fn replaced(&self) -> impl Iterator<Item = (&str, &str)> {
        let owners = self.owners.iter().map(|(shown, own)| (shown.as_str(), own.as_str()));
        owners.filter(|(shown, _)| self.is_replaced(shown) && self.filter.lets(shown))
    }

    /// Whether another tool has this one's name.
    fn is_replaced(&self, own: &str) -> bool {
        !self.renamed.contains_key(own) && self.owners.contains_key(own)
    }
}

/// Whether MCP allows it as the name of a tool.
// MCP 2025-11-25, "Tool Names".
fn is_tool_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain)
}

/// A name as it may be repeated.
fn name(name: &str) -> String {
    visible::cut(name, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::{Tools, ToolsTable, Wrong};

    fn tools(text: &str) -> Result<Tools, Wrong> {
        #[derive(serde::Deserialize)]
        struct Read {
            tools: ToolsTable,
            #[serde(default)]
            safe: Vec<String>,
        }
        let Read { tools, safe } = toml::from_str(text).unwrap();
        Tools::of(tools, &safe)
    }

    #[test]
    fn a_renamed_tool_has_its_new_name_only_and_nobody_elses() {
        let tools = tools("tools.rename={a='b',c='d',d='c'}\ntools.describe={a='does a'}").unwrap();
        assert_eq!(["a", "c", "d", "e"].map(|own| tools.shown(own)), ["b", "d", "c", "e"]);
        assert_eq!(["a", "b", "c", "d", "e"].map(|own| tools.lets(own)), [true, false, true, true, true]);
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|shown| tools.own(shown)),
            [None, Some("a"), Some("d"), Some("c"), Some("e")]
        );
        assert_eq!((tools.description("a"), tools.description("b")), (Some("does a"), None));
        assert!(!tools.is_open());
    }

    #[test]
    fn names_that_would_be_two_tools_or_none_are_refused() {
        for (text, key, said) in [
            ("tools.rename={a='x',b='x'}", "b", "would both be named `x`"),
            ("tools={include=['a','b'],rename={a='b'}}", "a", "used as a tool's own name"),
            ("tools={rename={a='b'},describe={b='text'}}", "a", "used as a tool's own name"),
            ("safe=['b']\ntools.rename={a='b'}", "a", "used as a tool's own name"),
            ("tools={include=['b'],rename={a='b'}}", "a", "hidden"),
            ("tools={exclude=['a*'],rename={a='b'}}", "a", "hidden"),
            ("tools={exclude=['a*'],describe={a='b'}}", "a", "hidden"),
            ("tools.rename={'a*'='b'}", "a*", "no wildcard"),
            ("tools.rename={''='b'}", "", "empty name"),
            ("tools.rename={a=''}", "a", "valid tool name"),
            ("tools.rename={a='b c'}", "a", "valid tool name"),
            ("tools.rename={a='größe'}", "a", "valid tool name"),
            ("tools.describe={a=' '}", "a", "is empty"),
        ] {
            let wrong = tools(text).unwrap_err();
            assert!(wrong.key == key && wrong.what.contains(said), "{text}: {wrong:?}");
        }
        let long = format!("tools.rename={{a='{}'}}", "x".repeat(129));
        assert!(tools(&long).is_err() && tools(&long.replacen('x', "", 1)).is_ok());
        for fine in [
            "tools={exclude=['b'],rename={a='b'}}",
            "tools={include=['a','b'],rename={a='b',b='a'}}",
            "tools.rename={a='a'}",
        ] {
            assert!(tools(fine).is_ok(), "{fine}");
        }
    }
}

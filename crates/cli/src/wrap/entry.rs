//! Where the servers stand in an agent's configuration. Agents agree on little, so a file is known by what is in it, not
//! by its name.

use std::collections::HashMap;

use super::tree::{Member, Node};

/// Nobody has more; the way back looks at each of them beside each.
pub(super) const MOST: usize = 4096;

/// One server, as an agent has it.
#[derive(Debug)]
pub(super) struct Entry<'t> {
    /// The keys that lead to it. A second one of the same name has its number before them.
    pub(super) path: Vec<String>,
    pub(super) dialect: Dialect,
    pub(super) node: &'t Node,
}

/// The words that an agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `command`, `args`, `env`; `url`, `headers`: nearly everybody.
    Plain,
    /// `command` is a list, the variables are in `environment`.
    Opencode,
    /// `http_headers`, and headers whose values are in the agent's environment.
    Codex,
}

impl Entry<'_> {
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

impl Dialect {
    /// The variables of a server that is a command.
    pub(super) const fn env(self) -> &'static str {
        match self {
            Self::Plain | Self::Codex => "env",
            Self::Opencode => "environment",
        }
    }

    /// The headers of a server at an address.
    pub(super) const fn headers(self) -> &'static str {
        match self {
            Self::Plain | Self::Opencode => "headers",
            Self::Codex => "http_headers",
        }
    }

    /// The `type` of a server that is a command, where an agent wants one.
    pub(super) const fn local(self) -> &'static str {
        match self {
            Self::Plain | Self::Codex => "stdio",
            Self::Opencode => "local",
        }
    }

    /// The `type` of a server at an address, where nobody remembers what it was.
    pub(super) const fn remote(self) -> &'static str {
        match self {
            Self::Plain | Self::Codex => "http",
            Self::Opencode => "remote",
        }
    }
}

/// The keys under which agents keep their servers, each a path from the top.
const PLACES: [&[&str]; 6] = [
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp.servers"],
    &["amp.mcpServers"],
    &["context_servers"],
];

/// All servers of a file, or `None` if it has no place for any.
pub(super) fn find(root: &Node) -> Option<Vec<Entry<'_>>> {
    let mut found = Found { any: false, seen: HashMap::new(), entries: Vec::new() };
    for place in PLACES {
        let table = place.iter().try_fold(root, |node, key| Some(&node.get(key)?.value));
        found.all(table, place, Dialect::Plain);
    }
    found.all(root.get("mcp_servers").map(|member| &member.value), &["mcp_servers"], Dialect::Codex);
    // Claude Code keeps the servers of each project beside its own.
    for project in root.get("projects").and_then(|member| member.value.table()).unwrap_or_default() {
        let table = project.value.get("mcpServers").map(|member| &member.value);
        found.all(table, &["projects", &project.key, "mcpServers"], Dialect::Plain);
    }
    found.opencode(root);
    found.any.then_some(found.entries)
}

struct Found<'t> {
    any: bool,
    /// How often each path came up.
    seen: HashMap<Vec<String>, usize>,
    entries: Vec<Entry<'t>>,
}

impl<'t> Found<'t> {
    fn all(&mut self, table: Option<&'t Node>, place: &[&str], dialect: Dialect) {
        let Some(members) = table.and_then(Node::table) else { return };
        self.any = true;
        for member in members {
            self.add(place, member, dialect);
        }
    }

    /// Others have an `mcp` too, with other things in it: only what says that it is a server is one.
    fn opencode(&mut self, root: &'t Node) {
        for member in root.get("mcp").and_then(|mcp| mcp.value.table()).unwrap_or_default() {
            let kind = member.value.get("type").and_then(|kind| kind.value.text());
            if matches!(kind, Some("local" | "remote")) {
                self.any = true;
                self.add(&["mcp"], member, Dialect::Opencode);
            }
        }
    }

    fn add(&mut self, place: &[&str], member: &'t Member, dialect: Dialect) {
        let path: Vec<String> = place.iter().map(|&key| key.to_owned()).chain([member.key.clone()]).collect();
        let seen = self.seen.entry(path.clone()).or_default();
        *seen += 1;
        let number = (*seen > 1).then(|| seen.to_string());
        self.entries.push(Entry {
            path: number.into_iter().chain(path).collect(),
            dialect,
            node: &member.value,
        });
    }
}

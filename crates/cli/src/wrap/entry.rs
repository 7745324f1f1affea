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
    /// `cmd`, `envs`, `uri`.
    Goose,
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
            Self::Goose => "envs",
        }
    }

    /// The headers of a server at an address.
    pub(super) const fn headers(self) -> &'static str {
        match self {
            Self::Plain | Self::Opencode | Self::Goose => "headers",
            Self::Codex => "http_headers",
        }
    }

    /// The `type` of a server that is a command, where an agent wants one.
    pub(super) const fn local(self) -> &'static str {
        match self {
            Self::Plain | Self::Codex | Self::Goose => "stdio",
            Self::Opencode => "local",
        }
    }

    /// The `type` of a server at an address, where nobody remembers what it was.
    pub(super) const fn remote(self) -> &'static str {
        match self {
            Self::Plain | Self::Codex => "http",
            Self::Opencode => "remote",
            Self::Goose => "streamable_http",
        }
    }

    /// The program of a server that is a command.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Plain | Self::Codex | Self::Opencode => "command",
            Self::Goose => "cmd",
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
    found.goose(root);
    found.named_inside(root);
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

    /// Most of goose's extensions are part of it.
    fn goose(&mut self, root: &'t Node) {
        for member in root.get("extensions").and_then(|all| all.value.table()).unwrap_or_default() {
            // Some have it all in a table of its own.
            let node = member.value.get("config").map_or(&member.value, |config| &config.value);
            let kind = node.get("type").and_then(|kind| kind.value.text());
            if matches!(kind, Some("stdio" | "sse" | "streamable_http")) {
                self.any = true;
                self.put(&["extensions"], &member.key, node, Dialect::Goose);
            }
        }
    }

    /// Continue has a list of servers, each with its name inside.
    fn named_inside(&mut self, root: &'t Node) {
        let Some(servers) = root.get("mcpServers").and_then(|all| all.value.list()) else { return };
        self.any = true;
        for server in servers {
            if let Some(name) = server.get("name").and_then(|name| name.value.text()) {
                self.put(&["mcpServers"], name, server, Dialect::Plain);
            }
        }
    }

    fn add(&mut self, place: &[&str], member: &'t Member, dialect: Dialect) {
        self.put(place, &member.key, &member.value, dialect);
    }

    fn put(&mut self, place: &[&str], name: &str, node: &'t Node, dialect: Dialect) {
        let path: Vec<String> = place.iter().map(|&key| key.to_owned()).chain([name.to_owned()]).collect();
        let seen = self.seen.entry(path.clone()).or_default();
        *seen += 1;
        let number = (*seen > 1).then(|| seen.to_string());
        self.entries.push(Entry { path: number.into_iter().chain(path).collect(), dialect, node });
    }
}

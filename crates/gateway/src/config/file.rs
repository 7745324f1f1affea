//! What can be written into a file. The schema in docs/ is made from this.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use linetender_wire::frame;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::schema::{policy, size, time};

/// How deep a message may be nested.
const DEPTH: usize = 128;

/// linetender's config file.
#[derive(Debug, Default, JsonSchema)]
#[schemars(title = "linetender")]
#[expect(dead_code, reason = "the schema is made from it; a file is read piece by piece, for the places")]
pub(super) struct File {
    /// The gateway itself.
    #[schemars(default)]
    gateway: Gateway,
    /// The servers behind it, by name.
    #[schemars(default)]
    servers: BTreeMap<String, ServerTable>,
}

/// The gateway's own settings. Times are written as `"10s"`, or in milliseconds; sizes as `"16MiB"`, or in bytes.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Gateway {
    /// Where agents connect to.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// What stands between a server's name and a tool's.
    pub separator: String,
    /// Whether what a server offers stays listed while it is down.
    pub keep_listed: bool,
    /// How long calls under way may take to end when the gateway is told to stop.
    #[schemars(schema_with = "time")]
    pub drain: u64,
    /// The most agents with a session at once.
    pub sessions: usize,
    /// How long a session may be unused before it is forgotten.
    #[schemars(schema_with = "time")]
    pub session_idle: u64,
    /// The most lines at once: one for each server, and one for each agent that has one of its own. Those of agents that have
    /// left count no more, though their processes may still be on their way out.
    pub lines: usize,
    /// The most connections at once.
    pub connections: usize,
    /// The largest message that an agent may send.
    #[schemars(schema_with = "size")]
    pub message: usize,
    /// Names under which agents may reach the gateway, beside those of this machine itself.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may talk to it, beside those of this machine itself: `https://example.com`.
    pub allowed_origins: Vec<String>,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7331)),
            separator: "__".to_owned(),
            keep_listed: true,
            drain: 10_000,
            sessions: 1024,
            session_idle: 30 * 60 * 1000,
            lines: 512,
            connections: 4096,
            message: 16 * 1024 * 1024,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl Gateway {
    /// How large and how deep an agent's message may be.
    pub(crate) fn limits(&self) -> frame::Limits {
        frame::Limits { length: self.message, depth: DEPTH }
    }

    /// The settings that are others there, by name.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let [own, others] = [self, other].map(|settings| serde_json::to_value(settings).unwrap_or_default());
        let own = own.as_object().into_iter().flatten();
        own.filter(|(name, value)| others.get(name) != Some(value)).map(|(name, _)| name.clone()).collect()
    }
}

/// One server: a command, or an address.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ServerTable {
    /// The program to run.
    pub(super) command: Option<String>,
    /// Its arguments.
    pub(super) args: Vec<String>,
    /// Variables for it, beside the few that every program needs.
    pub(super) env: BTreeMap<String, String>,
    /// Gives it the whole of our own environment.
    pub(super) inherit_env: bool,
    /// Where it runs.
    pub(super) dir: Option<PathBuf>,
    /// Its address, if it is somewhere else: `http://…` or `https://…`.
    pub(super) url: Option<String>,
    /// Headers for everything that is sent to its address.
    pub(super) headers: BTreeMap<String, String>,
    /// Which era of MCP it speaks.
    pub(super) era: Era,
    /// Whether agents share it.
    pub(super) scope: Scope,
    /// Whether it is started when the first agent comes, instead of with the gateway.
    pub(super) lazy: bool,
    /// Where its stderr goes.
    pub(super) stderr: Stderr,
    /// Whether it is left out.
    pub(super) disabled: bool,
    /// Which of its tools are shown and may be called.
    pub(super) tools: Filter,
    /// Which of its prompts are shown.
    pub(super) prompts: Filter,
    /// Which of its resources are shown and may be read, by their addresses.
    pub(super) resources: Filter,
    /// Tools that may be run again when nobody knows whether they ran.
    pub(super) safe_tools: Vec<String>,
    /// Every number of its line. Times are written as `"5m"`, or in milliseconds; sizes as `"16MiB"`, or in bytes.
    #[schemars(schema_with = "policy")]
    pub(super) policy: linetender_core::Settings,
}

/// Where a server's stderr goes. Its last lines are in errors in any case.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stderr {
    /// Nowhere.
    #[default]
    Off,
    /// Into the log, redacted and cut.
    Log,
    /// To the gateway's stderr.
    Pass,
}

/// Which era of MCP a server speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Era {
    /// It is asked.
    #[default]
    Auto,
    /// 2026-07-28 and later.
    Modern,
    /// Up to 2025-11-25.
    Legacy,
}

/// Whether agents share a server.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One line for all.
    #[default]
    Shared,
    /// A line for each agent that has a session: for servers that keep something per client, or ask their client questions.
    Session,
}

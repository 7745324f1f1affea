//! What can be written into a file. The schema in docs/ is made from this.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use linetender_core::{RetryOn, ServerState, Tree};
use linetender_wire::frame;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Share;
use super::admin::Admin;
use super::agents::AgentAuth;
use super::audit::AuditFile;
use super::auth::AuthTable;
use super::filter::Filter;
use super::fleet::{Fleet, Placed};
use super::listen::{Listen, LocalUser, Socket, refusal};
use super::schema::{policy, retry_on, size, state, time, tree, users};
use super::tls::{self, Half, TlsFile, TlsFiles};
use super::tools::ToolsTable;
use crate::budget::of_this_machine;

/// How deep a message may be nested.
const DEPTH: usize = 128;

/// linetender's config file.
#[derive(Debug, Default, JsonSchema)]
#[schemars(title = "linetender")]
#[expect(dead_code, reason = "the schema is made from it; a file is read piece by piece, for the places")]
pub(super) struct File {
    /// Settings of the gateway.
    #[schemars(default)]
    gateway: Gateway,
    /// Servers by name.
    #[schemars(default)]
    servers: BTreeMap<String, ServerTable>,
}

/// Settings of the gateway. Durations: `"10s"`, or milliseconds; sizes: `"16MiB"`, or bytes.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Gateway {
    /// Address and port that the gateway listens on, or `"off"` (the Unix socket alone). Any address but loopback needs
    /// `auth`, or `insecure = true`.
    #[schemars(with = "String")]
    pub listen: Listen,
    /// Unix socket that the gateway listens on as well (absolute path, mode 0600), or `"off"`. Without it:
    /// `gateway.sock` in the runtime folder (`$XDG_RUNTIME_DIR/linetender`).
    #[schemars(with = "Option<String>")]
    pub socket: Option<Socket>,
    /// Users of this machine who may connect, by name or uid. Without it: only the user that the gateway runs as (root is
    /// no exception).
    #[schemars(schema_with = "users")]
    pub local_users: Option<Vec<LocalUser>>,
    /// Admit everybody who can reach the address, without authentication: other users of this machine, and other machines
    /// if `listen` is not loopback.
    pub insecure: bool,
    /// Certificate for TLS: a PEM file (absolute path) with the certificate of this host first, then those of its issuers. With it the
    /// address speaks `https://` alone; the Unix socket stays as it is. Needs `tls_key`. A renewed file is used for new connections
    /// without a restart.
    #[schemars(with = "Option<String>")]
    pub tls_certificate: Option<TlsFile>,
    /// Private key of `tls_certificate`: a PEM file (absolute path), not encrypted, that other users cannot read.
    #[schemars(with = "Option<String>")]
    pub tls_key: Option<TlsFile>,
    /// Separator between server name and tool name at `/mcp`.
    pub separator: String,
    /// Keep the tools, prompts and resources of a server listed while it is down.
    pub keep_listed: bool,
    /// Drain timeout: how long pending calls may take to finish at shutdown.
    #[schemars(schema_with = "time")]
    pub drain: u64,
    /// Maximum number of concurrent agent sessions; fewer if `memory` is small.
    pub sessions: usize,
    /// Idle timeout of a session; after it the session is evicted.
    #[schemars(schema_with = "time")]
    pub session_idle: u64,
    /// Maximum number of server connections: one per server, plus one per principal for `scope = "identity"` and one per agent session
    /// for `scope = "session"`.
    /// Connections of disconnected agents do not count, even while their processes are still exiting.
    pub lines: usize,
    /// Maximum number of concurrent connections from agents.
    pub connections: usize,
    /// Memory of the gateway, without its servers. Three eighths of it are for unfinished requests, unread responses and resumable
    /// streams of all agents together, one eighth is for sessions (64 KiB each). `0`: a quarter of the memory of the machine or of the control group, whichever is less.
    #[schemars(schema_with = "size")]
    pub memory: usize,
    /// Maximum size of a message from an agent.
    #[schemars(schema_with = "size")]
    pub message: usize,
    /// Additional host names allowed in the Host header; localhost, IP addresses and the host of `public_url` always are.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call the gateway: origins allowed in the Origin header, such as `https://example.com` or
    /// `http://localhost:*` (any port). Without it: none but the gateway's own.
    pub allowed_origins: Vec<String>,
    /// URL at which agents reach the gateway, without `/mcp`: `https://mcp.example.com`. Needed behind a proxy: tokens are issued
    /// for it.
    pub public_url: Option<String>,
    /// How agents show who they are. Without it: by the user of this machine that they run as.
    pub auth: AgentAuth,
    /// Audit file: one line per call. Without it: none.
    pub audit: AuditFile,
    /// Requests per second of one principal, in the long run; `0`: any number. More are refused with status 429.
    pub principal_rate: u32,
    /// Requests of one principal in progress at once, streams included; `0`: any number. More are refused with status 429.
    pub principal_requests: u32,
    /// Address for administrators.
    pub admin: Admin,
    /// Several gateways that share their servers.
    pub fleet: Fleet,
    /// Largest result of a tool, of servers that do not say otherwise; larger ones are cut. `0`: any size.
    #[schemars(schema_with = "size")]
    pub result_limit: usize,
}

/// About what a session keeps beside its messages: its tasks and queues, what it knows of each server, the numbers of its calls.
const SESSION: usize = 64 * 1024;

/// Sessions for which there is always room.
const FEW_SESSIONS: usize = 16;

impl Default for Gateway {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7331)).into(),
            socket: None,
            local_users: None,
            insecure: false,
            tls_certificate: None,
            tls_key: None,
            separator: "__".to_owned(),
            keep_listed: true,
            drain: 10_000,
            sessions: 1024,
            session_idle: 30 * 60 * 1000,
            lines: 512,
            connections: 4096,
            memory: 0,
            message: 16 * 1024 * 1024,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            public_url: None,
            auth: AgentAuth::default(),
            audit: AuditFile::default(),
            principal_rate: 0,
            principal_requests: 4096,
            admin: Admin::default(),
            fleet: Fleet::default(),
            result_limit: 0,
        }
    }
}

impl Gateway {
    /// How large and how deep an agent's message may be.
    pub(crate) fn limits(&self) -> frame::Limits {
        frame::Limits { length: self.message, depth: DEPTH }
    }

    /// The memory that the gateway may use, in bytes.
    fn own_memory(&self) -> usize {
        if self.memory == 0 { of_this_machine() } else { self.memory }
    }

    /// The budget for the messages that agents make the gateway keep, in bytes. With its reserve, which is an eighth of it, that
    /// is three eighths of the memory.
    pub(crate) fn budget(&self) -> usize {
        self.own_memory() / 3
    }

    /// How many sessions there may be, in the memory that there is for them.
    pub(crate) fn session_limit(&self) -> usize {
        self.sessions.min((self.own_memory() / 8 / SESSION).max(FEW_SESSIONS))
    }

    /// Why the gateway must not listen as these settings say, if that is so: a sentence for whoever starts it.
    pub fn refusal(&self) -> Option<String> {
        refusal(self.listen, self.insecure, self.local_users.as_deref(), self.auth.is_on())
    }

    /// Whether agents may act for principals who are strangers to each other.
    pub(crate) fn has_strangers(&self) -> bool {
        self.auth.is_on() || self.insecure || self.local_users.as_ref().is_some_and(|users| users.len() > 1)
    }

    /// How addresses of the gateway begin.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls_certificate.is_some() { "https" } else { "http" }
    }

    /// The files for TLS, if the address is to speak it.
    pub(crate) fn tls(&self) -> Result<Option<TlsFiles>, Half> {
        tls::files(self.tls_certificate.as_ref(), self.tls_key.as_ref())
    }

    /// Names of the settings that differ.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let [own, others] = [self, other].map(|settings| serde_json::to_value(settings).unwrap_or_default());
        let own = own.as_object().into_iter().flatten();
        own.filter(|(name, value)| others.get(name) != Some(value)).map(|(name, _)| name.clone()).collect()
    }
}

/// One server: a command or a URL.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct ServerTable {
    /// Program to start.
    pub(super) command: Option<String>,
    /// Arguments of the program.
    pub(super) args: Vec<String>,
    /// Environment variables of the server process, in addition to a minimal set (`PATH`, `HOME`, …).
    pub(super) env: BTreeMap<String, String>,
    /// Pass linetender's whole environment to the server process.
    pub(super) inherit_env: bool,
    /// Working directory of the server process.
    pub(super) dir: Option<PathBuf>,
    /// URL of a remote server: `http://…` or `https://…`.
    pub(super) url: Option<String>,
    /// Transport of the URL.
    pub(super) transport: Transport,
    /// HTTP headers for every request to the URL. `${file:PATH}` in a value stands for what the file holds; it is read before
    /// each connection, and when the server refuses the credentials.
    pub(super) headers: BTreeMap<String, String>,
    /// How to get credentials for the URL that change.
    pub(super) auth: AuthTable,
    /// MCP protocol era of the server.
    pub(super) era: Era,
    /// Share one connection among all agents, or open one per principal or per agent session. If not said: shared, but per agent
    /// session for a program that is known to keep state in memory.
    pub(super) scope: Option<Scope>,
    /// Run the server in one gateway of the fleet at a time, or in each. Means nothing without `gateway.fleet`, or for a URL.
    pub(super) fleet: Placed,
    /// Start the server on first use instead of with the gateway.
    pub(super) lazy: bool,
    /// Destination of the server's stderr.
    pub(super) stderr: Stderr,
    /// Ignore this server.
    pub(super) disabled: bool,
    /// Tools: which are listed and callable, and under which names and descriptions.
    pub(super) tools: ToolsTable,
    /// Filter for prompts: which are listed.
    pub(super) prompts: Filter,
    /// Filter for resources, by URI: which are listed and readable.
    pub(super) resources: Filter,
    /// Who sees this server, and what of it: principals by name (`alice@example.com`, `token:ci`, `uid:1000`), groups (`group:dev`),
    /// or everybody (`*`). Each that matches adds what it lets through. Without it: everybody sees everything.
    pub(super) access: Option<BTreeMap<String, Share>>,
    /// Tools that may be retried even if they may already have been executed.
    pub(super) safe_tools: Vec<String>,
    /// Verdicts after which linetender sends a call again. `not-executed`: linetender counted that the server cannot have executed it. Every
    /// other word is a refusal of the server (`reads`: a request that reads), and linetender cannot check whether the call ran. `[]`: none.
    #[schemars(schema_with = "retry_on")]
    pub(super) retry_on: Option<RetryOn>,
    /// Retry tools that the server declares read-only or idempotent.
    pub(super) trust_annotations: Option<bool>,
    /// What the server keeps in memory between two calls. `none`: nothing, a restart is not reported. `unknown`: perhaps something; after
    /// a restart, the agent's next call is refused with a notice, unless its tool only reads or is one of `safe_tools`. `process`: a
    /// browser, a shell, a login; no call is executed before the notice, and none is sent again after a restart.
    #[schemars(schema_with = "state")]
    pub(super) state: Option<ServerState>,
    /// Time limit of each call, whatever the server sends. Without it, or if `quiet_limit` is set too, a call ends after
    /// `quiet_limit` of silence.
    #[schemars(schema_with = "time")]
    pub(super) call_timeout: Option<u64>,
    /// End a call when the server has sent neither a response nor progress for this long.
    #[schemars(schema_with = "time")]
    pub(super) quiet_limit: Option<u64>,
    /// Restart a server that has been silent for this long with calls in flight, health checks included.
    #[schemars(schema_with = "time")]
    pub(super) hang_after: Option<u64>,
    /// Restart a server that stays silent for this long after an agent cancelled its call.
    #[schemars(schema_with = "time")]
    pub(super) abandoned_after: Option<u64>,
    /// How long a call waits for a server that is restarting.
    #[schemars(schema_with = "time")]
    pub(super) wait: Option<u64>,
    /// Time out a start if the server sends nothing for this long.
    #[schemars(schema_with = "time")]
    pub(super) start_timeout: Option<u64>,
    /// Time out the MCP handshake this long after the server's first output.
    #[schemars(schema_with = "time")]
    pub(super) handshake_timeout: Option<u64>,
    /// Send a health check when the server has been idle for this long. Default: 30 s for a command, never for a URL.
    #[schemars(schema_with = "time")]
    pub(super) keepalive: Option<u64>,
    /// Stop a server that nobody has used for this long; the next call starts it again. Its tools stay listed.
    #[schemars(schema_with = "time")]
    pub(super) idle_stop: Option<u64>,
    /// What ends with the server's process. `all`: everything that it started. `server`: what is the server's; a process that left its
    /// tree on purpose (a tmux server, gpg-agent, `nohup setsid`) lives on. On Linux; elsewhere this is `all`.
    #[schemars(schema_with = "tree")]
    pub(super) tree: Option<Tree>,
    /// What a server leaves behind gets SIGTERM, and SIGKILL this long after that.
    #[schemars(schema_with = "time")]
    pub(super) crash_grace: Option<u64>,
    /// How long a server that is stopped may save its work: from SIGTERM to SIGKILL. At most a minute.
    #[schemars(schema_with = "time")]
    pub(super) close_timeout: Option<u64>,
    /// Maximum message size in either direction.
    #[schemars(schema_with = "size")]
    pub(super) max_message: Option<u32>,
    /// Largest result of a tool that agents get. Of a larger one they get the beginning, and a note that says where the whole can be read for a
    /// while. `0`: any size [default: `gateway.result_limit`].
    #[schemars(schema_with = "size")]
    pub(super) result_limit: Option<usize>,
    /// Let a call that carries a key (`linetender/call` in `_meta`, or the header `Idempotency-Key`) outlive its agent: it is executed once,
    /// and whoever asks again with the same key gets its outcome.
    pub(super) durable: Option<bool>,
    /// How long the outcome of such a call is kept, at least [default: 1h].
    #[schemars(schema_with = "time")]
    pub(super) durable_kept: Option<u64>,
    /// Maximum number of concurrent calls; more are queued.
    pub(super) in_flight: Option<u16>,
    /// All timeouts, retries and limits, also those that have no name of their own above. Durations: `"5m"`, or milliseconds; sizes: `"16MiB"`, or bytes.
    #[schemars(schema_with = "policy")]
    pub(super) policy: linetender_core::Settings,
}

/// Destination of a server's stderr. Errors quote its last lines in any case.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stderr {
    /// Discard it.
    #[default]
    Off,
    /// Write it to the log, redacted and truncated.
    Log,
    /// Pass it to the gateway's stderr.
    Pass,
}

/// MCP protocol era of a server.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Era {
    /// Detect it.
    #[default]
    Auto,
    /// 2026-07-28 and later (stateless).
    Modern,
    /// 2025-11-25 and earlier (sessions).
    Legacy,
}

/// Transport of a server with a URL.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Transport {
    /// Streamable HTTP; if the server does not know it, HTTP+SSE.
    #[default]
    Auto,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of MCP 2024-11-05 (deprecated).
    Sse,
}

/// Whether agents share a server connection.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One connection for all agents.
    #[default]
    Shared,
    /// One connection per principal: nothing that the server says for one can reach another.
    Identity,
    /// One connection per agent session: for servers with per-client state, or that send requests to their client.
    Session,
}

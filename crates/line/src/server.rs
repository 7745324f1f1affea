//! What the user configured: a name, how to reach it, and its policy.

mod allowed;
mod deadline;
mod http;
mod identity;
mod looks;
pub mod package;
mod stderr;
mod tool_errors;
mod transport;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linetender_core::{Policy, ServerState};
use linetender_wire::frame;
use linetender_wire::handshake::{Era, Eras, Hello};
use linetender_wire::hop::Way;
use linetender_wire::http::network::Network;
use linetender_wire::stdio::platform::Starter;
use linetender_wire::stdio::{Env, Lifeline, Program, Reaper};
use linetender_wire::{Elsewhere, Secrets};

use crate::keys::{Keys, Source};
use allowed::ALLOWED;
pub use deadline::Deadline;
use http::Address;
pub use http::HttpTransport;
pub use stderr::{Stderr, pass_stderr_to};
pub use tool_errors::ToolErrors;
pub use transport::Transport;

/// The variables that may name a proxy, with a password.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// A server: its name, how it is reached, and its policy.
///
/// It begins as a [program](Self::stdio) or an [address](Self::http); what means something for one of them alone can be said
/// to that one alone. Either becomes a `Server`, which is what lines are opened to.
///
/// ```
/// use linetender::{Eras, Server};
///
/// let git = Server::stdio("git", ["mcp-server-git"]).env("GIT_DIR", "/srv/repo").safe_tool("git_status");
/// let search = Server::http("search", "https://mcp.example.com/mcp").header("authorization", "Bearer …");
/// let both: [Server; 2] = [git.into(), search.into()];
/// # let _ = both;
/// ```
///
/// ```compile_fail
/// # use linetender::Server;
/// Server::stdio("git", ["mcp-server-git"]).header("authorization", "a program takes no headers");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Server<W = way::Any> {
    way: PhantomData<W>,
    pub(crate) name: Arc<str>,
    pub(crate) target: Target,
    pub(crate) policy: Policy,
    pub(crate) eras: Eras,
    /// The era to try first, where nothing is remembered.
    pub(crate) prefers: Option<Era>,
    pub(crate) hello: Hello,
    pub(crate) safe_tools: HashSet<String>,
    pub(crate) tool_errors: ToolErrors,
    /// Whose the deadline of an agent's calls is.
    pub(crate) deadline: Deadline,
    /// Whether a rig dials it when somebody needs it.
    pub(crate) lazy: bool,
    /// How long it may run although nobody uses it.
    pub(crate) idle_stop: Option<Duration>,
    pub(crate) stderr: Stderr,
    /// What it was given that nobody may read, masked in our texts and logs for as long as this lives.
    secrets: Secrets,
}

/// A server that is a program, and speaks over its standard input and output.
pub type StdioServer = Server<way::Stdio>;

/// A server that has an address, and speaks over HTTP.
pub type HttpServer = Server<way::Http>;

/// How a server is reached, for the compiler: see [`Server`].
pub mod way {
    /// In any way.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Any {}

    /// Over a program's standard input and output.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Stdio {}

    /// Over HTTP.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Http {}
}

/// Where a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Target {
    Stdio {
        program: Program,
        reaper: Option<Reaper>,
        shared: Option<Elsewhere<dyn Way>>,
        lifeline: Option<Elsewhere<Lifeline>>,
    },
    Http(Box<Address>),
}

impl Server {
    /// A server that is somewhere else, by its address: `http://…` or `https://…`.
    ///
    /// An address that cannot work is told when the line is dialled.
    pub fn http(name: impl Into<Arc<str>>, url: &str) -> HttpServer {
        let mut server = Server::to(name.into(), Target::Http(Box::new(Address::at(url))));
        server.secrets.keep_url(url);
        for proxy in PROXIES.iter().filter_map(our_variable) {
            server.secrets.keep_url(&proxy.to_string_lossy());
        }
        server
    }

    /// A server that is a program: its arguments, never a shell. It gets the variables that a program needs to run, and
    /// those that are added with [`env`](Self::env).
    pub fn stdio<A: Into<OsString>>(
        name: impl Into<Arc<str>>,
        argv: impl IntoIterator<Item = A>,
    ) -> StdioServer {
        let allowed = ALLOWED.iter().filter_map(|name| Some((OsString::from(name), our_variable(name)?)));
        let argv: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        let mut secrets = Secrets::default();
        secrets.keep_arguments(argv.iter().map(|word| word.to_str().unwrap_or_default()));
        let program = Program { argv, dir: None, env: Env::Only(allowed.collect()) };
        let target = Target::Stdio { program, reaper: None, shared: None, lifeline: None };
        Server { secrets, ..Server::to(name.into(), target) }.policy(Policy::default())
    }

    /// What is run, and where, if it is a program.
    #[doc(hidden)] // for linetender's keeper
    pub fn command(&self) -> Option<(&[OsString], Option<&Path>)> {
        match &self.target {
            Target::Stdio { program, .. } => Some((&program.argv, program.dir.as_deref())),
            Target::Http(_) => None,
        }
    }

    /// The same as a program, if that is what it is: a configuration may hold either.
    pub fn to_stdio(&self) -> Option<StdioServer> {
        matches!(self.target, Target::Stdio { .. }).then(|| self.clone().by())
    }

    /// The same as an address, if that is what it is.
    pub fn to_http(&self) -> Option<HttpServer> {
        matches!(self.target, Target::Http(_)).then(|| self.clone().by())
    }
}

impl<W> Server<W> {
    fn to(name: Arc<str>, target: Target) -> Self {
        Self {
            way: PhantomData,
            name,
            target,
            policy: Policy::default(),
            eras: Eras::Auto,
            prefers: None,
            hello: Hello::Ours { name: "linetender".into(), version: env!("CARGO_PKG_VERSION").into() },
            safe_tools: HashSet::new(),
            tool_errors: ToolErrors::default(),
            deadline: Deadline::Agent,
            lazy: false,
            idle_stop: None,
            stderr: Stderr::default(),
            secrets: Secrets::default(),
        }
    }

    /// The same, reached in the way that the caller knows of.
    fn by<V>(self) -> Server<V> {
        let Self {
            way: _,
            name,
            target,
            policy,
            eras,
            prefers,
            hello,
            safe_tools,
            tool_errors,
            deadline,
            lazy,
            idle_stop,
            stderr,
            secrets,
        } = self;
        Server {
            way: PhantomData,
            name,
            target,
            policy,
            eras,
            prefers,
            hello,
            safe_tools,
            tool_errors,
            deadline,
            lazy,
            idle_stop,
            stderr,
            secrets,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its credentials come from, if they change.
    pub(crate) fn key_source(&self) -> Option<&Source> {
        match &self.target {
            Target::Http(http) => http.keys.as_ref(),
            Target::Stdio { .. } => None,
        }
    }

    /// The way to whoever holds it, if that may be another process.
    pub(crate) fn held_by(&self) -> Option<&dyn Way> {
        match &self.target {
            Target::Stdio { shared: Some(Elsewhere(way)), .. } => Some(&**way),
            Target::Stdio { .. } | Target::Http(_) => None,
        }
    }

    /// The same under another name.
    #[doc(hidden)] // for linetender's keeper
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Its policy. If that says nothing of what the server keeps in memory, what is known of its package counts.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = match &self.target {
            Target::Stdio { program, .. } if policy.settings().state == ServerState::Unknown => {
                let words: Vec<_> = program.argv.iter().map(|word| word.to_string_lossy()).collect();
                let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
                policy.with_state(package::state_of(package::package(&words)))
            }
            _ => policy,
        };
        self
    }

    /// Which eras of MCP to try.
    #[must_use]
    pub fn eras(mut self, eras: Eras) -> Self {
        self.eras = eras;
        self
    }

    /// Tries this era first.
    pub(crate) fn prefer(mut self, era: Era) -> Self {
        self.prefers = Some(era);
        self
    }

    /// Who speaks to it.
    #[must_use]
    pub fn hello(mut self, hello: Hello) -> Self {
        self.hello = hello;
        self
    }

    /// A tool that may be run again when its outcome is unknown.
    #[must_use]
    pub fn safe_tool(mut self, tool: impl Into<String>) -> Self {
        self.safe_tools.insert(tool.into());
        self
    }

    /// How an agent is told that a tool call failed.
    #[must_use]
    pub fn tool_errors(mut self, form: ToolErrors) -> Self {
        self.tool_errors = form;
        self
    }

    /// Lets a [rig](crate::Rig::set) dial it when somebody needs it, and not before.
    #[must_use]
    pub fn lazy(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// Stops it when nobody has used it for this long; the next call starts it again, which costs nothing of its budget. What
    /// it listed stays listed. One that keeps watching a resource for somebody, or has begun a task, is in use.
    #[must_use]
    pub fn idle_stop(mut self, after: Duration) -> Self {
        self.idle_stop = Some(after);
        self
    }

    /// Whose the deadline of a [session](crate::session)'s calls is: the agent's, if not said. A call that a program makes
    /// by itself has [options](crate::Options) of its own.
    #[must_use]
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }
}

impl StdioServer {
    /// Adds a variable to its environment. It wins over an inherited one of the same name. If its name or its look says that
    /// it is a secret, its value is masked in linetender's own texts and logs.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Target::Stdio { program, .. } = &mut self.target {
            let variable: (OsString, OsString) = (name.into(), value.into());
            self.secrets.keep_variable(&variable.0.to_string_lossy(), &variable.1.to_string_lossy());
            match &mut program.env {
                Env::Only(variables) | Env::OursAnd(variables) => variables.push(variable),
                ours @ Env::Ours => *ours = Env::OursAnd(vec![variable]),
            }
        }
        self
    }

    /// Gives it the whole of our own environment, and what was or will be added with [`env`](Self::env).
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        for (name, value) in std::env::vars_os() {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            self.secrets.keep_inherited(&name, &value);
        }
        if let Target::Stdio { program, .. } = &mut self.target {
            let given = std::mem::replace(&mut program.env, Env::Ours);
            if let Env::Only(variables) | Env::OursAnd(variables) = given {
                // The first ones are ours already, with the same values: only those that were added count.
                let added: Vec<_> = variables
                    .into_iter()
                    .filter(|(name, value)| our_variable(name).as_ref() != Some(value))
                    .collect();
                if !added.is_empty() {
                    program.env = Env::OursAnd(added);
                }
            }
        }
        self
    }

    /// These variables and no others.
    #[doc(hidden)] // for linetender's keeper
    #[must_use]
    pub fn only_env(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        if let Target::Stdio { program, .. } = &mut self.target {
            program.env = Env::Only(Vec::new());
        }
        variables.into_iter().fold(self, |server, (name, value)| server.env(name, value))
    }

    /// Its variables, unless it gets all of ours.
    #[doc(hidden)] // for linetender's keeper
    pub fn own_env(&self) -> Option<&[(OsString, OsString)]> {
        match &self.target {
            Target::Stdio { program: Program { env: Env::Only(variables), .. }, .. } => Some(variables),
            _ => None,
        }
    }

    /// Another process may hold it: it is reached in this way, and run here only if that says so.
    #[doc(hidden)] // for linetender's keeper, and for gateways that share a fleet's lines
    #[must_use]
    pub fn shared(mut self, way: Arc<dyn Way>) -> Self {
        if let Target::Stdio { shared, .. } = &mut self.target {
            *shared = Some(Elsewhere(way));
        }
        self
    }

    /// Its processes are killed when this is over.
    #[doc(hidden)] // for gateways that share a fleet's lines
    #[must_use]
    pub fn leased(mut self, until: Arc<Lifeline>) -> Self {
        if let Target::Stdio { lifeline, .. } = &mut self.target {
            *lifeline = Some(Elsewhere(until));
        }
        self
    }

    /// Where it runs.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        if let Target::Stdio { program, .. } = &mut self.target {
            program.dir = Some(dir.into());
        }
        self
    }

    /// Says where its stderr goes.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// The binary that becomes the reaper of its processes: `linetender-reaper`, `linetender`, or any program that calls
    /// [`reaper::run_if_asked`](crate::reaper::run_if_asked) first in `main`. If not said, this program if it has called
    /// that, else one of the two on `PATH`.
    #[must_use]
    pub fn reaper(self, binary: impl Into<PathBuf>) -> Self {
        self.reaped_by(Reaper::Binary(binary.into()))
    }

    /// No reaper: its process group is all that is watched. A grandchild that leaves the group escapes, and if this
    /// program is killed the server outlives it until it notices that its input is closed.
    #[must_use]
    pub fn without_reaper(self) -> Self {
        self.reaped_by(Reaper::None)
    }

    /// Its processes are simulated.
    #[doc(hidden)]
    #[must_use]
    pub fn elsewhere(self, starter: Arc<dyn Starter>) -> Self {
        self.reaped_by(Reaper::Elsewhere(Elsewhere(starter)))
    }

    fn reaped_by(mut self, by: Reaper) -> Self {
        if let Target::Stdio { reaper, .. } = &mut self.target {
            *reaper = Some(by);
        }
        self
    }
}

impl HttpServer {
    /// Adds a header to everything that is sent to it. Its value is printed nowhere.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.secrets.keep_header(name, value);
        if let Target::Http(http) = &mut self.target {
            http.header(name, value);
        }
        self
    }

    /// Gets its credentials from here, and newer ones while it is held. They take the place of headers of the same names.
    #[must_use]
    pub fn keys(mut self, keys: Arc<dyn Keys>) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.keys = Some(Source(keys));
        }
        self
    }

    /// Trusts this certificate (in DER), besides those that the machine trusts.
    #[must_use]
    pub fn trust(mut self, certificate: impl Into<Vec<u8>>) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.trust(certificate.into());
        }
        self
    }

    /// Says which transport it speaks. If not said, that is found out.
    #[must_use]
    pub fn transport(mut self, transport: HttpTransport) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.transport = transport;
        }
        self
    }

    /// Speaks HTTP/2 to a plain `http` address, without asking first. On `https` the two sides agree by themselves.
    #[must_use]
    pub fn http2(mut self) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.http2();
        }
        self
    }

    /// It is on a simulated network.
    #[doc(hidden)]
    #[must_use]
    pub fn across(mut self, network: Arc<dyn Network>) -> Self {
        if let Target::Http(http) = &mut self.target {
            http.elsewhere(Elsewhere(network));
        }
        self
    }
}

impl From<StdioServer> for Server {
    fn from(server: StdioServer) -> Self {
        server.by()
    }
}

impl From<HttpServer> for Server {
    fn from(server: HttpServer) -> Self {
        server.by()
    }
}

/// How large and how deep a message may be.
pub(crate) fn limits(policy: &linetender_core::Settings) -> frame::Limits {
    frame::Limits { length: policy.limits.message as usize, depth: policy.limits.depth.into() }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment that a server inherits is read here and nowhere else"
)]
fn our_variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name)
}

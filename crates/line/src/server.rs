//! What the user configured: a name, how to reach it, and its policy.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use linetender_core::Policy;
use linetender_wire::handshake::{Eras, Hello};
use linetender_wire::stdio::{Env, Program, Reaper};

/// The variables that a server is given when nothing else is said: what a program needs to run at all, and nothing that
/// could be a secret.
const ALLOWED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
];

/// A server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Server {
    pub(crate) name: Arc<str>,
    pub(crate) program: Program,
    pub(crate) reaper: Option<Reaper>,
    pub(crate) policy: Policy,
    pub(crate) eras: Eras,
    pub(crate) hello: Hello,
    pub(crate) safe_tools: HashSet<String>,
}

impl Server {
    /// A server that is a program: its arguments, never a shell. It gets the variables that a program needs to run, and
    /// those that are added with [`env`](Self::env).
    pub fn stdio<A: Into<OsString>>(name: impl Into<Arc<str>>, argv: impl IntoIterator<Item = A>) -> Self {
        let allowed = ALLOWED.iter().filter_map(|name| Some((OsString::from(name), our_variable(name)?)));
        Self {
            name: name.into(),
            program: Program {
                argv: argv.into_iter().map(Into::into).collect(),
                dir: None,
                env: Env::Only(allowed.collect()),
            },
            reaper: None,
            policy: Policy::default(),
            eras: Eras::Auto,
            hello: Hello::Ours { name: "linetender".into(), version: env!("CARGO_PKG_VERSION").into() },
            safe_tools: HashSet::new(),
        }
    }

    /// Adds a variable to its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Env::Only(variables) = &mut self.program.env {
            variables.push((name.into(), value.into()));
        }
        self
    }

    /// Gives it the whole of our own environment.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        self.program.env = Env::Ours;
        self
    }

    /// Where it runs.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.program.dir = Some(dir.into());
        self
    }

    /// Its policy.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Which eras of MCP to try.
    #[must_use]
    pub fn eras(mut self, eras: Eras) -> Self {
        self.eras = eras;
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

    /// The binary that becomes the reaper of its processes; this program, if not said.
    #[must_use]
    pub fn reaper(mut self, binary: impl Into<PathBuf>) -> Self {
        self.reaper = Some(Reaper::Binary(binary.into()));
        self
    }

    /// No reaper: its process group is all that is watched. A grandchild that leaves the group escapes, and if this
    /// program is killed the server outlives it until it notices that its input is closed.
    #[must_use]
    pub fn without_reaper(mut self) -> Self {
        self.reaper = Some(Reaper::None);
        self
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment that a server inherits is read here and nowhere else"
)]
fn our_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

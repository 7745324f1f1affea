//! What is configured: a program or an address, and what is said of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linetender::{Policy, Stderr};
use linetender_auth::{HeaderKeys, Secret, Source};
use linetender_gateway::config;
use linetender_holder::trusted::config_text;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

/// A server: its name, how it is reached, and its policy. It holds nothing.
#[pyclass(frozen, module = "linetender._native")]
#[derive(Clone, Debug)]
pub(crate) struct Server(pub(crate) linetender::Server);

#[pymethods]
impl Server {
    /// A program. `reaper` is the binary in the wheel: it is always named, so that no other program is ever started for it.
    #[staticmethod]
    #[pyo3(signature = (name, argv, *, reaper, env, cwd, inherit_env, stderr, safe_tools))]
    #[expect(clippy::too_many_arguments, reason = "they are a Python function's keywords")]
    fn stdio(
        name: &str,
        argv: Vec<OsString>,
        reaper: PathBuf,
        env: BTreeMap<OsString, OsString>,
        cwd: Option<PathBuf>,
        inherit_env: bool,
        stderr: &str,
        safe_tools: Vec<String>,
    ) -> PyResult<Self> {
        let mut server = linetender::Server::stdio(name, argv).reaper(reaper).stderr(stderr_of(stderr)?);
        if inherit_env {
            server = server.inherit_env();
        }
        if let Some(dir) = cwd {
            server = server.dir(dir);
        }
        server = env.into_iter().fold(server, |server, (name, value)| server.env(name, value));
        Ok(Self(safe_tools.into_iter().fold(server, linetender::StdioServer::safe_tool).into()))
    }

    /// An address.
    #[staticmethod]
    #[pyo3(signature = (name, url, *, headers, safe_tools))]
    #[expect(clippy::needless_pass_by_value, reason = "it is taken out of a Python dict")]
    fn http(name: &str, url: &str, headers: BTreeMap<String, String>, safe_tools: Vec<String>) -> Self {
        let server = linetender::Server::http(name, url);
        let server = headers.iter().fold(server, |server, (name, value)| server.header(name, value));
        Self(safe_tools.into_iter().fold(server, linetender::HttpServer::safe_tool).into())
    }

    /// The servers of a file: an agent's `mcp.json`, or linetender's own TOML.
    #[staticmethod]
    #[pyo3(signature = (path, *, reaper))]
    #[expect(clippy::needless_pass_by_value, reason = "they are made from Python's strings")]
    fn load(py: Python<'_>, path: PathBuf, reaper: PathBuf) -> PyResult<Vec<Self>> {
        let config = read(py, &path)?;
        Ok(config.servers.into_iter().map(|entry| Self::of(entry, &reaper)).collect())
    }

    /// One server of a file, by its name.
    #[staticmethod]
    #[pyo3(signature = (path, name, *, reaper))]
    #[expect(clippy::needless_pass_by_value, reason = "they are made from Python's strings")]
    fn from_config(py: Python<'_>, path: PathBuf, name: &str, reaper: PathBuf) -> PyResult<Self> {
        let config = read(py, &path)?;
        let names: Vec<_> = config.servers.iter().map(|entry| entry.server.name().to_owned()).collect();
        let entry = config.servers.into_iter().find(|entry| entry.server.name() == name);
        let missing = || {
            let (path, names) = (path.display(), names.join(", "));
            PyKeyError::new_err(format!("{path} has no server `{name}`; it has: {names}"))
        };
        Ok(Self::of(entry.ok_or_else(missing)?, &reaper))
    }

    /// The same server with these settings of a config file, `name = value` in TOML, and defaults for all others.
    fn with_settings(&self, settings: &str) -> PyResult<Self> {
        let target = if self.0.argv().is_empty() { "url = \"http://localhost/\"" } else { "command = \"x\"" };
        let text = format!("[servers.x]\n{target}\n{settings}");
        let mut config = config::load("settings", &text, &|_| None).map_err(|problem| {
            let line = text.lines().nth(problem.line().saturating_sub(1)).unwrap_or_default();
            PyValueError::new_err(format!("{line}: {problem}"))
        })?;
        let Some(read) = config.servers.pop().map(|entry| entry.server) else { return Ok(self.clone()) };
        let policy =
            Policy::new(*read.settings()).map_err(|invalid| PyValueError::new_err(invalid.to_string()))?;
        Ok(Self(self.0.clone().policy(policy).deadline(read.calls_end())))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }
}

impl Server {
    fn of(entry: config::Entry, reaper: &Path) -> Self {
        let config::Entry { server, auth, .. } = entry;
        Self(match (server.to_stdio(), server.to_http()) {
            (Some(program), _) => program.reaper(reaper).into(),
            (None, Some(address)) => with_keys(address, auth).into(),
            (None, None) => server,
        })
    }
}

/// With credentials that change, where the file says where they come from. A server that wants a login says so when it is
/// called: `NeedsAuth`.
fn with_keys(server: linetender::HttpServer, auth: config::Auth) -> linetender::HttpServer {
    let source = match auth {
        config::Auth::Files(headers) => Source::Headers(
            headers.into_iter().map(|(name, value)| (name, Secret::new(value.as_str()))).collect(),
        ),
        config::Auth::Command(argv) => Source::Command(argv),
        _ => return server,
    };
    server.keys(Arc::new(HeaderKeys::new(source)))
}

/// Without the interpreter's lock: a disk may be slow, and a file large.
fn read(py: Python<'_>, path: &Path) -> PyResult<config::Config> {
    let read = py.detach(|| {
        let text = config_text(path)?;
        config::load(&path.display().to_string(), &text, &variable).map_err(|problem| problem.report())
    });
    read.map_err(PyValueError::new_err)
}

#[expect(clippy::disallowed_methods, reason = "a config file names variables: this is where it is loaded")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn stderr_of(word: &str) -> PyResult<Stderr> {
    match word {
        "off" => Ok(Stderr::Off),
        "log" => Ok(Stderr::Log),
        "pass" => Ok(Stderr::Pass),
        other => Err(PyValueError::new_err(format!("stderr is \"off\", \"log\" or \"pass\", not {other:?}"))),
    }
}

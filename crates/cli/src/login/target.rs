//! Which server a person means: a name of the gateway's config file, or a URL.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use linetender::{HttpServer, Redacted, Server};
use linetender_auth::Error;
use linetender_gateway::config::{self, Auth, Config, OAuth};

use crate::serve::file;
use crate::{args, log, runtime};

/// What the shell says of a command that cannot be understood.
const MISUSED: u8 = 2;

/// The most characters of a URL that are shown.
const SHOWN: usize = 300;

/// A server to log in to.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    /// What it is called in texts.
    pub(crate) shown: String,
    pub(crate) oauth: OAuth,
    /// Masks what is secret of its address for as long as it lives.
    #[expect(dead_code, reason = "held, not used")]
    masked: HttpServer,
}

/// Why a command ended, and whether it was misunderstood.
#[derive(Debug)]
pub(crate) struct Failed {
    words: String,
    code: u8,
}

impl Failed {
    pub(crate) fn new(words: String) -> Self {
        Self { words, code: 1 }
    }

    pub(crate) fn misuse(words: String) -> Self {
        Self { words, code: MISUSED }
    }

    /// Tells the person.
    pub(crate) fn say(self) -> ExitCode {
        log::say(format_args!("linetender: {}", self.words));
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Runs a command. What still waits for stdin then does not hold it up.
pub(crate) fn on_runtime<T>(command: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let runtime = runtime::build(&mut tokio::runtime::Builder::new_current_thread())
        .map_err(|error| Failed::new(format!("cannot start: {error}")))?;
    let done = runtime.block_on(command);
    runtime.shutdown_background();
    done
}

/// The server that was meant.
pub(crate) fn find(args: &args::LoginServer) -> Result<Target, Failed> {
    let address = args::address(&args.server).map_err(Failed::misuse)?;
    if address.starts_with("http://") || address.starts_with("https://") {
        if args.config.is_some() {
            return Err(Failed::misuse("--config is for a server name, not for a URL".to_owned()));
        }
        let masked = Server::http("", &address);
        let shown = Redacted::head(&address, SHOWN).to_string();
        let oauth = OAuth { url: address.clone(), ..OAuth::default() };
        return Ok(Target { url: address, shown, oauth, masked });
    }
    if address.starts_with("unix:") {
        return Err(Failed::misuse("nobody logs in to a Unix socket".to_owned()));
    }
    let path = file::path(args.config.as_deref()).map_err(|why| {
        Failed::new(format!(
            "{} is not a URL, so it is looked for in the gateway's config file: {why}",
            args.server
        ))
    })?;
    by_name(&args.server, &path)
}

fn by_name(name: &str, path: &Path) -> Result<Target, Failed> {
    let shown = path.display();
    let (config, unset) = load(path)?;
    let Some(entry) = config.servers.iter().find(|entry| entry.server.name() == name) else {
        let known = config.servers.iter().filter(|entry| matches!(entry.auth, Auth::Login(_)));
        let names: Vec<_> = known.map(|entry| entry.server.name()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failed::misuse(format!(
            "no server {name} in {shown}; servers that can be logged in to: {known}"
        )));
    };
    let oauth = match &entry.auth {
        Auth::Login(oauth) => oauth,
        Auth::Files(_) => return Err(other(name, "gets its credentials from files that its headers name")),
        Auth::Command(_) => return Err(other(name, "gets its credentials from auth.command")),
        _ if entry.server.to_http().is_none() => return Err(other(name, "is a program")),
        _ => return Err(other(name, "has an Authorization header in its config, or is a Unix socket")),
    };
    let texts =
        [Some(&oauth.url), oauth.client_id.as_ref(), oauth.client_secret.as_ref(), oauth.issuer.as_ref()];
    let texts = texts.into_iter().flatten().chain(oauth.client_metadata_url.as_ref()).chain(&oauth.scopes);
    if let Some(missing) =
        texts.flat_map(|text| unset.iter().filter(|name| text.contains(&mark(name)))).next()
    {
        return Err(Failed::new(format!(
            "environment variable {missing} is not set: {shown} needs it for {name}"
        )));
    }
    let masked = Server::http("", &oauth.url);
    let shown = format!("{name} ({})", Redacted::head(&oauth.url, SHOWN));
    Ok(Target { url: oauth.url.clone(), shown, oauth: (**oauth).clone(), masked })
}

fn other(name: &str, how: &str) -> Failed {
    Failed::misuse(format!("{name} {how}: there is nothing to log in to"))
}

/// What the file says. Variables of other servers need not be set in this shell: those that are not are returned, and stand in
/// the texts as marks.
fn load(path: &Path) -> Result<(Config, BTreeSet<String>), Failed> {
    let text = file::text(path).map_err(Failed::new)?;
    let unset = RefCell::new(BTreeSet::new());
    let variable = |name: &str| {
        Some(args::variable_of(name).unwrap_or_else(|_| {
            unset.borrow_mut().insert(name.to_owned());
            mark(name)
        }))
    };
    let config = config::load(&path.display().to_string(), &text, &variable);
    let config = config.map_err(|problem| Failed::new(problem.report()))?;
    Ok((config, unset.into_inner()))
}

/// What stands for a variable that is not set.
fn mark(name: &str) -> String {
    format!("unset-variable-{name}-")
}

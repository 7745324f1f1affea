//! What an entry is: a command, an address, something that goes through linetender already, or something to leave alone.

use linetender::{ServerState, package};

use super::entry::{Dialect, Entry};
use super::tree::{Member, Node, Value};
use super::{credential, ours, program, url};

#[derive(Debug)]
pub(super) enum Decision<'t> {
    Command(Call<'t>),
    Address(Address<'t>),
    Wrapped(Call<'t>),
    Left(Why),
}

/// How an entry says what is to be run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call<'t> {
    /// `"command": "npx", "args": ["-y", "x"]`
    Split { command: &'t Member, args: Option<&'t Node> },
    /// `"command": ["npx", "-y", "x"]`
    Whole { list: &'t Node, program: &'t Node },
}

/// How an entry says where a server is.
#[derive(Debug)]
pub(super) struct Address<'t> {
    pub(super) url: &'t Member,
    pub(super) kind: Option<&'t Member>,
    pub(super) headers: Option<&'t Member>,
    /// Codex: the variable that holds a bearer token.
    pub(super) bearer: Option<&'t Member>,
    /// Codex: headers, and the variables that hold their values.
    pub(super) env_headers: Option<&'t Member>,
}

/// Why an entry is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Why {
    #[error("neither command nor url")]
    Nothing,
    #[error("unsupported form of {0}")]
    Odd(&'static str),
    #[error("both {0} and {1} are set")]
    Both(&'static str, &'static str),
    #[error("unknown type {0:?}")]
    Type(String),
    #[error("the URL is not http:// or https://")]
    Scheme,
    #[error(
        "the agent signs in to it with its own settings (`{0}`); if linetender is to log in instead, remove `{0}`"
    )]
    SignsIn(&'static str),
    #[error("the URL contains a user and a password; use a header instead, `Authorization: Basic …`")]
    Password,
    #[error("header {0:?} cannot be sent")]
    Header(String),
    #[error("`{0}` uses dotted keys or its own table; write it inline as `{0} = {{ … }}`")]
    Spread(&'static str),
    #[error("it was edited after wrap, and its original cannot be restored: edit it by hand")]
    Changed,
}

/// The type of a server at an address that speaks HTTP+SSE, for agents and for `linetender run`.
pub(super) const SSE: &str = "sse";

/// Members by which an agent signs in on its own. `false` says that it does not.
const SIGN_IN: [&str; 6] = ["oauth", "auth", "headersHelper", "authProviderType", "oauth_resource", "scopes"];

pub(super) fn judge<'t>(entry: &Entry<'t>) -> Decision<'t> {
    match decision(entry) {
        Ok(decision) => decision,
        Err(why) => Decision::Left(why),
    }
}

fn decision<'t>(entry: &Entry<'t>) -> Result<Decision<'t>, Why> {
    let call = call(entry)?;
    let kind = entry.node.get("type").or_else(|| entry.node.get("transport"));
    let url = address(entry)?;
    match (kind.and_then(|kind| kind.value.text()), call, url) {
        (_, Some(_), Some(_)) => Err(Why::Both("command", "url")),
        (None | Some("stdio" | "local"), Some(call), None) if call.is_wrapped(entry.name()) => {
            Ok(Decision::Wrapped(call))
        }
        (None | Some("stdio" | "local"), Some(call), None) => Ok(Decision::Command(call)),
        (
            None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote" | SSE),
            None,
            Some(url),
        ) => {
            let address = Address {
                url,
                kind,
                headers: entry
                    .node
                    .get(entry.dialect.headers())
                    .filter(|headers| !is_empty_of_goose(entry, headers)),
                bearer: entry.node.get("bearer_token_env_var"),
                env_headers: entry.node.get("env_http_headers"),
            };
            passable(entry, &address)?;
            Ok(Decision::Address(address))
        }
        (Some(other), _, _) => Err(Why::Type(other.to_owned())),
        (None, None, None) => Err(Why::Nothing),
    }
}

fn call<'t>(entry: &Entry<'t>) -> Result<Option<Call<'t>>, Why> {
    let Some(member) = entry.node.get(entry.dialect.command()) else { return Ok(None) };
    let (command, args) = match (&member.value.value, entry.dialect) {
        (Value::List(words), Dialect::Opencode) => {
            let program = words.first().filter(|word| word.text().is_some()).ok_or(Why::Odd("command"))?;
            return Ok(Some(Call::Whole { list: &member.value, program }));
        }
        (Value::Text(_), Dialect::Plain | Dialect::Codex | Dialect::Goose) => {
            (member, entry.node.get("args"))
        }
        // Zed, until 2025: `"command": { "path": "npx", "args": [] }`.
        (Value::Table(_), Dialect::Plain) => {
            let path = member.value.get("path").filter(|path| path.value.text().is_some());
            (path.ok_or(Why::Odd("command"))?, member.value.get("args"))
        }
        _ => return Err(Why::Odd("command")),
    };
    match args.map(|args| &args.value) {
        Some(args) if args.list().is_none() => Err(Why::Odd("args")),
        args => Ok(Some(Call::Split { command, args })),
    }
}

/// The one address. Windsurf says `serverUrl`, Gemini CLI `httpUrl`.
fn address<'t>(entry: &Entry<'t>) -> Result<Option<&'t Member>, Why> {
    let keys: &[&str] = match entry.dialect {
        Dialect::Goose => &["uri"],
        Dialect::Plain | Dialect::Opencode | Dialect::Codex => &["url", "httpUrl", "serverUrl"],
    };
    let mut found = keys.iter().filter_map(|key| entry.node.get(key));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(Why::Both("url", "another URL key")),
        (Some(url), None) if url.value.text().is_none() => Err(Why::Odd("url")),
        (found, _) => Ok(found),
    }
}

/// goose writes what it has none of as an empty table.
fn is_empty_of_goose(entry: &Entry<'_>, member: &Member) -> bool {
    let is_empty = matches!(&member.value.value, Value::Table(members) if members.is_empty());
    entry.dialect == Dialect::Goose && is_empty
}

/// Whether what the address needs can be passed on by `linetender run`.
fn passable(entry: &Entry<'_>, address: &Address<'_>) -> Result<(), Why> {
    let url = address.url.value.text().unwrap_or_default();
    if !url::is_http(url) {
        return Err(Why::Scheme);
    }
    let signs_in =
        |key: &&str| entry.node.get(key).is_some_and(|it| !matches!(it.value.value, Value::Bool(false)));
    if let Some(key) = SIGN_IN.into_iter().find(signs_in) {
        return Err(Why::SignsIn(key));
    }
    // Continue has more to say of requests than headers.
    if entry.node.get("requestOptions").is_some() {
        return Err(Why::Odd("requestOptions"));
    }
    if entry.dialect == Dialect::Goose {
        // goose puts variables into them, of its own keyring too.
        let headers = address.headers.and_then(|headers| headers.value.table()).unwrap_or_default();
        let filled_in =
            headers.iter().find(|header| header.value.text().is_none_or(|text| text.contains('$')));
        if let Some(header) = filled_in {
            return Err(Why::Header(header.key.clone()));
        }
        if address.headers.is_some() && entry.node.get("envs").is_some() {
            return Err(Why::Both("headers", "envs"));
        }
    }
    if url::has_password(url) {
        return Err(Why::Password);
    }
    Ok(())
}

impl Address<'_> {
    /// Whether the server may want somebody to log in: nothing says that it does not, and it is given no key.
    pub(super) fn may_sign_in(&self, entry: &Entry<'_>) -> bool {
        let url = self.url.value.text().unwrap_or_default();
        // Here `oauth` is false, or it would have been left alone.
        let says_no = entry.node.get("oauth").is_some();
        !says_no && !self.has_credential() && url::may_sign_in(url)
    }

    /// Whether it is said to speak HTTP+SSE. Where nothing is said, `linetender run` finds out.
    pub(super) fn is_sse(&self) -> bool {
        self.kind.is_some_and(|kind| kind.value.text() == Some(SSE))
    }

    /// Whether a name in it says that it brings what the server wants. What is only a setting may stand beside a sign-in.
    fn has_credential(&self) -> bool {
        let url = self.url.value.text().unwrap_or_default();
        self.bearer.is_some()
            || [self.headers, self.env_headers].into_iter().flatten().any(credential::is_in)
            || url::query_names(url).any(credential::is_named)
    }
}

impl<'t> Call<'t> {
    /// The program, and the words after it.
    pub(super) fn words(self) -> (&'t Node, &'t [Node]) {
        match self {
            Self::Split { command, args } => (&command.value, args.and_then(Node::list).unwrap_or_default()),
            Self::Whole { list, program } => {
                (program, list.list().and_then(|words| words.get(1..)).unwrap_or_default())
            }
        }
    }

    /// What it keeps in memory between two calls, as far as that is known.
    pub(super) fn state(self) -> ServerState {
        let (program, words) = self.words();
        let words: Vec<&str> = [program].into_iter().chain(words).filter_map(Node::text).collect();
        package::state_of(package::package(&words))
    }

    /// The words that linetender sees: those after a package runner's, if one starts it.
    pub(super) fn behind_start(self) -> &'t [Node] {
        let (program, words) = self.words();
        program.text().and_then(|program| program::behind_runner(program, words)).unwrap_or(words)
    }

    fn is_wrapped(self, key: &str) -> bool {
        let (program, words) = self.words();
        program.text().is_some_and(|program| ours::is_ours(program, words, key))
    }
}

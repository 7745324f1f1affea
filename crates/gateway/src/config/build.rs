//! From a tree to servers.

use std::time::Duration;

use linetender::{Eras, HttpTransport, Policy, Server, ServerState, visible};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::access::Access;
use super::agents::wrong_url;
use super::auth::Auth;
use super::file::{Era, Gateway, Scope, ServerTable, Stderr, Transport};
use super::filter::Filter;
use super::fleet::Placed;
use super::named;
use super::problem::{Problem, Text};
use super::tools::Tools;
use super::tree::{Is, Member, Node};
use super::understood;
use crate::names;

/// The smallest limit of results: the note about what is missing takes some of it.
const SMALLEST_RESULT: usize = 2 * 1024;
const NO_LIMIT: &str = "result_limit must be at least 2 KiB, or 0 for any size";

fn is_no_limit(limit: usize) -> bool {
    (1..SMALLEST_RESULT).contains(&limit)
}

/// A configured server and its filters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The server.
    pub server: Server,
    /// Where its credentials come from, if they change.
    pub auth: Auth,
    /// Whether agents share its connection.
    pub scope: Scope,
    /// Where it runs in a fleet.
    pub placed: Placed,
    /// Which of its tools are shown, and as what.
    pub tools: Tools,
    /// Filter for prompts.
    pub prompts: Filter,
    /// Filter for resources.
    pub resources: Filter,
    /// Who sees it.
    pub access: Access,
    /// The largest result of a tool that is not cut, in bytes.
    pub result_limit: Option<usize>,
    /// How long outcomes of calls with a key are kept, if they are.
    pub durable: Option<Duration>,
}

impl Entry {
    /// How the names of its tools and prompts begin at the address of all servers, before the separator.
    pub fn prefix(&self) -> String {
        names::prefix(self.server.name())
    }

    /// Whether nothing is filtered, nothing has another name, and nothing is cut or kept.
    pub fn is_open(&self) -> bool {
        let shows_all = self.tools.is_open() && self.prompts.is_open() && self.resources.is_open();
        shows_all && self.result_limit.is_none() && self.durable.is_none()
    }

    /// Whether everything can be asked for by its own name.
    pub(crate) fn hides_nothing(&self) -> bool {
        self.tools.hides_nothing() && self.prompts.is_open() && self.resources.is_open()
    }
}

/// `in_force` are the settings of a gateway that runs already. Servers have to go with those as well as with the file's own, by
/// which it is started the next time.
pub(super) fn build(
    tree: &Node,
    in_force: Option<&Gateway>,
    source: &Text<'_>,
) -> Result<(Gateway, Vec<Entry>), Box<Problem>> {
    let gateway: Gateway = match tree.get("gateway") {
        Some(table) => read(table, source)?,
        None => Gateway::default(),
    };
    let place = |setting: &str| {
        let at = tree.get("gateway").and_then(|table| table.get(setting));
        at.map_or(0..0, |at| at.at.clone())
    };
    if is_no_limit(gateway.result_limit) {
        return Err(source.problem(place("result_limit"), NO_LIMIT, None));
    }
    if gateway.separator.is_empty() {
        return Err(source.problem(place("separator"), "separator must not be empty", None));
    }
    if let Some(wrong) = gateway.public_url.as_deref().and_then(wrong_url) {
        return Err(source.problem(place("public_url"), wrong, None));
    }
    if let Some(wrong) = gateway.auth.wrong(gateway.public_url.as_deref()) {
        return Err(source.problem(place("auth"), wrong, None));
    }
    if let Some(table) = tree.get("gateway").and_then(|table| table.get("audit"))
        && let Some((setting, what)) = gateway.audit.wrong()
    {
        let at = table.get(setting).map_or_else(|| place("audit"), |node| node.at.clone());
        return Err(source.problem(at, what, None));
    }
    if let Err(half) = gateway.tls() {
        return Err(source.problem(place(half.set), half.to_string(), Some(half.help())));
    }
    if let Some((wrong, help)) = gateway.admin.wrong(gateway.tls_certificate.is_some()) {
        return Err(source.problem(place("admin"), wrong, Some(help.to_owned())));
    }
    if let Some((setting, wrong)) = gateway.fleet.wrong() {
        let table = tree.get("gateway").and_then(|table| table.get("fleet"));
        let at = table.map_or(0..0, |table| {
            table.get(setting).map_or_else(|| table.at.clone(), |node| node.at.clone())
        });
        return Err(source.problem(at, wrong, None));
    }
    let both: Vec<&Gateway> = in_force.into_iter().chain([&gateway]).collect();
    let (mut servers, mut names): (Vec<Entry>, Vec<&Member>) = (Vec::new(), Vec::new());
    for member in tree.get("servers").map(Node::members).unwrap_or_default() {
        for settings in &both {
            is_apart(member, &names, &settings.separator, source)?;
        }
        names.push(member);
        // Settings of the gateway are read at its start.
        let of_gateway = in_force.unwrap_or(&gateway).result_limit;
        servers.extend(entry(member, of_gateway, source)?);
    }
    if servers.is_empty() {
        let at = tree.get("servers").map_or(0..0, |at| at.at.clone());
        let help = "add [servers.NAME] with a command or a url, or use an agent's mcpServers file";
        return Err(source.problem(at, "no servers configured", Some(help.to_owned())));
    }
    let lines = both.iter().map(|settings| settings.lines).min().unwrap_or(gateway.lines);
    if servers.len() > lines {
        let what = format!("{} servers configured, but gateway.lines allows only {lines}", servers.len());
        let help =
            (lines < gateway.lines).then(|| "the higher limit takes effect after a restart".to_owned());
        return Err(source.problem(place("lines"), what, help));
    }
    Ok((gateway, servers))
}

/// Refuses a server whose name could be taken for one of the others'.
fn is_apart(
    server: &Member,
    others: &[&Member],
    separator: &str,
    source: &Text<'_>,
) -> Result<(), Box<Problem>> {
    let Some(other) = others.iter().find(|other| clash(&other.name, &server.name, separator)) else {
        return Ok(());
    };
    let what = format!("server names `{}` and `{}` are ambiguous", other.name, server.name);
    let begin = format!("{}{separator}", names::prefix(&server.name));
    let help = format!("tools of both would start with `{begin}`: rename one server");
    Err(source.problem(server.at.clone(), what, Some(help)))
}

/// Whether a name of one's could be a name of the other's.
fn clash(one: &str, other: &str, separator: &str) -> bool {
    let [one, other] = [one, other].map(|name| format!("{}{separator}", names::prefix(name)));
    one.starts_with(&other) || other.starts_with(&one)
}

fn entry(
    Member { name, at, value }: &Member,
    result_limit: usize,
    source: &Text<'_>,
) -> Result<Option<Entry>, Box<Problem>> {
    let wrong = |what: &str, help: &str| Err(source.problem(at.clone(), what, Some(help.to_owned())));
    if name.is_empty() || name.contains('/') || name.chars().any(visible::is_hidden) {
        return wrong(
            "invalid server name",
            "it is part of the server's URL: it must not be empty, or contain a slash or invisible characters",
        );
    }
    if !matches!(value.is, Is::Table(_)) {
        return wrong("a server must be a table", "give it a command or a url");
    }
    let mut table: ServerTable = read(value, source)?;
    if table.disabled {
        return Ok(None);
    }
    named::once(value, source)?;
    understood::filters(value, source)?;
    let settings = named::settings(&table, value);
    let deadline = named::deadline(&table, value, source)?;
    let idle_stop = named::idle_stop(&table, value, source)?;
    if table.result_limit.is_some_and(is_no_limit) {
        let place = value.get("result_limit").map_or(at, |node| &node.at).clone();
        return Err(source.problem(place, NO_LIMIT, None));
    }
    let result_limit = Some(table.result_limit.unwrap_or(result_limit)).filter(|limit| *limit > 0);
    let durable = named::durable(&table, value, source)?;
    let auth = value.get("auth").map(|_| std::mem::take(&mut table.auth));
    if auth.is_some() && table.url.is_none() {
        return wrong("auth is for servers with a url", "give a program its credentials in env");
    }
    let auth = match Auth::of(auth, table.url.as_deref(), &mut table.headers) {
        Ok(auth) => auth,
        Err(what) => {
            return wrong(
                what,
                "write auth = { command = [\"PROGRAM\", \"ARGUMENT\"] }, or auth = { client_id = \"ID\" }",
            );
        }
    };
    let mut server = match server(name, &mut table) {
        Ok(server) => server,
        Err((what, help)) => return wrong(what, help),
    };
    if table.lazy {
        server = server.lazy();
    }
    if let Some(after) = idle_stop {
        server = server.idle_stop(after);
    }
    let tools = Tools::of(std::mem::take(&mut table.tools), &table.safe_tools).map_err(|wrong| {
        let place = value.get("tools").and_then(|tools| tools.get(wrong.table)?.member(&wrong.key));
        let at = place.map_or(at, |member| &member.at).clone();
        source.problem(at, wrong.what, Some(wrong.help.to_owned()))
    })?;
    server = table.safe_tools.into_iter().fold(server, Server::safe_tool);
    let access = match Access::of(table.access) {
        Ok(access) => access,
        Err(name) => {
            return wrong(
                &format!("`{}` in access names nobody", visible::cut(&name, 100)),
                "write the name of a principal, group:NAME, or * for everybody",
            );
        }
    };
    let policy = Policy::new(settings).map_err(|invalid| {
        let (what, place) = named::wrong(value, &invalid);
        source.problem(place.map_or(at, |node| &node.at).clone(), what, None)
    })?;
    let server = server.policy(policy).deadline(deadline);
    let is_known_stateful =
        settings.state == ServerState::Unknown && server.settings().state == ServerState::Process;
    let scope = if is_known_stateful && durable.is_none() { Scope::Session } else { Scope::Shared };
    Ok(Some(Entry {
        server,
        auth,
        scope: table.scope.unwrap_or(scope),
        placed: table.fleet,
        tools,
        prompts: table.prompts,
        resources: table.resources,
        access,
        result_limit,
        durable,
    }))
}

/// The server itself: what it runs or where it is, and what it speaks. What is wrong, and what to do about it.
fn server(name: &str, table: &mut ServerTable) -> Result<Server, (&'static str, &'static str)> {
    let transport = match table.transport {
        Transport::Auto => HttpTransport::Auto,
        Transport::Http => HttpTransport::Streamable,
        Transport::Sse => HttpTransport::Sse,
    };
    if transport != HttpTransport::Auto && table.url.is_none() {
        return Err((
            "transport is for servers with a url",
            "remove it: a program speaks over its stdin and stdout",
        ));
    }
    if let (HttpTransport::Sse, Era::Modern) = (transport, table.era) {
        return Err(("transport = \"sse\" is older than era = \"modern\"", "remove one of them"));
    }
    let server: Server = match (table.command.take(), table.url.take()) {
        (Some(command), None) => {
            let server = Server::stdio(name, std::iter::once(command).chain(std::mem::take(&mut table.args)));
            let server = if table.inherit_env { server.inherit_env() } else { server };
            let server = if let Some(dir) = table.dir.take() { server.dir(dir) } else { server };
            let server = server.stderr(match table.stderr {
                Stderr::Off => linetender::Stderr::Off,
                Stderr::Log => linetender::Stderr::Log,
                Stderr::Pass => linetender::Stderr::Pass,
            });
            std::mem::take(&mut table.env)
                .into_iter()
                .fold(server, |server, (name, value)| server.env(name, value))
                .into()
        }
        (None, Some(url)) => {
            let server = Server::http(name, &url).transport(transport);
            table.headers.iter().fold(server, |server, (name, value)| server.header(name, value)).into()
        }
        (Some(_), Some(_)) => {
            return Err(("command and url are mutually exclusive", "remove one of them"));
        }
        (None, None) => {
            return Err(("a server needs a command or a url", "add command = \"…\" or url = \"https://…\""));
        }
    };
    Ok(server.eras(match table.era {
        Era::Auto => Eras::Auto,
        Era::Modern => Eras::Only(linetender::Era::Modern),
        Era::Legacy => Eras::Only(linetender::Era::Legacy),
    }))
}

/// One table; what is wrong in it, at its place.
fn read<T: DeserializeOwned>(node: &Node, source: &Text<'_>) -> Result<T, Box<Problem>> {
    serde_path_to_error::deserialize(node.value()).map_err(|error| {
        let mut at = node;
        for segment in error.path() {
            at = match (segment, &at.is) {
                (Segment::Map { key }, _) => at.get(key).unwrap_or(at),
                (Segment::Seq { index }, Is::List(items)) => items.get(*index).unwrap_or(at),
                _ => at,
            };
        }
        source.problem(at.at.clone(), without_text(&error.into_inner().to_string()), None)
    })
}

/// What serde says of a value in a wrong place, without the value: logs show this, and a secret may have been put there.
/// serde quotes what it found, and after that names what it expected.
fn without_text(said: &str) -> String {
    let (found, expected) =
        said.rsplit_once(", expected ").map_or((said, None), |(one, two)| (one, Some(two)));
    let found = match found.find(['"', '`']) {
        Some(quote) => found[..quote].trim_end(),
        None => found,
    };
    match expected {
        Some(expected) => format!("{found}, expected {expected}"),
        None => found.to_owned(),
    }
}

//! The edits that put `linetender run` before a command, or in the place of an address.

use linetender::ServerState;

use super::edit::{Edit, after, cut, cut_lines, list, prepend, quote, rename, table};
use super::entry::{Dialect, Entry};
use super::judge::{Address, Call, SSE, Why};
use super::ours::URL;
use super::program::Start;
use super::tree::{Member, Node, Style};
use super::{credential, url};

/// A command: it moves behind our words, everything else stays.
pub(super) fn command(text: &str, entry: &Entry<'_>, call: Call<'_>, start: &Start) -> Vec<Edit> {
    let mut words = run(entry.name(), start);
    match call.state() {
        ServerState::Process => words.push(quote("--stateful")),
        ServerState::None if start.share => {
            words.push(quote("--share"));
            words.extend(variables(entry).flat_map(|name| ["--env", name]).map(quote));
        }
        // What may keep something in memory is not shared: agents would find each other's.
        ServerState::None | ServerState::Unknown => {}
    }
    if needs_dashes(start, call.words().0.text().unwrap_or_default()) {
        words.push(quote("--"));
    }
    match call {
        Call::Split { command, args } => {
            words.push(command.value.raw_in_list(text, command.style));
            let args = match args {
                Some(args) => prepend(text, args, &words),
                None => after(text, command, &[("args", list(&words))]),
            };
            vec![Edit::new(command.value.span.clone(), quote(&start.program)), args]
        }
        Call::Whole { list, .. } => {
            words.insert(0, quote(&start.program));
            vec![prepend(text, list, &words)]
        }
    }
}

/// The names of the variables that an entry gives its server: a shared one gets no others.
fn variables<'t>(entry: &Entry<'t>) -> impl Iterator<Item = &'t str> {
    let table = entry.node.get(entry.dialect.env()).and_then(|member| member.value.table());
    let named = entry.node.get("env_vars").and_then(|member| member.value.list());
    let keys = table.into_iter().flatten().map(|member| member.key.as_str());
    keys.chain(named.into_iter().flatten().filter_map(Node::text))
}

/// Whether a `--` has to stand before a command. Some programs that read configurations, the inspector among them, take a `--`
/// among the words for their own, so it is written only where the command could be taken for a flag or an address; and where
/// our program has another name, since nothing else would tell its entries from those of other programs with a `run`.
fn needs_dashes(start: &Start, command: &str) -> bool {
    ["-", "$", "http://", "https://"].iter().any(|start| command.starts_with(start)) || !start.is_known()
}

/// An address: the entry becomes a command. The values of its headers are secrets: they become variables, by renaming what
/// holds them, so that they stay where and as they are.
pub(super) fn address(
    text: &str,
    entry: &Entry<'_>,
    address: &Address<'_>,
    start: &Start,
) -> Result<Vec<Edit>, Why> {
    let env = entry.dialect.env();
    // What we would write is there already, and means nothing beside an address.
    // goose has variables beside an address too: there they stay, with ours.
    let beside = entry.node.get(env).filter(|_| entry.dialect == Dialect::Goose);
    let is_in_the_way = |key: &&str| entry.node.get(key).is_some() && !(beside.is_some() && *key == env);
    if let Some(key) = ["args", env, "env_vars"].into_iter().find(is_in_the_way) {
        return Err(Why::Both("url", key));
    }
    let (mut edits, mut words) = (Vec::new(), run(entry.name(), start));
    if address.is_sse() {
        words.extend(["--transport", SSE].map(quote));
    }
    headers(address, env, &mut edits, &mut words)?;
    from_environment(text, address, &mut edits, &mut words)?;
    let mut new = Vec::new();
    let raw_url = address.url.value.raw_in_list(text, address.url.style);
    if url::is_secret(address.url.value.text().unwrap_or_default()) {
        words.push(quote(&format!("${URL}")));
        match address.headers.or(beside) {
            Some(headers) => edits.push(add(text, headers, URL, raw_url)?),
            None => new.push((env, table(address.url.style, URL, &raw_url))),
        }
    } else {
        words.push(raw_url);
    }
    edits.extend(no_oauth(entry));
    if let Some(kind) = address.kind {
        edits.push(Edit::new(kind.value.span.clone(), quote(entry.dialect.local())));
    }
    edits.push(rename(address.url, entry.dialect.command()));
    let command = match entry.dialect {
        Dialect::Plain | Dialect::Codex | Dialect::Goose => {
            new.insert(0, ("args", list(&words)));
            quote(&start.program)
        }
        Dialect::Opencode => {
            words.insert(0, quote(&start.program));
            list(&words)
        }
    };
    edits.push(Edit::new(address.url.value.span.clone(), command));
    if !new.is_empty() {
        edits.push(after(text, address.url, &new));
    }
    Ok(edits)
}

/// `run --name NAME`, behind the words of a package runner.
fn run(name: &str, start: &Start) -> Vec<String> {
    start.words.iter().map(String::as_str).chain(["run", "--name", name]).map(quote).collect()
}

/// The headers become variables.
fn headers(
    address: &Address<'_>,
    env: &str,
    edits: &mut Vec<Edit>,
    words: &mut Vec<String>,
) -> Result<(), Why> {
    let Some(member) = address.headers else { return Ok(()) };
    let headers = member.value.table().ok_or(Why::Odd("headers"))?;
    if member.style == Style::TomlDotted {
        return Err(Why::Spread("http_headers"));
    }
    edits.push(rename(member, env));
    let mut taken = vec![URL.to_owned()];
    for header in headers {
        if header.value.text().is_none() || !credential::is_header_name(&header.key) {
            return Err(Why::Header(header.key.clone()));
        }
        let variable = credential::variable(&header.key, &taken);
        words.extend([quote("--header"), quote(&format!("{}: ${variable}", header.key))]);
        edits.push(rename(header, &variable));
        taken.push(variable);
    }
    Ok(())
}

/// One more member of a table.
fn add(text: &str, holder: &Member, key: &str, raw: String) -> Result<Edit, Why> {
    match holder.value.table().and_then(<[Member]>::last) {
        Some(last) => Ok(after(text, last, &[(key, raw)])),
        None if holder.value.raw(text).starts_with('{') => {
            Ok(Edit::new(holder.value.span.clone(), table(holder.style, key, &raw)))
        }
        None => Err(Why::Spread("http_headers")),
    }
}

/// Opencode refuses an `oauth`, even a false one, beside a command.
fn no_oauth(entry: &Entry<'_>) -> Option<Edit> {
    let members = entry.node.table().filter(|_| entry.dialect == Dialect::Opencode)?;
    Some(cut(members, members.iter().position(|member| member.key == "oauth")?))
}

/// Codex takes some values from its own environment. A command sees of that only what is listed in `env_vars`.
fn from_environment(
    text: &str,
    address: &Address<'_>,
    edits: &mut Vec<Edit>,
    words: &mut Vec<String>,
) -> Result<(), Why> {
    let mut variables = Vec::new();
    let mut pass = |header: &str, scheme: &str, variable: &Node| {
        if !credential::is_variable(variable) || !credential::is_header_name(header) {
            return Err(Why::Header(header.to_owned()));
        }
        let name = variable.text().unwrap_or_default();
        words.extend([quote("--header"), quote(&format!("{header}: {scheme}${name}"))]);
        variables.push(variable.raw(text).to_owned());
        Ok(())
    };
    if let Some(bearer) = address.bearer {
        pass("Authorization", "Bearer ", &bearer.value)?;
    }
    if let Some(env_headers) = address.env_headers {
        let inline = env_headers.value.raw(text).starts_with('{');
        let headers = env_headers.value.table().filter(|_| inline).ok_or(Why::Spread("env_http_headers"))?;
        for header in headers {
            pass(&header.key, "", &header.value)?;
        }
    }
    let mut holders = [address.bearer, address.env_headers].into_iter().flatten();
    if let Some(first) = holders.next() {
        edits.push(rename(first, "env_vars"));
        edits.push(Edit::new(first.value.span.clone(), list(&variables)));
    }
    match holders.next() {
        Some(second) if second.style == Style::TomlLine => edits.push(cut_lines(text, second)),
        Some(_) => return Err(Why::Both("bearer_token_env_var", "env_http_headers")),
        None => {}
    }
    Ok(())
}

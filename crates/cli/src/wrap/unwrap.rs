//! An entry back to what it was, from what it says itself: for a file that was changed since, or has no backup.

use super::edit::{Edit, cut, quote, rename};
use super::entry::Entry;
use super::judge::{Call, Verdict, Why, judge};
use super::tree::{Node, Style};

/// What stands behind `linetender`, if it still is what `linetender run` takes.
enum Run<'t> {
    /// `run --name NAME -- COMMAND`
    Command(&'t [Node]),
    /// `run --name NAME --header "A: $B" URL`
    Address { url: &'t Node, headers: Vec<(&'t str, &'t str)> },
}

impl<'t> Run<'t> {
    fn of(words: &'t [Node]) -> Option<Self> {
        let (mut rest, mut headers) = (words.get(1..)?, Vec::new());
        // A value may look like anything, also like `--`: a server can be called that.
        loop {
            match (rest.first()?.text()?, rest.get(1)) {
                ("--", _) => return Some(Self::Command(rest.get(1..)?)),
                ("--header", Some(header)) => headers.push(header.text()?.split_once(": $")?),
                ("--name" | "--log", Some(_)) => {}
                (word, None) if !word.starts_with('-') => {
                    return Some(Self::Address { url: rest.first()?, headers });
                }
                _ => return None,
            }
            rest = rest.get(2..)?;
        }
    }
}

pub(super) fn edits(
    text: &str,
    entry: &Entry<'_>,
    call: Call<'_>,
    original: Option<&Entry<'_>>,
) -> Result<Vec<Edit>, Why> {
    let (_, words) = call.words();
    let edits = match Run::of(words) {
        Some(Run::Command(rest)) => command(text, call, rest),
        Some(Run::Address { url, headers }) => address(text, entry, (url, headers), original),
        None => None,
    };
    edits.filter(|edits| !overlap(edits)).ok_or(Why::Changed)
}

/// The command stands behind `--`.
fn command(text: &str, call: Call<'_>, rest: &[Node]) -> Option<Vec<Edit>> {
    let original = rest.first()?;
    Some(match call {
        Call::Split { command, args } => {
            let args = args?;
            let first = args.list()?.first()?;
            // With nothing left, a trailing comma goes too.
            let until = rest.get(1).map_or(args.span.end.checked_sub(1)?, |next| next.span.start);
            let command = Edit::new(command.value.span.clone(), original.raw(text));
            vec![command, Edit::new(first.span.start..until, "")]
        }
        Call::Whole { program, .. } => vec![Edit::new(program.span.start..original.span.start, "")],
    })
}

/// The address is the last word, the headers' values are in variables. TOML entries are spread over too many places.
fn address(
    text: &str,
    entry: &Entry<'_>,
    (url, headers): (&Node, Vec<(&str, &str)>),
    original: Option<&Entry<'_>>,
) -> Option<Vec<Edit>> {
    let members = entry.node.table()?;
    let index = |key: &str| members.iter().rposition(|member| member.key == key);
    let command = members.get(index("command")?).filter(|command| command.style == Style::Json)?;
    let env = index(entry.dialect.env());
    let variables = env.and_then(|env| members.get(env)?.value.table()).unwrap_or_default();
    let mut edits = Vec::new();
    let mut raw_url = url.raw(text);
    for (at, variable) in variables.iter().enumerate() {
        if url.text()?.strip_prefix('$') == Some(&variable.key) {
            raw_url = variable.value.raw(text);
            // Alone in its table, it takes that along.
            let (members, at) = if variables.len() == 1 { (members, env?) } else { (variables, at) };
            edits.push(cut(members, at));
        } else {
            let header = headers.iter().find(|(_, name)| *name == variable.key)?;
            edits.push(rename(variable, header.0));
        }
    }
    if !headers.is_empty() {
        edits.push(rename(members.get(env?)?, entry.dialect.headers()));
    }
    let was = original.map(|original| judge(original, true));
    let (key, kind) = match &was {
        Some(Verdict::Address(was)) => (was.url.key.as_str(), was.kind.and_then(|kind| kind.value.text())),
        _ => ("url", None),
    };
    edits.push(rename(command, key));
    edits.push(Edit::new(command.value.span.clone(), raw_url));
    if let Some(args) = index("args") {
        edits.push(cut(members, args));
    }
    if let Some(now) = entry.node.get("type").or_else(|| entry.node.get("transport")) {
        let kind = quote(kind.unwrap_or(entry.dialect.remote()));
        edits.push(Edit::new(now.value.span.clone(), kind));
    }
    Some(edits)
}

fn overlap(edits: &[Edit]) -> bool {
    let mut ranges: Vec<_> = edits.iter().map(|edit| &edit.range).collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.windows(2).any(|pair| pair[0].end > pair[1].start)
}

//! An entry back to what it was, from what it says itself: for a file that was changed since, or has no backup.

use super::edit::{Edit, cut, dash, line_start, quote, rename};
use super::entry::Entry;
use super::judge::{Call, Decision, SSE, Why, judge};
use super::ours::{Run, Target};
use super::tree::{Node, Style};

pub(super) fn edits(
    text: &str,
    entry: &Entry<'_>,
    call: Call<'_>,
    original: Option<&Entry<'_>>,
) -> Result<Vec<Edit>, Why> {
    let edits = Run::of(call.behind_start()).and_then(|run| match run.target {
        Target::Command(rest) | Target::Bare(rest) => command(text, call, rest),
        Target::Address(url) => address(text, entry, url, &run, original),
    });
    edits.filter(|edits| !overlap(edits)).ok_or(Why::Changed)
}

/// The command stands at the end, and all before it is ours.
fn command(text: &str, call: Call<'_>, rest: &[Node]) -> Option<Vec<Edit>> {
    let original = rest.first()?;
    Some(match call {
        Call::Split { command, args } => {
            let args = args?;
            let first = args.list()?.first()?;
            if let Some((line, _)) = dash(text, args, first) {
                // Without an item a block is no list any more: then it was not there before.
                let next = line_start(text, rest.get(1)?.span.start);
                let command = Edit::new(command.value.span.clone(), original.raw(text));
                return Some(vec![command, Edit::new(line..next, "")]);
            }
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
    url: &Node,
    run: &Run<'_>,
    original: Option<&Entry<'_>>,
) -> Option<Vec<Edit>> {
    let headers: Vec<(&str, &str)> =
        run.headers.iter().map(|header| header.split_once(": $")).collect::<Option<_>>()?;
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
    let was = original.map(judge);
    let (key, kind) = match &was {
        Some(Decision::Address(was)) => (was.url.key.as_str(), was.kind.and_then(|kind| kind.value.text())),
        _ => ("url", None),
    };
    edits.push(rename(command, key));
    edits.push(Edit::new(command.value.span.clone(), raw_url));
    if let Some(args) = index("args") {
        edits.push(cut(members, args));
    }
    if let Some(now) = entry.node.get("type").or_else(|| entry.node.get("transport")) {
        let sse = run.transport.filter(|transport| *transport == SSE);
        let kind = quote(kind.or(sse).unwrap_or(entry.dialect.remote()));
        edits.push(Edit::new(now.value.span.clone(), kind));
    }
    Some(edits)
}

fn overlap(edits: &[Edit]) -> bool {
    let mut ranges: Vec<_> = edits.iter().map(|edit| &edit.range).collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.windows(2).any(|pair| pair[0].end > pair[1].start)
}

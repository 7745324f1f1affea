//! Changes to ranges of a text, and how something new is written so that it looks like what stands around it.

use std::ops::Range;

use super::tree::{Member, Node, Style};

/// These bytes become this text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn new(range: Range<usize>, text: impl Into<String>) -> Self {
        Self { range, text: text.into() }
    }
}

/// The part of a text in `range`, with the edits made that lie in it.
pub(super) fn apply(text: &str, range: Range<usize>, edits: &[Edit]) -> String {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    // What is put between two bytes comes before what takes the place of the second.
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let (mut out, mut at) = (String::with_capacity(range.len()), range.start);
    for edit in edits {
        out.push_str(text.get(at..edit.range.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.range.end;
    }
    out.push_str(text.get(at..range.end).unwrap_or_default());
    out
}

/// A string as JSON, TOML and YAML read it.
pub(super) fn quote(text: &str) -> String {
    let escaped = text.chars().map(|char| match char {
        '"' | '\\' => format!("\\{char}"),
        '\0'..='\x1f' | '\x7f' => format!("\\u{:04x}", u32::from(char)),
        _ => char.to_string(),
    });
    ["\"".to_owned()].into_iter().chain(escaped).chain(["\"".to_owned()]).collect()
}

/// A list on one line, of values that are quoted already.
pub(super) fn list(raw: &[String]) -> String {
    format!("[{}]", raw.join(", "))
}

/// A table on one line, with one member whose value is quoted already.
pub(super) fn table(style: Style, key: &str, raw: &str) -> String {
    match style {
        Style::Json => format!("{{ {}: {raw} }}", quote(key)),
        Style::YamlBlock | Style::YamlFlow => format!("{{ {key}: {raw} }}"),
        Style::TomlLine | Style::TomlInline | Style::TomlDotted => format!("{{ {key} = {raw} }}"),
    }
}

/// A key in the place of another.
pub(super) fn rename(member: &Member, key: &str) -> Edit {
    let text = match member.style {
        Style::Json => quote(key),
        Style::TomlLine | Style::TomlInline | Style::TomlDotted | Style::YamlBlock | Style::YamlFlow => {
            key.to_owned()
        }
    };
    Edit::new(member.key_span.clone(), text)
}

/// New first items of a list, written like those that are there.
pub(super) fn prepend(text: &str, array: &Node, raw: &[String]) -> Edit {
    let items = array.list().unwrap_or_default();
    if let Some(first) = items.first()
        && let Some((line, dash)) = dash(text, array, first)
    {
        let newline = newline(text);
        return Edit::new(
            line..line,
            raw.iter().flat_map(|raw| [dash, raw.as_str(), newline]).collect::<String>(),
        );
    }
    let Some(first) = items.first() else {
        let after_bracket = array.span.start + 1;
        return Edit::new(after_bracket..after_bracket, raw.join(", "));
    };
    let between = items.get(1).and_then(|second| text.get(first.span.end..second.span.start));
    let separator =
        match between.filter(|between| between.chars().all(|char| char == ',' || char.is_whitespace())) {
            Some(between) => between.to_owned(),
            None => own_line(text, first.span.start)
                .map_or_else(|| ", ".to_owned(), |indent| format!(",{indent}")),
        };
    let at = first.span.start;
    Edit::new(at..at, raw.iter().flat_map(|raw| [raw.as_str(), separator.as_str()]).collect::<String>())
}

/// New members right after one that is there; the values are quoted already.
pub(super) fn after(text: &str, member: &Member, new: &[(&str, String)]) -> Edit {
    let end = member.value.span.end;
    match member.style {
        Style::Json => {
            let colon = text.get(member.key_span.end..member.value.span.start);
            let colon = colon.filter(|colon| matches!(*colon, ":" | ": " | " : " | " :")).unwrap_or(": ");
            // A comment behind the member speaks of its line: what is new then stays on that line.
            let commented =
                text[end..].lines().next().is_some_and(|rest| rest.contains("//") || rest.contains("/*"));
            let indent = own_line(text, member.key_span.start).filter(|_| !commented);
            let gap = indent.unwrap_or_else(|| if colon == ":" { String::new() } else { " ".to_owned() });
            let new = new.iter().map(|(key, raw)| format!(",{gap}{}{colon}{raw}", quote(key)));
            Edit::new(end..end, new.collect::<String>())
        }
        Style::YamlFlow => {
            Edit::new(end..end, new.iter().flat_map(|(key, raw)| [", ", key, ": ", raw]).collect::<String>())
        }
        Style::YamlBlock => {
            // Indentation; the first key of an item has its dash there.
            let line = line_start(text, member.key_span.start);
            let (indent, newline) = (text[line..member.key_span.start].replace('-', " "), newline(text));
            let at = line_end(text, end);
            let new = new.iter().map(|(key, raw)| format!("{newline}{indent}{key}: {raw}"));
            Edit::new(at..at, new.collect::<String>())
        }
        Style::TomlInline => {
            Edit::new(end..end, new.iter().flat_map(|(key, raw)| [", ", key, " = ", raw]).collect::<String>())
        }
        Style::TomlLine | Style::TomlDotted => {
            // Indentation, and the front of a dotted key.
            let line = line_start(text, member.key_span.start);
            let (prefix, newline) = (&text[line..member.key_span.start], newline(text));
            let at = line_end(text, end);
            let new = new.iter().map(|(key, raw)| format!("{newline}{prefix}{key} = {raw}"));
            Edit::new(at..at, new.collect::<String>())
        }
    }
}

/// Where the line of the first item of a YAML block begins, and what stands before each item there: its dash. Lists in brackets have none.
pub(super) fn dash<'t>(text: &'t str, array: &Node, first: &Node) -> Option<(usize, &'t str)> {
    if array.raw(text).starts_with('[') {
        return None;
    }
    let line = line_start(text, first.span.start);
    let before = &text[line..first.span.start];
    (before.trim() == "-").then_some((line, before))
}

/// Where the line begins that this place is on.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where it ends, before its line break.
fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if text[..end].ends_with('\r') { end - 1 } else { end }
}

/// Takes a JSON member away, and the comma that it needed.
pub(super) fn cut(members: &[Member], at: usize) -> Edit {
    let member = &members[at];
    let range = match (at.checked_sub(1).and_then(|before| members.get(before)), members.get(at + 1)) {
        (Some(before), _) => before.value.span.end..member.value.span.end,
        (None, Some(next)) => member.key_span.start..next.key_span.start,
        (None, None) => member.key_span.start..member.value.span.end,
    };
    Edit::new(range, "")
}

/// Takes away the TOML lines that a member stands on.
pub(super) fn cut_lines(text: &str, member: &Member) -> Edit {
    let start = text[..member.key_span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = member.value.span.end;
    Edit::new(start..text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1), "")
}

/// The line break and indentation before something that begins its line.
fn own_line(text: &str, at: usize) -> Option<String> {
    let start = text[..at].rfind('\n')? + 1;
    let indent = &text[start..at];
    indent.chars().all(char::is_whitespace).then(|| format!("{}{indent}", newline(text)))
}

fn newline(text: &str) -> &'static str {
    let first = text.find('\n').unwrap_or_default();
    if text[..first].ends_with('\r') { "\r\n" } else { "\n" }
}

//! YAML as some agents write their configuration: values that know where they stand, in bytes.
//!
//! Only what such files have is read. An anchor stands for text elsewhere, so a change in one place would be one in another, and aliases of
//! aliases grow without end: a file that has any is refused, as is one with several documents, with a key twice, or with a key that is no text.

use std::collections::HashSet;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// No agent's configuration is larger, deeper, or has more in it.
const LARGEST: usize = 1024 * 1024;
const DEEPEST: usize = 64;
const MOST: usize = 100_000;

/// A value and its place.
#[derive(Debug, PartialEq)]
pub struct Yaml {
    /// Where it is written. Of a block this begins with its first key, or behind the first dash.
    pub at: Range<usize>,
    /// What it is.
    pub is: Value,
    /// Whether that range is all of it, on one line: a block, or a text of several lines, is not.
    pub in_place: bool,
}

/// What a value is.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is spelt.
    Number(String),
    /// A text.
    Text(String),
    /// A sequence.
    List(Vec<Yaml>),
    /// A mapping, in its order.
    Table(Vec<Member>),
}

/// A named value.
#[derive(Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Where that stands.
    pub at: Range<usize>,
    /// Its value.
    pub value: Yaml,
}

/// Why a text is not read, and where.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}")]
pub struct Wrong {
    /// The place, in bytes.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

/// Reads a text.
///
/// # Errors
/// If it is no YAML, or more of it than agents use.
pub fn parse(text: &str) -> Result<Yaml, Wrong> {
    if text.len() > LARGEST {
        return Err(wrong(0, "the file is larger than 1 MiB"));
    }
    let mut build = Build { text, bytes: offsets(text), open: Vec::new(), root: None, values: 0 };
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| wrong(build.byte(error.marker().index()), error.info().to_owned()))?;
        let start = build.byte(span.start.index());
        build.event(event, start..build.byte(span.end.index()).max(start))?;
    }
    Ok(build.root.unwrap_or(Yaml { at: 0..0, is: Value::Null, in_place: false }))
}

fn wrong(at: usize, what: impl Into<String>) -> Wrong {
    Wrong { at, what: what.into() }
}

/// Where each character begins, if any is of several bytes: the parser counts characters.
fn offsets(text: &str) -> Option<Vec<usize>> {
    (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect())
}

struct Build<'t> {
    text: &'t str,
    bytes: Option<Vec<usize>>,
    /// The lists and tables that are not finished.
    open: Vec<Open>,
    root: Option<Yaml>,
    values: usize,
}

enum Open {
    List {
        start: usize,
        flow: bool,
        items: Vec<Yaml>,
    },
    Table {
        start: usize,
        flow: bool,
        members: Vec<Member>,
        names: HashSet<String>,
        name: Option<(String, Range<usize>)>,
    },
}

impl Build<'_> {
    fn byte(&self, character: usize) -> usize {
        match &self.bytes {
            Some(bytes) => bytes.get(character).copied().unwrap_or(self.text.len()),
            None => character.min(self.text.len()),
        }
    }

    fn event(&mut self, event: Event<'_>, at: Range<usize>) -> Result<(), Wrong> {
        match event {
            Event::Alias(_) => Err(anchors(at.start)),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => {
                Err(anchors(at.start))
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(wrong(at.start, "the file has more than one document (`---`)"))
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => Err(wrong(at.start, "tags (`!…`) are not supported")),
            Event::Scalar(text, style, ..) => {
                let value = self.scalar(&text, style, at);
                self.put(value)
            }
            Event::SequenceStart(..) => {
                let flow = self.text[at.start..].starts_with('[');
                self.begin(Open::List { start: at.start, flow, items: Vec::new() }, at.start)
            }
            Event::MappingStart(..) => {
                let flow = self.text[at.start..].starts_with('{') && at.end > at.start;
                let names = HashSet::new();
                self.begin(
                    Open::Table { start: at.start, flow, members: Vec::new(), names, name: None },
                    at.start,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => {
                // Of a bracket the range begins with it, and goes on to what follows.
                let bracket = usize::from(self.text[at.start..].starts_with([']', '}']));
                let done = self.open.pop().map(|open| open.done(at.start + bracket));
                done.map_or(Ok(()), |value| self.put(value))
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, at: usize) -> Result<(), Wrong> {
        if self.open.len() >= DEEPEST {
            return Err(wrong(at, format!("nested deeper than {DEEPEST} levels")));
        }
        if matches!(self.open.last(), Some(Open::Table { name: None, .. })) {
            return Err(wrong(at, "a key must be a text"));
        }
        self.open.push(open);
        Ok(())
    }

    /// Puts a value where it belongs: it is a key, if one is wanted.
    fn put(&mut self, value: Yaml) -> Result<(), Wrong> {
        self.values += 1;
        if self.values > MOST {
            return Err(wrong(value.at.start, format!("more than {MOST} values")));
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Table { members, name, names, .. }) => {
                if let Some((name, at)) = name.take() {
                    members.push(Member { name, at, value });
                } else {
                    let at = value.at.clone();
                    let key = key(value)?;
                    if !names.insert(key.clone()) {
                        return Err(wrong(at.start, "the same key is given twice"));
                    }
                    *name = Some((key, at));
                }
            }
        }
        Ok(())
    }

    /// A scalar, and whether the range is all of it: what is quoted has its quotes there, and what is not, all of its text.
    fn scalar(&self, text: &str, style: ScalarStyle, at: Range<usize>) -> Yaml {
        let quote = match style {
            ScalarStyle::SingleQuoted => Some('\''),
            ScalarStyle::DoubleQuoted => Some('"'),
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => None,
        };
        // The parser's range of what is quoted goes on to what follows.
        let (raw, in_place) = if let Some(quote) = quote {
            let raw = quoted(&self.text[at.start..], quote);
            (raw.unwrap_or(&self.text[at.clone()]), raw.is_some())
        } else {
            let raw = self.text[at.clone()].trim_end();
            (raw, style == ScalarStyle::Plain && raw == text && !raw.is_empty())
        };
        let is = if style == ScalarStyle::Plain { plain(text) } else { Value::Text(text.to_owned()) };
        Yaml { at: at.start..at.start + raw.len(), is, in_place }
    }
}

/// The text of a key.
fn key(value: Yaml) -> Result<String, Wrong> {
    match value.is {
        Value::Text(text) if text == "<<" => Err(anchors(value.at.start)),
        Value::Text(text) | Value::Number(text) if value.in_place => Ok(text),
        Value::Bool(is) => Ok(is.to_string()),
        _ => Err(wrong(value.at.start, "a key must be a text on one line")),
    }
}

/// What stands between quotes at the beginning of this, with them, if they are on one line.
fn quoted(text: &str, quote: char) -> Option<&str> {
    let mut characters = text.char_indices().peekable();
    characters.next().filter(|(_, first)| *first == quote)?;
    while let Some((at, character)) = characters.next() {
        match character {
            '\n' => return None,
            '\\' if quote == '"' => {
                characters.next().filter(|(_, escaped)| *escaped != '\n' && *escaped != '\r')?;
            }
            // Two of them are one.
            '\'' if quote == '\'' && characters.next_if(|(_, next)| *next == '\'').is_some() => {}
            _ if character == quote => return Some(&text[..=at]),
            _ => {}
        }
    }
    None
}

impl Open {
    fn done(self, end: usize) -> Yaml {
        // A block ends with the last thing in it, not where the next begins.
        let range = |start: usize, flow: bool, last: Option<usize>| {
            start..if flow { end } else { last.unwrap_or(start).max(start) }
        };
        match self {
            Self::List { start, flow, items } => {
                let at = range(start, flow, items.last().map(|item| item.at.end));
                Yaml { at, is: Value::List(items), in_place: flow }
            }
            Self::Table { start, flow, members, .. } => {
                let at =
                    range(start, flow, members.last().map(|member| member.value.at.end.max(member.at.end)));
                Yaml { at, is: Value::Table(members), in_place: flow }
            }
        }
    }
}

fn anchors(at: usize) -> Wrong {
    wrong(at, "anchors, aliases and merge keys (`&`, `*`, `<<`) are not supported: write their text out")
}

/// What a text without quotes is (YAML 1.2, "Core Schema").
fn plain(text: &str) -> Value {
    let digits = text.trim_start_matches(['-', '+']);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && text.parse::<f64>().is_ok();
    let based = |prefix: &str, radix| {
        digits.strip_prefix(prefix).is_some_and(|digits| u128::from_str_radix(digits, radix).is_ok())
    };
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number || based("0x", 16) || based("0o", 8) => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

impl Yaml {
    /// A member of a table.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match &self.is {
            Value::Table(members) => {
                members.iter().find(|member| member.name == name).map(|member| &member.value)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, Yaml, parse};

    fn raw<'t>(text: &'t str, value: &Yaml) -> &'t str {
        &text[value.at.clone()]
    }

    #[test]
    fn values_know_where_they_stand_whatever_is_around_them() {
        let text = "# größe\r\nextensions:\r\n  größe:  # c\n    cmd: npx   # hi\n    args:\n      - -y\n      - \"a b\"  # \"c\n    env: {A: b c , D: [x, 'y']} # ]}\n    single: 'it''s' # '\n    double: \"a\\\"b\\\\\"   # \"\n    lines: \"a\n      b\"\n    empty:\n    block: |\n      text\n    last: plain text\n";
        let root = parse(text).unwrap();
        let server = root.get("extensions").unwrap().get("größe").unwrap();
        for (name, expected, in_place) in [
            ("cmd", "npx", true),
            ("args", "-y\n      - \"a b\"", false),
            ("env", "{A: b c , D: [x, 'y']}", true),
            ("single", "'it''s'", true),
            ("double", r#""a\"b\\""#, true),
            ("last", "plain text", true),
        ] {
            let value = server.get(name).unwrap();
            assert_eq!(
                (raw(text, value).trim_start_matches("- "), value.in_place),
                (expected, in_place),
                "{name}"
            );
        }
        assert_eq!(server.get("empty").unwrap().is, Value::Null);
        let lines = server.get("lines").unwrap();
        assert_eq!((&lines.is, lines.in_place), (&Value::Text("a b".into()), false));
        let block = server.get("block").unwrap();
        assert_eq!((&block.is, block.in_place), (&Value::Text("text\n".into()), false));
        let Value::List(items) = &server.get("args").unwrap().is else { panic!() };
        assert_eq!(items.iter().map(|item| raw(text, item)).collect::<Vec<_>>(), ["-y", "\"a b\""]);
    }

    #[test]
    fn plain_texts_are_what_the_core_schema_says() {
        let list = parse("[true, yes, ~, 1, -1.5, 0x1f, 1.2.3, '1', no, 007, .5, e1, -y, '']").unwrap();
        let Value::List(items) = list.is else { panic!() };
        let kinds: String = items
            .iter()
            .map(|item| match item.is {
                Value::Bool(_) => 'b',
                Value::Null => '0',
                Value::Number(_) => 'n',
                _ => 't',
            })
            .collect();
        assert_eq!(kinds, "bt0nnnttttnttt".replacen("tttt", "tttn", 1));
    }

    #[test]
    fn what_cannot_be_changed_in_one_place_is_refused() {
        for (text, said) in [
            ("a: &x 1\nb: *x", "anchors"),
            ("a: &x\n  - 1", "anchors"),
            ("a: &x {b: 1}", "anchors"),
            ("<<: {a: 1}", "anchors"),
            ("a: 1\n---\nb: 2", "more than one document"),
            ("a: 1\na: 2", "given twice"),
            ("a: !!str 1", "tags"),
            ("? [a]\n: b", "key must be a text"),
            ("? {a: b}\n: b", "key must be a text"),
            ("a: {b: c", "expected"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.what.contains(said), "{text}: {wrong:?}");
        }
        for deep in [
            "[".repeat(1 << 19),
            "{a: ".repeat(1 << 17),
            format!("a: {}1", "[".repeat(100)),
            "- ".repeat(1 << 18),
        ] {
            assert!(parse(&deep).is_err());
        }
        let many = "- 1\n".repeat(super::MOST + 1);
        assert!(parse(&many).unwrap_err().what.contains("values"));
        let laughs: Vec<_> = (0..20).map(|n| format!("a{n}: &a{n} [*a{n}, *a{n}]")).collect();
        assert!(parse(&laughs.join("\n")).is_err());
        assert_eq!(parse("").unwrap().is, Value::Null);
    }
}

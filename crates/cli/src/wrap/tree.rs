//! What JSON(C), TOML and YAML have in common, with the place of everything in the text: a change is made to a range of bytes, so
//! that all other bytes stay as their owner wrote them.

use std::ops::Range;

use super::edit::quote;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    /// Where it is written. A TOML table that is written in several places has no one range: this is empty then.
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    List(Vec<Node>),
    Table(Vec<Member>),
    Bool(bool),
    /// Numbers, dates, null: nothing that a server's entry is judged by.
    Other,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: Node,
    pub(super) style: Style,
}

/// How a member is written, and so what one beside it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `"key": value`, with commas between.
    Json,
    /// `key = value` on a line of its own, or a `[table]`.
    TomlLine,
    /// `key = value` between the braces of an inline table.
    TomlInline,
    /// `key: value` on a line of its own.
    YamlBlock,
    /// `key: value` between braces.
    YamlFlow,
    /// A table that exists only as `key.inner = value`, perhaps several times: it cannot be renamed in one place.
    TomlDotted,
}

impl Node {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Table(_) | Value::Bool(_) | Value::Other => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            Value::Text(_) | Value::Table(_) | Value::Bool(_) | Value::Other => None,
        }
    }

    pub(super) fn table(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Table(members) => Some(members),
            Value::Text(_) | Value::List(_) | Value::Bool(_) | Value::Other => None,
        }
    }

    /// The member that counts: of several with one name, parsers take the last.
    pub(super) fn get(&self, key: &str) -> Option<&Member> {
        self.table()?.iter().rfind(|member| member.key == key)
    }

    /// As it is written among other items of a list on one line.
    pub(super) fn raw_in_list(&self, text: &str, style: Style) -> String {
        let raw = self.raw(text);
        let is_plain = !raw.starts_with(['"', '\'']);
        let splits = matches!(style, Style::YamlBlock | Style::YamlFlow)
            && is_plain
            && raw.contains([',', '[', ']', '{', '}']);
        match self.text().filter(|_| splits) {
            Some(text) => quote(text),
            None => raw.to_owned(),
        }
    }

    /// As it is written, quotes and escapes included.
    pub(super) fn raw<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.span.clone()).unwrap_or_default()
    }
}

//! TOML, as Codex writes it.

use toml_edit::{Document, Item, Key, TableLike};

use super::error::Syntax;
use super::tree::{Member, Node, Style, Value};

/// The tree of a text. The parser ends at 80 levels of nesting, and so does the recursion here.
pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Syntax::at(text, at, error.message())
    })?;
    Ok(Node { span: 0..text.len(), value: Value::Table(members(document.as_table(), Style::TomlLine)) })
}

fn members(table: &dyn TableLike, style: Style) -> Vec<Member> {
    let keys = table.iter().filter_map(|(key, _)| table.get_key_value(key));
    keys.filter(|(_, item)| !item.is_none()).map(|(key, item)| member(key, item, style)).collect()
}

fn member(key: &Key, item: &Item, style: Style) -> Member {
    let dotted = item.as_table_like().is_some_and(TableLike::is_dotted);
    let style_inside = if item.is_inline_table() { Style::TomlInline } else { style };
    Member {
        key: key.get().to_owned(),
        key_span: key.span().unwrap_or_default(),
        value: Node { span: item.span().unwrap_or_default(), value: value(item, style_inside) },
        style: if dotted { Style::TomlDotted } else { style },
    }
}

fn value(item: &Item, style: Style) -> Value {
    if let Some(table) = item.as_table_like() {
        return Value::Table(members(table, style));
    }
    match item {
        Item::Value(toml_edit::Value::String(text)) => Value::Text(text.value().clone()),
        Item::Value(toml_edit::Value::Boolean(bool)) => Value::Bool(*bool.value()),
        Item::Value(toml_edit::Value::Array(array)) => Value::List(
            array
                .iter()
                .map(|inner| {
                    let item = Item::Value(inner.clone());
                    Node { span: inner.span().unwrap_or_default(), value: value(&item, Style::TomlInline) }
                })
                .collect(),
        ),
        Item::Value(_) | Item::Table(_) | Item::ArrayOfTables(_) | Item::None => Value::Other,
    }
}

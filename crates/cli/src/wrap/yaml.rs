//! YAML, as goose and Continue write it. What is not written in one place, on one line, is judged as something that wrap does not change.

use linetender_gateway::yaml::{self, Yaml};

use super::edit::{dash, line_start};
use super::error::Syntax;
use super::tree::{Member, Node, Style, Value};

/// The tree of a text. The parser ends at 64 levels of nesting, and so does the recursion here.
pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let root = yaml::parse(text).map_err(|wrong| Syntax::at(text, wrong.at, &wrong.what))?;
    node(text, root)
}

fn node(text: &str, yaml: Yaml) -> Result<Node, Syntax> {
    let Yaml { at, is, in_place } = yaml;
    let value = match is {
        yaml::Value::Text(value) if in_place => Value::Text(value),
        yaml::Value::Bool(is) => Value::Bool(is),
        yaml::Value::List(items) => {
            let items = items.into_iter().map(|item| node(text, item)).collect::<Result<Vec<_>, _>>()?;
            list(text, &Node { span: at.clone(), value: Value::Other }, items)
        }
        yaml::Value::Table(members) => {
            let style = if in_place { Style::YamlFlow } else { Style::YamlBlock };
            let members = members.into_iter().map(|one| member(text, one, style));
            Value::Table(members.collect::<Result<_, _>>()?)
        }
        _ => Value::Other,
    };
    Ok(Node { span: at, value })
}

fn member(text: &str, yaml: yaml::Member, style: Style) -> Result<Member, Syntax> {
    let yaml::Member { name, at, value } = yaml;
    let before = &text[line_start(text, at.start)..at.start];
    if style == Style::YamlBlock && !before.chars().all(|char| matches!(char, ' ' | '-')) {
        return Err(Syntax::at(text, at.start, "a key must stand alone at the beginning of its line"));
    }
    Ok(Member { key: name, key_span: at, value: node(text, value)?, style })
}

/// A list of words: in brackets, or each behind a dash on a line of its own.
fn list(text: &str, place: &Node, items: Vec<Node>) -> Value {
    let in_brackets = place.raw(text).starts_with('[');
    let is_table = |item: &Node| matches!(item.value, Value::Table(_));
    if in_brackets || items.iter().all(|item| is_table(item) || dash(text, place, item).is_some()) {
        Value::List(items)
    } else {
        Value::Other
    }
}

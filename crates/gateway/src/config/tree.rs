//! A file as values that know where they stand, whatever language it was written in.

use std::ops::Range;

use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, ast};
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::foreign;
use super::problem::{Problem, Text};
use crate::yaml::{self, Yaml};

/// A value and its place.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: Range<usize>,
    pub(super) is: Is,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Is {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// In the order they stand.
    Table(Vec<Member>),
}

/// A named value.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) at: Range<usize>,
    pub(super) value: Node,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// Ours: everything in it is meant for us.
    Own,
    /// An agent's: other programs keep things in it that are none of our business.
    Agents,
}

/// Reads a text. YAML is known by the name of its file. JSON begins with a brace, or with a comment that TOML does not have.
pub(super) fn parse(source: &Text<'_>) -> Result<(Node, Style), Box<Problem>> {
    let ending = source.name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    if let Some("yaml" | "yml") = ending.as_deref() {
        return Ok((yaml(source)?, Style::Agents));
    }
    match source.text.trim_start().chars().next() {
        Some('{' | '/') => json(source),
        _ => Ok((toml(source)?, Style::Own)),
    }
}

fn toml(source: &Text<'_>) -> Result<Node, Box<Problem>> {
    let table = DeTable::parse(source.text)
        .map_err(|error| source.problem(error.span().unwrap_or(0..0), error.message(), None))?;
    let at = table.span();
    Ok(Node { at, is: of_table(table.into_inner()) })
}

fn of_table(table: DeTable<'_>) -> Is {
    let mut members: Vec<Member> = table
        .into_iter()
        .map(|(name, value)| Member {
            at: name.span(),
            name: name.into_inner().into_owned(),
            value: of_toml(value),
        })
        .collect();
    members.sort_by_key(|member| member.at.start);
    Is::Table(members)
}

fn of_toml(value: Spanned<DeValue<'_>>) -> Node {
    let at = value.span();
    let is = match value.into_inner() {
        DeValue::String(text) => Is::Text(text.into_owned()),
        DeValue::Boolean(is) => Is::Bool(is),
        DeValue::Array(items) => Is::List(items.into_iter().map(of_toml).collect()),
        DeValue::Table(table) => of_table(table),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Is::Text(number.to_string()), |number| Is::Number(number.into())),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map_or_else(|| Is::Text(number.to_string()), Is::Number),
        DeValue::Datetime(time) => Is::Text(time.to_string()),
    };
    Node { at, is }
}

fn json(source: &Text<'_>) -> Result<(Node, Style), Box<Problem>> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    let parsed =
        jsonc_parser::parse_to_ast(source.text, &CollectOptions::default(), &options).map_err(|error| {
            let at = error.range();
            source.problem(at.start..at.end, error.kind().to_string(), None)
        })?;
    let Some(value) = parsed.value else {
        return Err(source.problem(0..0, "the file is empty", None));
    };
    let mut node = of_json(value);
    let mut style = Style::Own;
    if let Is::Table(members) = &mut node.is {
        for member in members.iter_mut() {
            if member.name == "mcpServers" {
                "servers".clone_into(&mut member.name);
                style = Style::Agents;
            }
        }
        if style == Style::Agents || members.iter().any(|member| member.name == "servers") {
            style = Style::Agents;
            for member in members.iter_mut().filter(|member| member.name == "servers") {
                foreign::in_our_words(&mut member.value, source)?;
            }
        }
    }
    Ok((node, style))
}

/// Only agents write YAML.
fn yaml(source: &Text<'_>) -> Result<Node, Box<Problem>> {
    let parsed =
        yaml::parse(source.text).map_err(|wrong| source.problem(wrong.at..wrong.at, wrong.what, None))?;
    let mut node = of_yaml(parsed);
    foreign::servers_of_yaml(&mut node, source)?;
    if let Is::Table(members) = &mut node.is {
        for member in members.iter_mut().filter(|member| member.name == "servers") {
            foreign::in_our_words(&mut member.value, source)?;
        }
    }
    Ok(node)
}

fn of_yaml(yaml: Yaml) -> Node {
    let member = |yaml::Member { name, at, value }| Member { name, at, value: of_yaml(value) };
    let is = match yaml.is {
        yaml::Value::Null => Is::Null,
        yaml::Value::Bool(is) => Is::Bool(is),
        yaml::Value::Number(text) => text.parse().map_or_else(|_| Is::Text(text), Is::Number),
        yaml::Value::Text(text) => Is::Text(text),
        yaml::Value::List(items) => Is::List(items.into_iter().map(of_yaml).collect()),
        yaml::Value::Table(members) => Is::Table(members.into_iter().map(member).collect()),
    };
    Node { at: yaml.at, is }
}

fn of_json(value: ast::Value<'_>) -> Node {
    let at = value.range();
    let at = at.start..at.end;
    let is = match value {
        ast::Value::StringLit(text) => Is::Text(text.value.into_owned()),
        ast::Value::NumberLit(number) => {
            number.value.parse().map_or_else(|_| Is::Text(number.value.to_owned()), Is::Number)
        }
        ast::Value::BooleanLit(is) => Is::Bool(is.value),
        ast::Value::NullKeyword(_) => Is::Null,
        ast::Value::Array(items) => Is::List(items.elements.into_iter().map(of_json).collect()),
        ast::Value::Object(object) => Is::Table(
            object
                .properties
                .into_iter()
                .map(|property| {
                    let at = property.name.range();
                    Member {
                        name: property.name.into_string(),
                        at: at.start..at.end,
                        value: of_json(property.value),
                    }
                })
                .collect(),
        ),
    };
    Node { at, is }
}

impl Node {
    /// A member of a table.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.member(name).map(|member| &member.value)
    }

    /// The same with its name.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members().iter().rev().find(|member| member.name == name)
    }

    /// The members of a table; nothing else has any.
    pub(super) fn members(&self) -> &[Member] {
        match &self.is {
            Is::Table(members) => members,
            Is::Null | Is::Bool(_) | Is::Number(_) | Is::Text(_) | Is::List(_) => &[],
        }
    }

    /// The members of each server.
    pub(super) fn servers_mut(&mut self) -> impl Iterator<Item = &mut Vec<Member>> {
        let all = self.members_mut().into_iter().flatten().filter(|member| member.name == "servers");
        let servers = all.filter_map(|member| member.value.members_mut()).flatten();
        servers.filter_map(|member| member.value.members_mut())
    }

    fn members_mut(&mut self) -> Option<&mut Vec<Member>> {
        match &mut self.is {
            Is::Table(members) => Some(members),
            Is::Null | Is::Bool(_) | Is::Number(_) | Is::Text(_) | Is::List(_) => None,
        }
    }

    /// Without its places.
    pub(super) fn value(&self) -> Value {
        match &self.is {
            Is::Null => Value::Null,
            Is::Bool(is) => Value::Bool(*is),
            Is::Number(number) => Value::Number(number.clone()),
            Is::Text(text) => Value::String(text.clone()),
            Is::List(items) => items.iter().map(Self::value).collect(),
            Is::Table(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.value.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

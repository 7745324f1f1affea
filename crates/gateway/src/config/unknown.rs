//! Names that are not known. In our own file they are errors, in an agent's they are taken out, but for what is meant to be a filter; with
//! the name that was probably meant.

use serde_json::Value;

use super::foreign;
use super::problem::{Problem, Text, key};
use super::schema::{member as described, resolved, schema};
use super::tree::{Is, Node, Style};
use super::understood::FILTERS;

/// How far a name may be from one that exists to be taken for it.
const NEAR: usize = 2;

/// How far a name may be from a filter's to be taken for it, in an agent's file, where others have names of their own.
const NEAR_A_FILTER: usize = 1;

/// Takes out what nobody knows; what is said of it.
pub(super) fn take_out(
    tree: &mut Node,
    style: Style,
    source: &Text<'_>,
) -> Result<Vec<Problem>, Box<Problem>> {
    let root = schema();
    let mut walk = Walk { root: &root, style, source, found: Vec::new(), fatal: None };
    walk.go(tree, &root, Place::File);
    match walk.fatal {
        Some(problem) => Err(problem),
        None => Ok(walk.found),
    }
}

/// Where a table stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    File,
    Servers,
    Server,
    /// In a filter. What is not known there hides something, or nothing.
    Filter,
    Elsewhere,
}

impl Place {
    fn below(self, name: &str) -> Self {
        match self {
            Self::File if name == "servers" => Self::Servers,
            Self::Servers => Self::Server,
            Self::Server if FILTERS.contains(&name) => Self::Filter,
            Self::Filter => Self::Filter,
            Self::File | Self::Server | Self::Elsewhere => Self::Elsewhere,
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    style: Style,
    source: &'a Text<'a>,
    found: Vec<Problem>,
    /// The first that the file is refused for.
    fatal: Option<Box<Problem>>,
}

impl<'a> Walk<'a> {
    fn go(&mut self, node: &mut Node, schema: &'a Value, place: Place) {
        let schema = resolved(schema, self.root);
        let Is::Table(members) = &mut node.is else { return };
        let known = schema.get("properties").and_then(Value::as_object);
        members.retain_mut(|member| {
            let of_it = described(schema, self.root, &member.name);
            match (of_it, known) {
                (Some(schema), _) => self.go(&mut member.value, schema, place.below(&member.name)),
                // Nothing is said of its members, so all of them are welcome.
                (None, None) => {}
                (None, Some(known)) => {
                    let near = nearest(&member.name, known.keys());
                    let is_filter =
                        place == Place::Filter || (place == Place::Server && self.is_filter(&member.name));
                    let help = self.help(&member.name, near, is_filter && place == Place::Server);
                    let said = |what: String| self.source.problem(member.at.clone(), what, help.clone());
                    // In an agent's file most of what we do not know is for somebody else.
                    if self.style == Style::Own || is_filter {
                        let problem = said(format!("unknown {}", key(&member.name)));
                        self.fatal.get_or_insert(problem);
                    } else if near.is_some() {
                        self.found.push(*said(format!("unknown {} ignored", key(&member.name))));
                    }
                    return false;
                }
            }
            true
        });
    }
}

impl Walk<'_> {
    /// Whether an unknown key of a server was probably meant to be a filter.
    fn is_filter(&self, name: &str) -> bool {
        is_near_a_filter(name) || (self.style == Style::Agents && foreign::looks_like_a_filter(name))
    }

    /// What was probably meant, in the words of whose file it is.
    fn help(&self, name: &str, near: Option<&String>, is_filter: bool) -> Option<String> {
        let of_agents = foreign::meant(name).filter(|_| is_filter && self.style == Style::Agents);
        match of_agents.or(near.map(String::as_str)) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if is_filter => Some(
                "it looks like a filter, and is not understood: list the tools to show in `includeTools`, or those to hide in `excludeTools`"
                    .to_owned(),
            ),
            None => None,
        }
    }
}

fn is_near_a_filter(name: &str) -> bool {
    FILTERS.iter().any(|known| strsim::damerau_levenshtein(&name.to_lowercase(), known) <= NEAR_A_FILTER)
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let far = |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), other);
    known.map(|other| (far(other), other)).filter(|(far, _)| *far <= NEAR).min().map(|(_, other)| other)
}

//! Names that are not known. In our own file they are errors, in an agent's they are taken out; with the name that was probably meant.

use serde_json::Value;

use super::problem::{Problem, Text, key};
use super::schema::{member as described, resolved, schema};
use super::tree::{Is, Node, Style};

/// How far a name may be from one that exists to be taken for it.
const NEAR: usize = 2;

/// Takes out what nobody knows.
pub(super) fn take_out(tree: &mut Node, style: Style, source: &Text<'_>) -> Vec<Problem> {
    let root = schema();
    let mut walk = Walk { root: &root, style, source, found: Vec::new() };
    walk.go(tree, &root);
    walk.found
}

struct Walk<'a> {
    root: &'a Value,
    style: Style,
    source: &'a Text<'a>,
    found: Vec<Problem>,
}

impl<'a> Walk<'a> {
    fn go(&mut self, node: &mut Node, schema: &'a Value) {
        let schema = resolved(schema, self.root);
        let Is::Table(members) = &mut node.is else { return };
        let known = schema.get("properties").and_then(Value::as_object);
        members.retain_mut(|member| {
            let of_it = described(schema, self.root, &member.name);
            match (of_it, known) {
                (Some(schema), _) => self.go(&mut member.value, schema),
                // Nothing is said of its members, so all of them are welcome.
                (None, None) => {}
                (None, Some(known)) => {
                    let near = nearest(&member.name, known.keys());
                    // In an agent's file most of what we do not know is for somebody else.
                    if self.style == Style::Own || near.is_some() {
                        let help = near.map(|near| format!("did you mean `{near}`?"));
                        let what = match self.style {
                            Style::Own => format!("unknown {}", key(&member.name)),
                            Style::Agents => format!("unknown {} ignored", key(&member.name)),
                        };
                        self.found.push(*self.source.problem(member.at.clone(), what, help));
                    }
                    return false;
                }
            }
            true
        });
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let far = |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), other);
    known.map(|other| (far(other), other)).filter(|(far, _)| *far <= NEAR).min().map(|(_, other)| other)
}

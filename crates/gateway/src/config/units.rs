//! Times and sizes that were written as people do become numbers of milliseconds and bytes.

use serde_json::Value;

use super::problem::{Problem, Text};
use super::schema::{Unit, member, resolved, schema};
use super::tree::{Is, Node};
use crate::units;

/// What is said of a time that is none.
const TIME: &str =
    "expected a duration: a number of milliseconds, or text such as \"250ms\", \"30s\" or \"1h 30m\"";

/// Makes numbers of all of them.
pub(super) fn read(tree: &mut Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let root = schema();
    read_as(tree, &root, &root, source)
}

fn read_as(node: &mut Node, of: &Value, root: &Value, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let of = resolved(of, root);
    match &mut node.is {
        Is::Table(members) => {
            for one in members {
                if let Some(of) = member(of, root, &one.name) {
                    read_as(&mut one.value, of, root, source)?;
                }
            }
        }
        Is::Text(text) => {
            let read = match Unit::in_schema(of) {
                // What stands there may be a secret, so it is not repeated.
                Some(Unit::Time) => units::time(text)
                    .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
                    .map_err(|_| TIME.to_owned()),
                Some(Unit::Size) => units::size(text).map(u64::from),
                Some(Unit::Things) | None => return Ok(()),
            };
            let number = read.map_err(|wrong| source.problem(node.at.clone(), wrong, None))?;
            node.is = Is::Number(number.into());
        }
        Is::Null | Is::Bool(_) | Is::Number(_) | Is::List(_) => {}
    }
    Ok(())
}

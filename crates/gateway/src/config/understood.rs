//! Filters that cannot be understood are refused, in whosever file: one that is passed over, or that means something else than its
//! author thinks, shows what was to be hidden.

use super::filter::{Of, wrong};
use super::problem::{Problem, Text};
use super::tree::{Is, Node};

/// The settings that hide something.
pub(super) const FILTERS: [&str; 4] = ["tools", "prompts", "resources", "access"];

/// Refuses filters of a server that are malformed, or given twice.
pub(super) fn filters(server: &Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let all = server.members().iter();
    for member in all.clone().filter(|member| FILTERS.contains(&&*member.name)) {
        if let Some(twice) = all.clone().filter(|other| other.name == member.name).nth(1) {
            return Err(source.problem(twice.at.clone(), format!("`{}` is given twice", twice.name), None));
        }
        once(&member.value, source)?;
        match &*member.name {
            "access" => {
                for rule in member.value.members() {
                    rule.value
                        .members()
                        .iter()
                        .try_for_each(|part| filter(&part.name, &part.value, source))?;
                }
            }
            name => filter(name, &member.value, source)?,
        }
    }
    Ok(())
}

/// Of two members of one name the last counts in JSON, and whoever reads the first is wrong.
fn once(node: &Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    for (at, member) in node.members().iter().enumerate() {
        if node.members()[..at].iter().any(|before| before.name == member.name) {
            return Err(source.problem(member.at.clone(), "a part of a filter is given twice", None));
        }
        once(&member.value, source)?;
    }
    Ok(())
}

fn filter(name: &str, filter: &Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let of = if name == "resources" { Of::Addresses } else { Of::Names };
    for list in ["include", "exclude"] {
        let Some(Node { at, is: Is::List(patterns) }) = filter.get(list) else { continue };
        if list == "include" && patterns.is_empty() {
            let help = "remove it to show all, or write exclude = [\"*\"] to show none";
            return Err(source.problem(at.clone(), "include is empty", Some(help.to_owned())));
        }
        for pattern in patterns {
            if let Is::Text(text) = &pattern.is
                && let Some(why) = wrong(text, of)
            {
                return Err(source.problem(pattern.at.clone(), "invalid pattern", Some(why.to_owned())));
            }
        }
    }
    Ok(())
}

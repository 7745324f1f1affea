//! What agents' files call the same things.
//!
//! Most of what stands there is for the agent alone. Filters are not: an agent's user who hid a tool from the agent has hidden it, and a
//! filter that is passed over shows what was to be hidden.

use super::problem::{Problem, Text};
use super::tree::{Is, Member, Node};

/// Lists of tools that are shown, under the names that agents give them: Gemini CLI and Amp, Codex, the Claude SDK, others.
const SHOWN: [&str; 4] = ["includeTools", "enabled_tools", "enabledTools", "allowedTools"];

/// The same of goose, where an empty list means all.
const SHOWN_IF_ANY: &str = "available_tools";

/// Lists of tools that are hidden.
const HIDDEN: [&str; 3] = ["excludeTools", "disabled_tools", "disabledTools"];

/// Puts the members of each server into our words.
pub(super) fn in_our_words(servers: &mut Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let Is::Table(servers) = &mut servers.is else { return Ok(()) };
    for server in servers {
        let Is::Table(members) = &mut server.value.is else { continue };
        // The address or the command says what kind of server it is.
        members.retain(|member| !matches!(&*member.name, "type" | "transport"));
        for member in members.iter_mut() {
            match &*member.name {
                "cwd" => "dir".clone_into(&mut member.name),
                "serverUrl" | "httpUrl" => "url".clone_into(&mut member.name),
                "tools" => these_alone(&mut member.value),
                "enabled" => {
                    if let Is::Bool(is) = &mut member.value.is {
                        *is = !*is;
                        "disabled".clone_into(&mut member.name);
                    }
                }
                _ => {}
            }
        }
        // Whichever of two says so, it is off.
        if members.iter().any(|member| member.name == "disabled" && matches!(member.value.is, Is::Bool(true)))
        {
            members.retain(|member| member.name != "disabled" || matches!(member.value.is, Is::Bool(true)));
        }
        take_filters(members, source)?;
    }
    Ok(())
}

/// Makes one filter of an agent's own and ours.
fn take_filters(members: &mut Vec<Member>, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let is_filter = |member: &Member| {
        let name = &*member.name;
        name == SHOWN_IF_ANY || SHOWN.contains(&name) || HIDDEN.contains(&name)
    };
    let found: Vec<Member> = members.extract_if(.., |member| is_filter(member)).collect();
    for Member { name, at, mut value } in found {
        if name == SHOWN_IF_ANY && matches!(&value.is, Is::List(names) if names.is_empty()) {
            continue;
        }
        let list = if HIDDEN.contains(&&*name) { "exclude" } else { "include" };
        if list == "include" {
            these_alone(&mut value);
        } else {
            value = Node {
                at: value.at.clone(),
                is: Is::Table(vec![Member { name: list.into(), at: at.clone(), value }]),
            };
        }
        let Is::Table(told) = value.is else {
            return Err(source.problem(at, format!("`{name}` must be a list of tools"), None));
        };
        let at_tools = members.iter().position(|member| member.name == "tools");
        let tools = at_tools.unwrap_or_else(|| {
            let value = Node { at: at.clone(), is: Is::Table(Vec::new()) };
            members.push(Member { name: "tools".into(), at: at.clone(), value });
            members.len() - 1
        });
        let Is::Table(filter) = &mut members[tools].value.is else {
            return Err(source.problem(at, "`tools` must be a list or a table", None));
        };
        for member in told {
            if filter.iter().any(|one| one.name == member.name) {
                let what = format!(
                    "`{name}` and another setting both say which tools to {}",
                    if list == "include" { "show" } else { "hide" }
                );
                return Err(source.problem(at, what, Some("keep one of them".to_owned())));
            }
            filter.push(member);
        }
    }
    Ok(())
}

/// A list of tools means these and no others; `*` is all of them.
fn these_alone(tools: &mut Node) {
    let Is::List(names) = &mut tools.is else { return };
    let names = std::mem::take(names);
    let place = |is| Node { at: tools.at.clone(), is };
    let list = |name: &str, names| {
        vec![Member { name: name.to_owned(), at: tools.at.clone(), value: place(Is::List(names)) }]
    };
    let is_all = |name: &Node| matches!(&name.is, Is::Text(name) if name == "*");
    tools.is = Is::Table(if names.iter().any(is_all) {
        Vec::new()
    } else if names.is_empty() {
        list("exclude", vec![place(Is::Text("*".to_owned()))])
    } else {
        list("include", names)
    });
}

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

/// What the keys of agents' filters speak of.
const THINGS: [&str; 4] = ["tool", "prompt", "resource", "function"];

/// What they do with it, as it begins in all its forms.
const DEEDS: [&str; 17] = [
    "includ", "exclud", "allow", "deny", "denied", "enabl", "disabl", "availab", "block", "hid", "show",
    "visib", "filter", "only", "permit", "forbid", "restrict",
];

/// Keys that can be nothing but a filter, though they do not say of what.
const ALONE: [&str; 14] = [
    "include",
    "included",
    "exclude",
    "excluded",
    "allow",
    "allowed",
    "deny",
    "denied",
    "filter",
    "filters",
    "allowlist",
    "denylist",
    "whitelist",
    "blacklist",
];

/// Tools that run without a question are no filter: `alwaysAllow`, `autoApprove`.
const CONSENT: [&str; 2] = ["always", "auto"];

/// How far a key may be from one of a filter's to be taken for it, however either is written.
const NEAR: usize = 2;

/// Whether a key that nobody knows was probably meant to hide something.
pub(super) fn looks_like_a_filter(name: &str) -> bool {
    let word = bare(name);
    let has = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    let is_consent = CONSENT.iter().any(|begin| word.starts_with(begin));
    meant(name).is_some() || ALONE.contains(&&*word) || (!is_consent && has(&THINGS) && has(&DEEDS))
}

/// The key of a filter that is nearly this one.
pub(super) fn meant(name: &str) -> Option<&'static str> {
    let word = bare(name);
    let known = HIDDEN.into_iter().chain(SHOWN).chain([SHOWN_IF_ANY]);
    let far = known.map(|known| (strsim::damerau_levenshtein(&word, &bare(known)), known));
    // Of two that are as near, such as `disabled_tools` and `disabledTools`, the first will do.
    far.filter(|(far, _)| *far <= NEAR).min_by_key(|(far, _)| *far).map(|(_, known)| known)
}

/// A key without what agents write differently: capitals, and what stands between words.
fn bare(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Puts the members of each server into our words.
pub(super) fn in_our_words(servers: &mut Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let Is::Table(servers) = &mut servers.is else { return Ok(()) };
    for server in servers {
        let Is::Table(members) = &mut server.value.is else { continue };
        // The address or the command says what kind of server it is, and the server which transport it speaks.
        let is_sse = |member: &Member| matches!(&member.value.is, Is::Text(kind) if kind == "sse");
        let mut said = false;
        members.retain(|member| match &*member.name {
            "type" | "transport" => is_sse(member) && !std::mem::replace(&mut said, true),
            _ => true,
        });
        for member in members.iter_mut() {
            match &*member.name {
                "cwd" => "dir".clone_into(&mut member.name),
                "type" => "transport".clone_into(&mut member.name),
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

/// The types of goose's extensions that are MCP servers of their own. All others are part of goose.
const GOOSE_TYPES: [&str; 3] = ["stdio", "sse", "streamable_http"];

/// Puts the servers of a YAML file where JSON has them: `extensions` of goose, and Continue's list `mcpServers`.
pub(super) fn servers_of_yaml(file: &mut Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    let Is::Table(members) = &mut file.is else { return Ok(()) };
    for member in members.iter_mut() {
        match (&*member.name, &mut member.value.is) {
            ("extensions", Is::Table(servers)) => {
                for server in servers.iter_mut() {
                    flatten_config(&mut server.value);
                }
                servers.retain(|server| matches!(server.value.get("type"), Some(Node { is: Is::Text(kind), .. }) if GOOSE_TYPES.contains(&&**kind)));
                for server in servers.iter_mut() {
                    of_goose(&mut server.value);
                }
            }
            ("mcpServers", Is::List(servers)) => {
                let servers = std::mem::take(servers).into_iter().map(|server| of_continue(server, source));
                member.value.is = Is::Table(servers.collect::<Result<_, _>>()?);
            }
            ("mcpServers", Is::Table(_)) => {}
            _ => continue,
        }
        "servers".clone_into(&mut member.name);
    }
    Ok(())
}

/// Some extensions have all but `enabled` in a table of its own.
fn flatten_config(server: &mut Node) {
    let Is::Table(members) = &mut server.is else { return };
    let config = members.extract_if(.., |member| member.name == "config").next();
    if let Some(Member { value: Node { is: Is::Table(config), .. }, .. }) = config {
        members.extend(config);
    }
}

fn of_goose(server: &mut Node) {
    let Is::Table(members) = &mut server.is else { return };
    // Its name is the key above, and its timeout goose's own.
    members.retain(|member| {
        !matches!(&*member.name, "name" | "timeout" | "description" | "bundled" | "display_name")
    });
    // Optional members are written as null.
    members.retain(|member| !matches!(member.value.is, Is::Null));
    for member in members.iter_mut() {
        match &*member.name {
            "cmd" => "command".clone_into(&mut member.name),
            "uri" => "url".clone_into(&mut member.name),
            "envs" => "env".clone_into(&mut member.name),
            _ => {}
        }
    }
    // Their values are in goose's keyring: here they are taken from the environment, or are missed there.
    let keys = members.extract_if(.., |member| member.name == "env_keys").next();
    let Some(Member { at, value: Node { is: Is::List(keys), .. }, .. }) = keys else { return };
    if keys.is_empty() {
        return;
    }
    if !members.iter().any(|member| member.name == "env") {
        let value = Node { at: at.clone(), is: Is::Table(Vec::new()) };
        members.push(Member { name: "env".into(), at, value });
    }
    let env = members.iter_mut().find(|member| member.name == "env");
    let Some(Is::Table(env)) = env.map(|env| &mut env.value.is) else { return };
    for key in keys {
        if let Is::Text(name) = key.is
            && !env.iter().any(|variable| variable.name == name)
        {
            let value = Node { at: key.at.clone(), is: Is::Text(format!("${{{name}}}")) };
            env.push(Member { name, at: key.at, value });
        }
    }
}

/// An item of Continue's list, which has its name inside.
fn of_continue(mut server: Node, source: &Text<'_>) -> Result<Member, Box<Problem>> {
    let at = server.at.clone();
    let Is::Table(members) = &mut server.is else {
        return Err(source.problem(at, "a server must be a table", None));
    };
    let Some(Member { value: Node { at, is: Is::Text(name) }, .. }) =
        members.extract_if(.., |member| member.name == "name").next()
    else {
        return Err(source.problem(at, "a server needs a name", None));
    };
    let headers = members.extract_if(.., |member| member.name == "requestOptions").next();
    if let Some(Member { value: Node { is: Is::Table(options), .. }, .. }) = headers {
        members.extend(options.into_iter().filter(|option| option.name == "headers"));
    }
    Ok(Member { name, at, value: server })
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

//! What an address tells without being asked.

use super::tree::{Member, Node};

/// An address that we reach, or one that the agent fills in before it starts us.
pub(super) fn is_http(url: &str) -> bool {
    url.starts_with("http://")
        || url.starts_with("https://")
        || url.starts_with("${")
        || url.starts_with("{env:")
}

pub(super) fn ends_in_sse(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/sse")
}

/// Whether it holds what is not for a list of processes: a key in the query, a password, a variable of the agent's.
pub(super) fn is_secret(url: &str) -> bool {
    url.contains(['?', '@', '$', '{'])
}

/// Whether a server there may want a browser and a human before it answers. On this machine, or without TLS, none does;
/// one whose key is in its address does not either.
pub(super) fn may_sign_in(url: &str) -> bool {
    let key = url.contains(['?', '@']);
    let host = url.split('/').nth(2).unwrap_or_default();
    let loopback = ["localhost", "127.", "[::1]"].iter().any(|near| host.starts_with(near));
    !url.starts_with("http://") && !key && !loopback
}

/// A table without members: as good as none.
pub(super) fn is_empty(member: &Member) -> bool {
    member.value.table().is_some_and(<[Member]>::is_empty)
}

/// A name for the variable that carries a header's value, not among those taken.
pub(super) fn variable(header: &str, taken: &[String]) -> String {
    let upper =
        header.chars().map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' });
    let base = format!("LINETENDER_{}", upper.collect::<String>());
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    let mut names = std::iter::once(base.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(base)
}

/// Whether this can stand before the colon of `--header`.
pub(super) fn is_header_name(name: &str) -> bool {
    let token = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char);
    !name.is_empty() && name.chars().all(token)
}

/// Whether this can be the name of a variable after `$`.
pub(super) fn is_variable(node: &Node) -> bool {
    node.text().is_some_and(|name| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    })
}

//! What is needed to carry a credential, and which names say that there is one.

use super::tree::{Member, Node};

/// How the names of credentials end. A name that only holds such a word, like `max_tokens`, is none.
const ENDINGS: [&str; 11] = [
    "authorization",
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "cookie",
    "credential",
    "credentials",
    "bearer",
    "jwt",
];

/// Whether a header or a member of a query is a credential by its name. A server that gets none may well want to sign its
/// user in; so a name that could be anything is none.
pub(super) fn is_named(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // `oauth=true` says the opposite.
    let auth = name.rsplit(['-', '_', '.']).next() == Some("auth");
    auth || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether one of a table's members is a credential by its name.
pub(super) fn is_in(table: &Member) -> bool {
    table.value.table().unwrap_or_default().iter().any(|member| is_named(&member.key))
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

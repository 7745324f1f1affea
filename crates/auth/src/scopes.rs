//! Sets of scopes, in the order in which they were first named.

/// The most scopes that are asked for, and the longest one.
const MOST: usize = 100;
const LONGEST: usize = 256;

/// Reads a list with spaces between. What is no scope by RFC 6749, 3.3, is left out.
pub(crate) fn read(list: &str) -> Vec<String> {
    union(list.split(' ').map(str::to_owned), [])
}

/// All of them, each once.
pub(crate) fn union(
    some: impl IntoIterator<Item = String>,
    others: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut all = Vec::new();
    for scope in some.into_iter().chain(others) {
        if all.len() < MOST && is_scope(&scope) && !all.contains(&scope) {
            all.push(scope);
        }
    }
    all
}

fn is_scope(text: &str) -> bool {
    let is_allowed = |c: u8| matches!(c, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !text.is_empty() && text.len() <= LONGEST && text.bytes().all(is_allowed)
}

/// What a login asks for. MCP 2026-07-28, authorization, "Scope Selection Strategy": what the challenge names, else all that
/// the resource supports, else none.
///
/// `offline_access` is added where the authorization server lists it, so that the login stays; nothing is asked for on its
/// account where no other scope is.
pub(crate) fn select(
    configured: &[String],
    challenged: &[String],
    of_resource: Option<&[String]>,
    of_server: Option<&[String]>,
) -> Vec<String> {
    let wanted = [configured, challenged, of_resource.unwrap_or_default()];
    let first = wanted.into_iter().find(|list| !list.is_empty()).unwrap_or_default();
    let mut scopes = union(first.iter().cloned(), []);
    let offline = "offline_access";
    // Alone it would replace the scopes that are given to whoever asks for none.
    if !scopes.is_empty() && of_server.is_some_and(|list| list.iter().any(|scope| scope == offline)) {
        scopes = union(scopes, [offline.to_owned()]);
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::{read, select, union};

    fn list(scopes: &str) -> Vec<String> {
        read(scopes)
    }

    #[test]
    fn the_challenge_comes_before_what_the_resource_supports() {
        let (a, b, none) = (list("a"), list("b c"), Vec::new());
        assert_eq!(select(&none, &a, Some(&b), None), ["a"]);
        assert_eq!(select(&none, &none, Some(&b), None), ["b", "c"]);
        assert!(select(&none, &none, None, None).is_empty());
        assert_eq!(select(&list("mine"), &a, Some(&b), None), ["mine"]);
    }

    #[test]
    fn offline_access_is_asked_for_only_where_it_is_listed() {
        let (a, none) = (list("a"), Vec::new());
        assert_eq!(select(&none, &a, None, Some(&list("a offline_access"))), ["a", "offline_access"]);
        assert_eq!(select(&none, &a, None, Some(&list("a b"))), ["a"]);
        assert!(select(&none, &none, None, Some(&list("offline_access"))).is_empty());
    }

    #[test]
    fn a_union_keeps_each_once_and_drops_what_is_no_scope() {
        assert_eq!(union(list("a b"), list("b c")), ["a", "b", "c"]);
        assert_eq!(read("a \"b\" c\\d ü  e"), ["a", "e"]);
        assert_eq!(union((0..500).map(|n| n.to_string()), []).len(), 100);
    }
}

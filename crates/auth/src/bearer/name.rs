//! What names and groups may look like: they stand in rules, logs and texts, and must not be taken for something else there.

use linetender_wire::visible;

/// The longest name, in characters.
const LONGEST: usize = 128;

/// The most groups that somebody has.
pub(super) const MOST_GROUPS: usize = 256;

/// The longest name of a group, in bytes.
const LONGEST_GROUP: usize = 256;

/// Checks the name of a principal.
///
/// # Errors
/// What it has to be instead, to stand behind "the name".
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let is_bad = |c: char| c.is_whitespace() || visible::is_hidden(c);
    if name.is_empty() || name.chars().count() > LONGEST {
        Err("has to have 1 to 128 characters")
    } else if name.chars().any(is_bad) {
        Err("has to have visible characters only, and no spaces")
    } else if name.starts_with("group:") {
        Err("must not begin with `group:`, which stands for a group in rules")
    } else if name == "*" {
        Err("must not be `*`, which stands for everybody in rules")
    } else {
        Ok(())
    }
}

/// Checks groups. Spaces are allowed: directories have names such as `Domain Users`.
///
/// # Errors
/// What they have to be instead, to stand behind "the groups".
pub(super) fn check_groups(groups: &[String]) -> Result<(), &'static str> {
    let is_bad = |group: &String| {
        group.is_empty() || group.len() > LONGEST_GROUP || group.chars().any(visible::is_hidden)
    };
    if groups.len() > MOST_GROUPS {
        Err("have to be 256 at most")
    } else if groups.iter().any(is_bad) {
        Err("have to have 1 to 256 bytes each, of visible characters")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{check_groups, check_name};

    #[test]
    fn a_name_cannot_be_taken_for_something_else() {
        let long = "x".repeat(129);
        for bad in ["", "*", "group:ci", "a b", "a\tb", "a\u{a0}b", "a\u{202e}b", "a\u{200b}", &long] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["ci", "auth0|5f7c", "ü@example.com", "groups", "**", &long[1..]] {
            check_name(good).unwrap();
        }
    }

    #[test]
    fn groups_are_bounded() {
        let groups = |group: &str, count: usize| vec![group.to_owned(); count];
        for bad in [groups("", 1), groups("a\nb", 1), groups(&"x".repeat(257), 1), groups("a", 257)] {
            assert!(check_groups(&bad).is_err());
        }
        check_groups(&groups(&"x".repeat(256), 256)).unwrap();
        check_groups(&groups("Domain Users", 1)).unwrap();
    }
}

//! Which of a server's things are shown: names, with `*` for any text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Filter by name: everything that matches `include` (default: all) and does not match `exclude`.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Filter {
    /// Names to show; `*` matches any text [default: all].
    pub include: Vec<String>,
    /// Names to hide, even if they match `include`.
    pub exclude: Vec<String>,
}

impl Filter {
    /// Whether a name passes the filter.
    pub fn lets(&self, name: &str) -> bool {
        let among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.include.is_empty() || among(&self.include)) && !among(&self.exclude)
    }

    /// Whether every name passes the filter.
    pub fn is_open(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }
}

/// Each piece between stars has to be found behind the one before it; the first and the last at the ends.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{Filter, matches};

    #[test]
    fn a_star_is_any_text() {
        for (pattern, name, is) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("get_*", "get_x", true),
            ("get_*", "forget_x", false),
            ("*_x*y", "a_x_y", true),
            ("*_x*y", "a_xy_z", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
        let filter = Filter { include: vec!["get_*".into()], exclude: vec!["*_secret".into()] };
        assert!(filter.lets("get_x") && !filter.lets("get_secret") && !filter.lets("put_x"));
        assert!(Filter::default().lets("anything") && Filter::default().is_open());
    }
}

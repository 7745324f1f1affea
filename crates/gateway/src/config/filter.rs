//! Which of a server's things are shown: names, with `*` for any text.
//!
//! What is to be shown is compared as it is spelt. What is to be hidden is also compared as a lenient server might read it: an agent
//! that asks for `Kill` or `file:///%70rivate` must not get what `kill` and `file:///private` hide. Addresses are judged by
//! [`Address`], in all forms that a URL parser makes of them.

use linetender::visible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::Address;

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
        self.shows(name) && !self.hides(name)
    }

    /// Whether a resource with this address passes the filter.
    pub fn lets_uri(&self, uri: &str) -> bool {
        if self.is_open() {
            return true;
        }
        Address::of(uri).is_some_and(|address| {
            (self.include.is_empty() || address.is_within(&Address::of_patterns(&self.include)))
                && !address.is_among(&Address::of_patterns(&self.exclude))
        })
    }

    fn shows(&self, name: &str) -> bool {
        self.include.is_empty() || self.include.iter().any(|pattern| matches(pattern, name))
    }

    /// Whether it is hidden, as it is spelt or as it might be read.
    fn hides(&self, name: &str) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        // One reader ends a name at a zero byte, another passes over it.
        let readings =
            [Some(name_as_read(name)), name.split_once('\0').map(|(begin, _)| name_as_read(begin))];
        self.exclude.iter().any(|pattern| {
            let read = name_as_read(pattern);
            matches(pattern, name) || readings.iter().flatten().any(|name| matches(&read, name))
        })
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

/// Whether a pattern hides the tool or prompt of this name.
pub(super) fn is_hidden_by(pattern: &str, name: &str) -> bool {
    matches(pattern, name) || matches(&name_as_read(pattern), &name_as_read(name))
}

/// A name as a lenient reader might read it: without case, invisible characters and space around it.
pub(super) fn name_as_read(name: &str) -> String {
    let visible = name.chars().filter(|character| !visible::is_hidden(*character)).map(plain);
    visible.flat_map(char::to_lowercase).collect::<String>().trim().to_owned()
}

/// Letters that some readers fold, and those of full width.
const fn plain(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{130}' | '\u{131}' => 'i',
        '\u{ff01}'..='\u{ff5e}' => match char::from_u32(character as u32 - 0xfee0) {
            Some(plain) => plain,
            None => character,
        },
        other => other,
    }
}

/// What may be wrong with a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Of {
    /// A tool or a prompt.
    Names,
    /// A resource.
    Addresses,
}

/// Why a pattern is not understood, if it is not: a filter that means something else than was meant hides the wrong things.
pub(super) fn wrong(pattern: &str, of: Of) -> Option<&'static str> {
    const ONLY_STARS: &str = "`*` (any text) is the only wildcard; write it in place of a character that has another meaning elsewhere";
    let is_foreign = |character: char| match of {
        Of::Names => {
            matches!(character, '?' | '[' | ']' | '{' | '}' | '(' | ')' | '|' | '^' | '$' | '\\' | '!' | ',')
        }
        Of::Addresses => matches!(character, '|' | '^' | '\\' | ' '),
    };
    match pattern {
        "" => Some("an empty pattern matches nothing"),
        _ if pattern.trim() != pattern || pattern.chars().any(visible::is_hidden) => {
            Some("a pattern must not have space around it, or invisible characters in it")
        }
        _ if pattern.contains(is_foreign) => Some(ONLY_STARS),
        _ => None,
    }
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

    #[test]
    fn what_is_hidden_is_hidden_in_every_spelling_that_a_server_might_read() {
        let filter = Filter { exclude: vec!["kill".into(), "Drop_*".into()], ..Filter::default() };
        for name in [
            "kill",
            "Kill",
            "KILL",
            "ki\u{200b}ll",
            "kill\0",
            "kill\0x",
            "\0kill",
            " kill ",
            "\u{212a}ill",
            "k\u{131}ll",
            "\u{ff4b}\u{ff49}ll",
            "drop_all",
            "DROP_",
            "dr\u{ad}op_x",
        ] {
            assert!(!filter.lets(name), "{name:?}");
        }
        assert!(["kills", "drop", "größe", ""].iter().all(|name| filter.lets(name)));
        let shows = Filter { include: vec!["get".into()], ..Filter::default() };
        assert!(shows.lets("get") && !shows.lets("Get"), "what is shown is what was written");
        let filter =
            Filter { exclude: vec!["file:///priv/*".into(), "note://secret".into()], ..Filter::default() };
        for uri in [
            "file:///priv/x",
            "FILE:///priv/x",
            "file:///%70riv/x",
            "file:////priv/x",
            "file:///priv%2Fx",
            "file:\\\\\\priv\\x",
            "file://localhost/priv/x",
            "file:/priv/x",
            "file:///PRIV/x",
            "note://secret#a",
            "note://secret?a=b",
            "note://secret/",
        ] {
            assert!(!filter.lets_uri(uri), "{uri:?}");
        }
        assert!(
            ["file:///pub/priv", "note://secrets", "note://a%20b", "note://%"]
                .iter()
                .all(|uri| filter.lets_uri(uri))
        );
    }
}

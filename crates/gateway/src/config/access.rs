//! Who may see a server, and what of it.

use std::collections::BTreeMap;

use linetender::visible;
use schemars::JsonSchema;
use serde::Deserialize;

use super::filter::Filter;

/// How a rule names a group.
const GROUP: &str = "group:";

/// What of a server somebody may see: everything that its filters let through.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(default)]
pub struct Share {
    /// Tools that are listed and callable.
    pub tools: Filter,
    /// Prompts that are listed.
    pub prompts: Filter,
    /// Resources, by URI, that are listed and readable.
    pub resources: Filter,
}

impl Share {
    /// Whether it hides nothing.
    pub fn is_open(&self) -> bool {
        self.tools.is_open() && self.prompts.is_open() && self.resources.is_open()
    }
}

/// Whom a rule is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Whom {
    /// Everybody who is let in.
    Everybody,
    /// A principal.
    Name(String),
    /// Everybody in a group.
    Group(String),
}

/// Who may see a server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// Each rule adds what its principals may see. Without any, everybody sees everything.
    rules: Vec<(Whom, Share)>,
    restricted: bool,
}

impl Access {
    /// What a file says; none if it says nothing. Else which of its names is no name.
    pub(super) fn of(table: Option<BTreeMap<String, Share>>) -> Result<Self, String> {
        let Some(table) = table else { return Ok(Self::default()) };
        let rules = table.into_iter().map(|(name, share)| Ok((whom(name)?, share)));
        Ok(Self { rules: rules.collect::<Result<_, String>>()?, restricted: true })
    }

    /// Whether it says nothing, so that everybody sees everything.
    pub fn is_open(&self) -> bool {
        !self.restricted
    }

    /// Its rules.
    pub fn rules(&self) -> &[(Whom, Share)] {
        &self.rules
    }
}

fn whom(name: String) -> Result<Whom, String> {
    if name == "*" {
        return Ok(Whom::Everybody);
    }
    // Directories have groups such as `Domain Users`; nobody's name has a space.
    let (whom, rest, spaces): (fn(String) -> Whom, &str, bool) = match name.strip_prefix(GROUP) {
        Some(group) => (Whom::Group, group, true),
        None => (Whom::Name, &name, false),
    };
    let is_bad = |c: char| visible::is_hidden(c) || (c.is_whitespace() && !spaces);
    if rest.is_empty() || rest.chars().any(is_bad) {
        return Err(name);
    }
    Ok(whom(rest.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Access, Share, Whom};

    #[test]
    fn a_rule_is_for_a_name_a_group_or_everybody() {
        let of = |name: &str| Access::of(Some([(name.to_owned(), Share::default())].into()));
        for (name, whom) in [
            ("*", Whom::Everybody),
            ("alice@example.com", Whom::Name("alice@example.com".into())),
            ("token:ci", Whom::Name("token:ci".into())),
            ("group:dev", Whom::Group("dev".into())),
            ("group:Domain Users", Whom::Group("Domain Users".into())),
        ] {
            assert_eq!(of(name).unwrap().rules()[0].0, whom);
        }
        for wrong in ["", "group:", "a b", "a\u{200b}"] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        assert!(Access::of(None).unwrap().is_open());
        assert!(!Access::of(Some([].into())).unwrap().is_open(), "an empty table lets nobody in");
    }
}

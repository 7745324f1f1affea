//! What of a server somebody may see, by the rules of its config.

use std::sync::Arc;

use linetender::Kind;

use crate::config::{Entry, Share};
use crate::principal::Principal;

/// What of a server somebody may see.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Grant {
    /// Everything that is shown to anybody.
    Whole,
    /// Of that, what any of these lets through.
    Any(Arc<[Share]>),
}

impl Grant {
    /// Nothing, if there are rules for this server and none is for this principal.
    pub(crate) fn of(entry: &Entry, principal: &Principal) -> Option<Self> {
        if entry.access.is_open() {
            return Some(Self::Whole);
        }
        let own = entry.access.rules().iter().filter(|(whom, _)| principal.is_among(whom));
        let shares: Arc<[Share]> = own.map(|(_, share)| share.clone()).collect();
        match &*shares {
            [] => None,
            some if some.iter().any(Share::is_open) => Some(Self::Whole),
            _ => Some(Self::Any(shares)),
        }
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self, Self::Whole)
    }

    pub(crate) fn lets(&self, kind: Kind, own: &str) -> bool {
        match self {
            Self::Whole => true,
            Self::Any(shares) => shares.iter().any(|share| match kind {
                Kind::Tools => share.tools.lets(own),
                Kind::Prompts => share.prompts.lets(own),
                Kind::Resources | Kind::Templates => share.resources.lets_uri(own),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Grant;
    use crate::bearers::Known;
    use crate::config::load;
    use crate::principal::Principal;
    use linetender::Kind;

    #[test]
    fn whoever_has_several_rules_sees_what_any_of_them_shows() {
        let config = "[servers.a]\ncommand='x'\n[servers.a.access]\n'group:dev'={tools.include=['read*']}\n\
                      alice={tools.include=['write']}\nboss={}";
        let config = load("t", config, &|_| None).unwrap();
        let grant = |name: &str, group: &str| {
            let (name, groups, realm) = (name.to_owned(), vec![group.to_owned()], String::new());
            Grant::of(
                &config.servers[0],
                &Principal::known(Known { name, groups, realm, until: None, stamp: 0 }),
            )
        };
        for (name, group, reads, writes) in [
            ("alice", "dev", true, true),
            ("alice", "ops", false, true),
            ("bob", "dev", true, false),
            ("boss", "", true, true),
        ] {
            let grant = grant(name, group).unwrap();
            assert_eq!(grant.lets(Kind::Tools, "read_file"), reads, "{name} {group}");
            assert_eq!(grant.lets(Kind::Tools, "write"), writes, "{name} {group}");
        }
        assert!(grant("boss", "").unwrap().is_open());
        assert_eq!(grant("bob", "ops"), None, "it does not exist for others");
    }
}

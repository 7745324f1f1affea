//! Whom a request acts for. It is made once, at the entrance, and carried with the request: whatever is kept for somebody is
//! kept for one of these, and found by it alone.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use linetender::session::{Guest, Who};
use serde::{Deserialize, Serialize};

use crate::bearers::{Known, Shown};
use crate::config::Whom;
use crate::system;

/// Somebody. Cheap to clone; equal only if everything that is known of it is.
#[derive(Clone)]
pub(crate) struct Principal(Arc<Inner>);

struct Inner {
    realm: Realm,
    name: Arc<str>,
    /// In their order, none twice.
    groups: Box<[Box<str>]>,
    number: u64,
    badge: u64,
    until: Option<SystemTime>,
    /// Which token it showed: it is the same somebody with another one.
    stamp: u64,
}

/// Who says so. A name means nothing without it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Realm {
    /// The kernel.
    Machine,
    /// Whoever the token was verified by: the file of tokens, or an issuer.
    Bearers(Box<str>),
}

/// A principal in words, for another gateway of the same fleet.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Spelt {
    /// Who verified its token, if it showed one.
    pub(crate) realm: Option<String>,
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    /// Until when what it showed holds, in seconds since 1970.
    pub(crate) until: Option<u64>,
    pub(crate) stamp: u64,
}

impl Principal {
    /// The same in words.
    pub(crate) fn spelt(&self) -> Spelt {
        let Inner { realm, name, groups, until, stamp, .. } = &*self.0;
        let realm = match realm {
            Realm::Machine => None,
            Realm::Bearers(realm) => Some(realm.to_string()),
        };
        let until = until.and_then(|until| until.duration_since(SystemTime::UNIX_EPOCH).ok());
        Spelt {
            realm,
            name: name.to_string(),
            groups: groups.iter().map(ToString::to_string).collect(),
            until: until.map(|until| until.as_secs()),
            stamp: *stamp,
        }
    }

    /// Whoever another gateway let in.
    pub(crate) fn of_kin(Spelt { realm, name, groups, until, stamp }: Spelt) -> Self {
        let realm = realm.map_or(Realm::Machine, |realm| Realm::Bearers(realm.into()));
        let until = until.map(|until| SystemTime::UNIX_EPOCH + Duration::from_secs(until));
        Self::shows(realm, name, groups, until, stamp)
    }

    /// A user of this machine.
    pub(crate) fn user(uid: u32) -> Self {
        Self::of(Realm::Machine, format!("uid:{uid}"), Vec::new(), None)
    }

    /// Whoever is at an address: nobody asked who it is.
    pub(crate) fn address(address: IpAddr) -> Self {
        Self::of(Realm::Machine, format!("ip:{address}"), Vec::new(), None)
    }

    /// Nobody: it sees what everybody may, and shares nothing with anybody who is known.
    pub(crate) fn nobody() -> Self {
        Self::of(Realm::Machine, String::new(), Vec::new(), None)
    }

    /// Whose agent is at our own pipes.
    pub(crate) fn this_user() -> Self {
        Self::user(system::acts_for())
    }

    /// Whoever showed a token.
    pub(crate) fn known(Known { name, groups, realm, until, stamp }: Known) -> Self {
        Self::shows(Realm::Bearers(realm.into()), name, groups, until, stamp)
    }

    fn of(realm: Realm, name: String, groups: Vec<String>, until: Option<SystemTime>) -> Self {
        Self::shows(realm, name, groups, until, 0)
    }

    fn shows(
        realm: Realm,
        name: String,
        mut groups: Vec<String>,
        until: Option<SystemTime>,
        stamp: u64,
    ) -> Self {
        groups.sort_unstable();
        groups.dedup();
        let groups: Box<[Box<str>]> = groups.into_iter().map(Into::into).collect();
        let number = keyed((&realm, &name));
        let badge = keyed((number, &groups));
        Self(Arc::new(Inner { realm, name: name.into(), groups, number, badge, until, stamp }))
    }

    /// What makes it who it is, at every gateway: who says so, and its name.
    pub(crate) fn identity(&self) -> (&'static str, &str, &str) {
        match &self.0.realm {
            Realm::Machine => ("machine", "", &self.0.name),
            Realm::Bearers(realm) => ("bearers", realm, &self.0.name),
        }
    }

    /// Stands for it where turns are taken and bytes are counted.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    /// Stands for it and its groups, where what it sees is kept.
    pub(crate) fn badge(&self) -> u64 {
        self.0.badge
    }

    /// What rules call it.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// True if what it showed for itself has expired by this time of the wall clock.
    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        self.0.until.is_some_and(|until| until <= now)
    }

    /// What it showed for itself, if that was a token.
    pub(crate) fn shown(&self) -> Option<Shown<'_>> {
        let Inner { realm, name, groups, stamp, .. } = &*self.0;
        match realm {
            Realm::Machine => None,
            Realm::Bearers(realm) => Some(Shown { realm, name, groups, stamp: *stamp }),
        }
    }

    /// True if both are the same principal by the same token, as far as that matters later.
    pub(crate) fn shows_what(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self == other && self.0.stamp == other.0.stamp && self.0.until == other.0.until)
    }

    /// Whether a rule for these is one for it.
    pub(crate) fn is_among(&self, whom: &Whom) -> bool {
        match whom {
            Whom::Everybody => true,
            Whom::Name(name) => **name == *self.0.name,
            Whom::Group(group) => self.0.groups.binary_search_by(|own| (**own).cmp(group)).is_ok(),
        }
    }
}

/// A number that nobody outside can find another value for: names are chosen elsewhere.
fn keyed(of: impl std::hash::Hash) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(of)
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&*self.0, &*other.0);
        one.realm == other.realm && one.name == other.name && one.groups == other.groups
    }
}

impl Eq for Principal {}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// Somebody who asks something of servers.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) principal: Principal,
    /// Which of its principal's agents it is.
    pub(crate) agent: u64,
    pub(crate) stay: Stay,
}

/// Whether an agent is somebody from one request to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stay {
    /// It has a session: what is kept for it alone can be.
    Session,
    /// Each of its requests stands by itself.
    Request,
}

impl Visitor {
    /// Whose turn its calls take.
    pub(crate) fn who(&self) -> Who {
        Who { principal: self.principal.number(), agent: self.agent }
    }

    /// The same with its name, for whoever writes down what it asked for.
    pub(crate) fn guest(&self) -> Guest {
        Guest { who: self.who(), name: Arc::clone(self.principal.name()), ..Guest::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::Principal;
    use crate::bearers::Known;
    use crate::config::Whom;

    fn known(realm: &str, name: &str, groups: &[&str]) -> Principal {
        let groups = groups.iter().map(ToString::to_string).collect();
        Principal::known(Known {
            name: name.to_owned(),
            groups,
            realm: realm.to_owned(),
            until: None,
            stamp: 0,
        })
    }

    #[test]
    fn somebody_is_who_a_realm_says_it_is() {
        let alice = known("a", "alice", &["x", "y"]);
        assert_eq!(alice, known("a", "alice", &["y", "x", "y"]));
        assert_eq!(alice.number(), known("a", "alice", &[]).number());
        assert_ne!(alice, known("a", "alice", &["x"]), "it may see something else");
        assert_ne!(alice.badge(), known("a", "alice", &["x"]).badge());
        assert_ne!(alice.number(), known("b", "alice", &["x", "y"]).number());
        // A name that looks like a user of this machine is none.
        assert_ne!(Principal::user(0), known("a", "uid:0", &[]));
    }

    #[test]
    fn rules_are_for_names_groups_or_everybody() {
        let alice = known("a", "alice", &["dev", "ops"]);
        let is = |whom| alice.is_among(&whom);
        assert!(is(Whom::Everybody) && is(Whom::Name("alice".into())) && is(Whom::Group("ops".into())));
        assert!(
            !is(Whom::Name("ops".into()))
                && !is(Whom::Group("alice".into()))
                && !is(Whom::Group("op".into()))
        );
    }
}

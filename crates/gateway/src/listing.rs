//! What agents see at this moment: which servers there are, how they are called, and what they offer.
//!
//! It is made anew whenever one of that changes, and shared by everybody who looks. So an agent's list is a string that
//! lies ready, whatever its servers are doing.

use std::sync::Arc;

use linetender::{Catalogue, Kind, Line};

use crate::config::{Entry, Scope, Settings};
use crate::names::Naming;
use crate::offer::{self, Offer, Part};

/// A server that agents can reach.
#[derive(Debug)]
pub(crate) struct Berth {
    /// Stays the same while its line does: a server that was changed gets another, and one whose filters alone changed
    /// keeps it.
    pub(crate) number: u64,
    pub(crate) entry: Entry,
    /// Its line in the rig.
    pub(crate) line: Line,
}

/// What is seen at one address.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) routes: Vec<Route>,
    /// What each of them adds to the offer.
    parts: Vec<Arc<Part>>,
    pub(crate) offer: Offer,
}

/// A server at this address.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) berth: Arc<Berth>,
    pub(crate) naming: Arc<Naming>,
}

/// Everything that can be seen.
#[derive(Debug)]
pub(crate) struct Listing {
    /// All servers at one address.
    pub(crate) all: Arc<View>,
    /// Each at its own.
    each: Vec<Arc<View>>,
    keep_listed: bool,
}

/// Which address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Endpoint {
    /// All servers, with prefixes.
    All,
    /// One, as it is.
    One(Arc<str>),
}

impl Endpoint {
    /// The server behind it, if it is one.
    pub(crate) fn server(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::One(name) => Some(name),
        }
    }
}

impl Berth {
    pub(crate) fn name(&self) -> &str {
        self.entry.server.name()
    }

    /// Whether what this entry says can be had on the same lines: it differs in what is shown, if at all.
    pub(crate) fn serves(&self, entry: &Entry) -> bool {
        self.entry.server == entry.server && self.entry.scope == entry.scope
    }

    /// Whether it is the same server, and shows the same of it: a reload makes others of all of them.
    fn shows_as(&self, other: &Self) -> bool {
        self.number == other.number && self.entry == other.entry
    }

    fn is_up(&self) -> bool {
        self.line.status().state.is_live()
    }
}

impl Listing {
    /// As it is now. What is unchanged is taken from the listing before: servers decide how long their lists are, and how
    /// often they change.
    pub(crate) fn of(berths: &[Arc<Berth>], settings: &Settings, before: Option<&Self>) -> Self {
        let prefixed = berths.iter().map(|berth| Route {
            berth: Arc::clone(berth),
            naming: Arc::new(Naming::of(berth.name(), &settings.separator)),
        });
        let plain = |berth| Route { berth: Arc::clone(berth), naming: Arc::new(Naming::Plain) };
        let plain = berths.iter().map(plain);
        Self {
            all: Arc::new(View::of(prefixed.collect(), settings, before.map(|before| &*before.all))),
            each: plain
                .map(|route| {
                    let was = before.and_then(|before| before.view_of(&route.berth));
                    Arc::new(View::of(vec![route], settings, was))
                })
                .collect(),
            keep_listed: settings.keep_listed,
        }
    }

    /// About how many bytes all lists take.
    pub(crate) fn weight(&self) -> usize {
        let weight =
            |view: &View| view.offer.weight() + view.parts.iter().map(|part| part.weight).sum::<usize>();
        weight(&self.all) + self.each.iter().map(|view| weight(view)).sum::<usize>()
    }

    /// What was seen at the own address of this very server.
    fn view_of(&self, berth: &Arc<Berth>) -> Option<&View> {
        let of = |view: &&Arc<View>| view.routes.iter().any(|route| route.berth.shows_as(berth));
        self.each.iter().find(of).map(|view| &**view)
    }

    /// What is behind an endpoint; `None` if it leads nowhere.
    pub(crate) fn view(&self, endpoint: &Endpoint) -> Option<&Arc<View>> {
        match endpoint {
            Endpoint::All => Some(&self.all),
            Endpoint::One(name) => {
                self.each.iter().find(|view| view.routes.iter().any(|route| route.berth.name() == &**name))
            }
        }
    }

    /// Whether both are of the same servers, with the same filters.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.all.routes, &other.all.routes);
        let same = |(one, other): (&Route, &Route)| Arc::ptr_eq(&one.berth, &other.berth);
        own.len() == others.len() && own.iter().zip(others).all(same)
    }

    /// Whether the same is offered on both.
    pub(crate) fn offers_what(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<View>, &Arc<View>)| one.offer.is_same(&other.offer);
        self.each.len() == other.each.len()
            && same((&self.all, &other.all))
            && self.each.iter().zip(&other.each).all(same)
    }

    /// The server of this name.
    pub(crate) fn berth(&self, name: &str) -> Option<&Arc<Berth>> {
        self.all.routes.iter().map(|route| &route.berth).find(|berth| berth.name() == name)
    }

    /// Whether an agent at this server's own endpoint sees just what the server says: then nothing needs to be looked at. A line lists
    /// what its server had while that is down.
    pub(crate) fn is_open(&self, berth: &Berth) -> bool {
        self.keep_listed && berth.entry.is_open()
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.all.names()
    }
}

impl View {
    fn of(routes: Vec<Route>, settings: &Settings, before: Option<&Self>) -> Self {
        let nothing: Arc<Catalogue> = Arc::default();
        let parts: Vec<_> = routes
            .iter()
            .map(|route| {
                let catalogue = if settings.keep_listed || route.berth.is_up() {
                    Arc::clone(&route.berth.line.catalogues().borrow())
                } else {
                    Arc::clone(&nothing)
                };
                let made = before.and_then(|before| before.part(route)).filter(|part| part.is_of(&catalogue));
                let part = |catalogue| Part::of(&route.berth.entry, &route.naming, catalogue);
                made.map_or_else(|| Arc::new(part(catalogue)), Arc::clone)
            })
            .collect();
        let offer = Offer::of(&parts, before.map(|before| &before.offer));
        Self { routes, parts, offer }
    }

    /// What this server, under these names, added to the offer.
    fn part(&self, route: &Route) -> Option<&Arc<Part>> {
        let same = |one: &Route| one.berth.shows_as(&route.berth) && one.naming == route.naming;
        self.routes.iter().position(same).and_then(|at| self.parts.get(at))
    }

    /// Somebody looks, and may want what is seen: servers that are started for the first agent are started now.
    pub(crate) fn wake(&self) {
        self.routes.iter().for_each(|route| route.berth.line.wake());
    }

    /// Whether it is what is seen at one server's own address.
    pub(crate) fn is_of_one(&self) -> bool {
        matches!(&*self.routes, [route] if matches!(*route.naming, Naming::Plain))
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.routes.iter().map(|route| route.berth.name()).collect()
    }

    /// Whose this name is, and what its server calls it. `None` if it is nobody's, or not to be seen.
    pub(crate) fn named(&self, kind: Kind, public: &str) -> Option<(&Route, String)> {
        self.routes.iter().find_map(|route| {
            let own = match kind {
                Kind::Tools | Kind::Prompts => route.naming.own_name(public),
                Kind::Resources | Kind::Templates => route.naming.own_uri(public),
            }?;
            offer::lets(kind, &route.berth.entry, own).then(|| (route, own.to_owned()))
        })
    }

    /// The server with this number.
    pub(crate) fn route(&self, number: u64) -> Option<&Route> {
        self.routes.iter().find(|route| route.berth.number == number)
    }
}

impl Route {
    /// Whether an agent that has a session gets a line of its own.
    pub(crate) fn is_own(&self) -> bool {
        self.berth.entry.scope == Scope::Session
    }
}

//! What agents see at this moment: which servers there are, how they are called, and what they offer.
//!
//! It is made anew whenever one of that changes, and shared by everybody who looks. So an agent's list is a string that
//! lies ready, whatever its servers are doing.

mod places;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use linetender::{Catalogue, Freshness, Kind, Line};
use linetender_wire::http::headers::ParamHeaders;

use crate::config::{Entry, Scope, Settings};
use crate::grant::Grant;
use crate::names::Naming;
use crate::offer::{self, Offer, Part, Shown};
use crate::principal::Principal;
use places::Places;

/// Principals and kinds of principals for whom what they see lies ready. If there are more, it is made again for some.
const SIGHTS: usize = 1024;
const KINDS: usize = 256;

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
    /// Where each of them is found, if there are several.
    places: Option<Places>,
    /// Whether any of them has tools whose arguments are to be in headers too.
    mirrors: bool,
    pub(crate) offer: Offer,
    /// Whether a server here keeps outcomes of calls.
    pub(crate) has_durable: bool,
    /// Whether everybody sees the same here.
    is_same_for_all: bool,
}

/// A server at this address.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) berth: Arc<Berth>,
    pub(crate) naming: Arc<Naming>,
    /// What of it whoever looks may see.
    pub(crate) grant: Grant,
}

/// Everything that can be seen.
#[derive(Debug)]
pub(crate) struct Listing {
    berths: Box<[Arc<Berth>]>,
    /// By whoever may see everything.
    whole: Arc<Sight>,
    /// Whether that is everybody.
    is_open: bool,
    /// By others, as they look.
    sights: Mutex<Sights>,
    /// What others saw before something changed: lists that are the same are the same text.
    before: Vec<Arc<Sight>>,
    separator: String,
    keep_listed: bool,
}

/// What somebody can see.
#[derive(Debug)]
pub(crate) struct Sight {
    /// Of each server; none of those that it does not see at all.
    grants: Box<[Option<Grant>]>,
    /// All servers at one address.
    pub(crate) all: Arc<View>,
    /// Each at its own.
    each: Vec<Arc<View>>,
    keep_listed: bool,
}

#[derive(Debug, Default)]
struct Sights {
    of: HashMap<u64, Arc<Sight>>,
    /// Whoever may see the same sees it once.
    kinds: Vec<Arc<Sight>>,
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
        let (separator, keep_listed) = (settings.separator.clone(), settings.keep_listed);
        let grants = berths.iter().map(|_| Some(Grant::Whole)).collect();
        let was: Vec<_> = before.iter().map(|before| &*before.whole).collect();
        let whole = Arc::new(Sight::of(berths, grants, (&separator, keep_listed), &was));
        let is_open = berths.iter().all(|berth| berth.entry.access.is_open());
        let (berths, sights) = (berths.into(), Mutex::default());
        let mut listing = Self { berths, whole, is_open, sights, before: Vec::new(), separator, keep_listed };
        if let Some(before) = before {
            listing.before = before.kinds();
            // Servers decide how long it takes to make a list, so those that are looked at are made here, and not by who looks.
            if listing.is_of_same(before) {
                let made =
                    listing.before.iter().map(|was| Arc::new(listing.made(was.grants.clone(), Some(was))));
                listing.sights = Mutex::new(Sights { of: HashMap::new(), kinds: made.collect() });
            }
        }
        listing
    }

    /// What is seen by whoever may see this.
    fn made(&self, grants: Box<[Option<Grant>]>, was: Option<&Sight>) -> Sight {
        let before: Vec<_> = was.into_iter().chain([&*self.whole]).collect();
        Sight::of(&self.berths, grants, (&self.separator, self.keep_listed), &before)
    }

    /// What somebody can see.
    pub(crate) fn seen_by(&self, principal: &Principal) -> Arc<Sight> {
        if self.is_open {
            return Arc::clone(&self.whole);
        }
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sights.of.get(&principal.badge()) {
            return Arc::clone(known);
        }
        let grants: Box<[_]> = self.berths.iter().map(|berth| Grant::of(&berth.entry, principal)).collect();
        let same = |sight: &&Arc<Sight>| sight.grants == grants;
        let known = sights.kinds.iter().find(same).cloned();
        let was = self.before.iter().find(same);
        // Others who look wait: they would make the same.
        let sight = known.unwrap_or_else(|| {
            let made = self.made(grants.clone(), was.map(|sight| &**sight));
            if sights.kinds.len() >= KINDS {
                sights.kinds.remove(0);
            }
            let made = Arc::new(made);
            sights.kinds.push(Arc::clone(&made));
            made
        });
        if sights.of.len() >= SIGHTS {
            sights.of.clear();
        }
        sights.of.insert(principal.badge(), Arc::clone(&sight));
        sight
    }

    /// What those see who looked, and do not see everything.
    fn kinds(&self) -> Vec<Arc<Sight>> {
        let sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = |kind: &&Arc<Sight>| sights.of.values().any(|of| Arc::ptr_eq(of, kind));
        sights.kinds.iter().filter(looked).cloned().collect()
    }

    /// About how many bytes all lists take.
    pub(crate) fn weight(&self) -> usize {
        let sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        let others = sights.kinds.iter().map(|kind| kind.weight_beside(Some(&self.whole)));
        self.whole.weight_beside(None) + others.sum::<usize>()
    }

    /// Whether both are of the same servers, with the same filters.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<Berth>, &Arc<Berth>)| Arc::ptr_eq(one, other);
        self.berths.len() == other.berths.len() && self.berths.iter().zip(&other.berths).all(same)
    }

    /// Whether the same is offered on both.
    pub(crate) fn offers_what(&self, other: &Self) -> bool {
        self.whole.offers_what(&other.whole)
    }

    /// The server of this name, whoever may see it.
    pub(crate) fn berth(&self, name: &str) -> Option<&Arc<Berth>> {
        self.berths.get(self.whole.all.place_of(name)?)
    }

    /// Whether the server with this number is still there.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.whole.all.route(number).is_some()
    }

    /// How many servers there are.
    pub(crate) fn len(&self) -> usize {
        self.berths.len()
    }
}

impl Sight {
    fn of(
        berths: &[Arc<Berth>],
        grants: Box<[Option<Grant>]>,
        (separator, keep_listed): (&str, bool),
        before: &[&Self],
    ) -> Self {
        let granted = || {
            let each = berths.iter().zip(&grants);
            each.filter_map(|(berth, grant)| Some((Arc::clone(berth), grant.clone()?)))
        };
        let prefixed = granted().map(|(berth, grant)| Route {
            naming: Arc::new(Naming::of(berth.name(), separator)),
            berth,
            grant,
        });
        let plain = granted().map(|(berth, grant)| Route { naming: Arc::new(Naming::Plain), berth, grant });
        let was: Vec<_> = before.iter().map(|before| &*before.all).collect();
        let open = berths.iter().all(|berth| berth.entry.access.is_open());
        let all = View { is_same_for_all: open, ..View::of(prefixed.collect(), keep_listed, &was) };
        let all = all.found_by_name();
        let each = plain
            .map(|route| {
                let was: Vec<_> = before.iter().filter_map(|before| before.view_of(&route.berth)).collect();
                Arc::new(View::of(vec![route], keep_listed, &was))
            })
            .collect();
        Self { grants, all: Arc::new(all), each, keep_listed }
    }

    /// How many bytes are kept for it, beside what is kept for another.
    fn weight_beside(&self, other: Option<&Self>) -> usize {
        let views =
            |sight: &Self| std::iter::once(&sight.all).chain(&sight.each).cloned().collect::<Vec<_>>();
        let others = other.map(views).unwrap_or_default();
        let others: HashSet<_> =
            others.iter().flat_map(|view| &view.parts).map(|part| part.origin()).collect();
        let is_own = |part: &&Arc<Part>| !others.contains(&part.origin());
        let parts = |view: &View| view.parts.iter().filter(is_own).map(|part| part.weight).sum::<usize>();
        views(self).iter().map(|view| view.offer.weight() + parts(view)).sum()
    }

    /// What was seen at the own address of this very server.
    fn view_of(&self, berth: &Arc<Berth>) -> Option<&View> {
        let view = self.each.get(self.all.place(berth.number)?)?;
        view.routes.iter().any(|route| route.berth.shows_as(berth)).then_some(view)
    }

    /// What is behind an endpoint; `None` if it leads nowhere.
    pub(crate) fn view(&self, endpoint: &Endpoint) -> Option<&Arc<View>> {
        match endpoint {
            Endpoint::All => Some(&self.all),
            Endpoint::One(name) => self.each.get(self.all.place_of(name)?),
        }
    }

    fn offers_what(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<View>, &Arc<View>)| one.offer.is_same(&other.offer);
        self.each.len() == other.each.len()
            && same((&self.all, &other.all))
            && self.each.iter().zip(&other.each).all(same)
    }

    /// The server of this name.
    pub(crate) fn route(&self, name: &str) -> Option<&Route> {
        self.all.routes.get(self.all.place_of(name)?)
    }

    /// Whether whoever looks sees at this server's own endpoint just what the server says: then nothing needs to be looked at. A line
    /// lists what its server had while that is down.
    pub(crate) fn is_open(&self, route: &Route) -> bool {
        self.keep_listed && route.berth.entry.is_open() && route.grant.is_open()
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.all.names()
    }

    /// All servers.
    pub(crate) fn berths(&self) -> impl Iterator<Item = &Arc<Berth>> {
        self.all.routes.iter().map(|route| &route.berth)
    }
}

impl View {
    /// What is the same in any of those before is taken from there.
    fn of(routes: Vec<Route>, keep_listed: bool, before: &[&Self]) -> Self {
        let nothing: Arc<Catalogue> = Arc::default();
        let parts: Vec<_> = routes
            .iter()
            .map(|route| {
                let catalogue = if keep_listed || route.berth.is_up() {
                    Arc::clone(&route.berth.line.catalogues().borrow())
                } else {
                    Arc::clone(&nothing)
                };
                let made =
                    before.iter().filter_map(|before| before.part(route)).find(|part| part.is_of(&catalogue));
                let part = |catalogue| Part::of(route.shown(), catalogue);
                made.map_or_else(|| Arc::new(part(catalogue)), Arc::clone)
            })
            .collect();
        let offer = Offer::of(&parts, before.first().map(|before| &before.offer));
        let has_durable = routes.iter().any(|route| route.berth.entry.durable.is_some());
        let parts = offer.holding(parts);
        let mirrors = parts.iter().any(|part| !part.mirrored.is_empty());
        let is_same_for_all = routes.iter().all(|route| route.berth.entry.access.is_open());
        Self { routes, parts, places: None, mirrors, offer, has_durable, is_same_for_all }
    }

    /// Where there are many servers, those who call look for theirs: that must not take longer the more there are.
    fn found_by_name(mut self) -> Self {
        self.places = Some(Places::of(&self.routes));
        self
    }

    /// How long a list is good for whoever looks at it now: as long as that of each server that says so. Those whose time is over are
    /// read again.
    pub(crate) fn freshness(&self, kind: Kind) -> Freshness {
        let mut all = Freshness { ttl: None, is_private: !self.is_same_for_all };
        for route in &self.routes {
            let good = route.berth.line.shown(kind);
            all.ttl = all.ttl.into_iter().chain(good.ttl).min();
            all.is_private |= good.is_private;
        }
        all
    }

    fn place(&self, number: u64) -> Option<usize> {
        match &self.places {
            Some(places) => places.numbered(number),
            None => self.routes.iter().position(|route| route.berth.number == number),
        }
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.called(&self.routes, name),
            None => self.routes.iter().position(|route| route.berth.name() == name),
        }
    }

    /// What this server, under these names, added to the offer.
    fn part(&self, route: &Route) -> Option<&Arc<Part>> {
        let at = self.place(route.berth.number)?;
        let one = self.routes.get(at)?;
        let same = one.berth.shows_as(&route.berth) && one.naming == route.naming && one.grant == route.grant;
        self.parts.get(at).filter(|_| same)
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
        // No prefix begins with another: at most one server can have it.
        let may_have = match &self.places {
            Some(places) => places.prefixing(&self.routes, public),
            None => self.routes.iter().collect(),
        };
        may_have.into_iter().find_map(|route| {
            let own = match kind {
                Kind::Tools => route.berth.entry.tools.own(route.naming.own_name(public)?)?.into(),
                Kind::Prompts => route.naming.own_name(public)?.into(),
                Kind::Resources | Kind::Templates => route.naming.own_uri(public)?,
            };
            route.lets(kind, &own).then(|| (route, own.into_owned()))
        })
    }

    /// Which arguments of a tool are to be in headers too, if any.
    pub(crate) fn mirrored(&self, public: &str) -> Option<&ParamHeaders> {
        if !self.mirrors {
            return None;
        }
        let (route, own) = self.named(Kind::Tools, public)?;
        self.parts.get(self.place(route.berth.number)?)?.mirrored.get(&own)
    }

    /// The server with this number.
    pub(crate) fn route(&self, number: u64) -> Option<&Route> {
        self.routes.get(self.place(number)?)
    }
}

impl Route {
    /// Whether whoever sees the server may see this of it.
    pub(crate) fn lets(&self, kind: Kind, own: &str) -> bool {
        offer::lets(kind, &self.berth.entry, &self.grant, own)
    }

    /// Whether something of it cannot be asked for by its own name: then what is not understood cannot be let through.
    pub(crate) fn hides(&self) -> bool {
        !(self.berth.entry.hides_nothing() && self.grant.is_open())
    }

    fn shown(&self) -> Shown<'_> {
        Shown { entry: &self.berth.entry, grant: &self.grant, naming: &self.naming }
    }

    /// Whether an agent that has a session gets a line of its own.
    pub(crate) fn is_own(&self) -> bool {
        self.berth.entry.scope == Scope::Session
    }
}

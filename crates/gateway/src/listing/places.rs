//! Where a server stands among many: by its number, its name, and what the names of its things begin with.

use std::collections::HashMap;

use super::Route;
use crate::names::Naming;

/// Indices into the routes that it was made of.
#[derive(Debug, Default)]
pub(super) struct Places {
    numbers: HashMap<u64, usize>,
    /// In the order of their names.
    names: Box<[usize]>,
    /// In the order of each of their prefixes: of tools and prompts, of resources, of pages.
    prefixes: [Box<[usize]>; 3],
}

impl Places {
    pub(super) fn of(routes: &[Route]) -> Self {
        let numbers = routes.iter().enumerate().map(|(at, route)| (route.berth.number, at)).collect();
        let names = sorted(routes, |route| route.berth.name());
        let prefixes = std::array::from_fn(|which| sorted(routes, |route| prefixes(route)[which]));
        Self { numbers, names, prefixes }
    }

    pub(super) fn numbered(&self, number: u64) -> Option<usize> {
        self.numbers.get(&number).copied()
    }

    /// The one that is called this.
    pub(super) fn called(&self, routes: &[Route], name: &str) -> Option<usize> {
        let found = self.names.binary_search_by(|at| routes[*at].berth.name().cmp(name));
        found.ok().and_then(|found| self.names.get(found)).copied()
    }

    /// Those with a prefix that this may begin with: no prefix begins with another, so it is the last one that is not behind it.
    pub(super) fn prefixing<'a>(&self, routes: &'a [Route], public: &str) -> Vec<&'a Route> {
        let each = self.prefixes.iter().enumerate();
        each.filter_map(|(which, order)| {
            let behind = order.partition_point(|at| prefixes(&routes[*at])[which] <= public);
            routes.get(*order.get(behind.checked_sub(1)?)?)
        })
        .collect()
    }
}

fn sorted<'a>(routes: &'a [Route], by: impl Fn(&'a Route) -> &'a str) -> Box<[usize]> {
    let mut order: Box<[usize]> = (0..routes.len()).collect();
    order.sort_by_key(|at| by(&routes[*at]));
    order
}

fn prefixes(route: &Route) -> [&str; 3] {
    match &*route.naming {
        Naming::Plain => [""; 3],
        Naming::Prefixed { name, uri, page } => [name, uri, page],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linetender::{Kind, Rig};

    use crate::config::{Settings, load};
    use crate::listing::{Berth, Endpoint, Listing};

    #[tokio::test]
    async fn every_server_of_many_is_found_by_its_number_its_name_and_the_names_of_its_things() {
        // In no order, and names that begin like others'.
        let names: Vec<String> =
            (0..300).map(|n| format!("s{}", (n * 7) % 300)).chain(["s".into(), "zz".into()]).collect();
        let text: String = names
            .iter()
            .map(|name| format!("[servers.{name}]\nurl='http://127.0.0.1:1/'\nlazy=true\n"))
            .collect();
        let config = load("t", &text, &|_| None).unwrap();
        let rig = Rig::new();
        let berths: Vec<_> = (100..)
            .zip(config.servers)
            .map(|(number, entry)| Arc::new(Berth { number, line: rig.lazy(entry.server.clone()), entry }))
            .collect();
        let listing = Listing::of(&berths, &Settings::default(), None);
        for berth in &berths {
            let name = berth.name();
            let at = |route: Option<&crate::listing::Route>| route.map(|route| route.berth.number);
            assert_eq!(listing.berth(name).map(|found| found.number), Some(berth.number));
            assert!(listing.has(berth.number));
            let all = &listing.whole.all;
            assert_eq!(at(all.route(berth.number)), Some(berth.number));
            assert_eq!(at(listing.whole.route(name)), Some(berth.number));
            let own = listing.whole.view(&Endpoint::One(name.into())).unwrap();
            assert_eq!(at(own.routes.first()), Some(berth.number));
            for (kind, public, own) in [
                (Kind::Tools, format!("{name}__echo"), "echo"),
                (Kind::Prompts, format!("{name}__s1__x"), "s1__x"),
                (Kind::Resources, format!("linetender://{name}/file:///x"), "file:///x"),
                (Kind::Resources, format!("ui://{name}/page"), "ui://page"),
                (Kind::Templates, format!("linetender://{name}/x:{{y}}"), "x:{y}"),
            ] {
                let found = all.named(kind, &public).map(|(route, own)| (route.berth.number, own));
                assert_eq!(found, Some((berth.number, own.to_owned())), "{public}");
            }
        }
        let all = &listing.whole.all;
        for nobody in ["", "s301__echo", "echo", "zz_echo", "a__b", "~~__x"] {
            assert!(all.named(Kind::Tools, nobody).is_none(), "{nobody}");
        }
        for nobody in ["linetender://s301/x", "linetender://s1", "ui://s301/x", "file:///s1/x", "s1__x"] {
            assert!(all.named(Kind::Resources, nobody).is_none(), "{nobody}");
        }
        assert!(listing.berth("s301").is_none() && !listing.has(99));
        assert!(listing.whole.view(&Endpoint::One("s301".into())).is_none());
    }
}

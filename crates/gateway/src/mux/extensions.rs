//! What servers declare beyond the protocol, as it holds where many of them are at one address: what is declared there works
//! there. Alone at its address a server declares what it likes.

use linetender::{Declared, Era};
use serde_json::{Map, Value, json};

use super::tasks;
use crate::listing::View;

/// Pages of tools (MCP Apps): their addresses are named here as everything else is.
const PAGES: &str = "io.modelcontextprotocol/ui";

/// Tasks of the modern era. The legacy era has them in the protocol, and begins them in another way.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Where servers declare extensions: in the place that the protocol has for them, and where some did before it had one.
const PLACES: [Place; 2] = [("extensions", |of| &of.extensions), ("experimental", |of| &of.experimental)];

type Place = (&'static str, fn(&Declared) -> &Map<String, Value>);

/// Puts what the servers of this address have declared so far among the capabilities that an agent of this era is told of.
pub(super) fn declare(capabilities: &mut Value, view: &View, era: Era) {
    let declared = view.routes.iter().filter_map(|route| route.berth.line.declared());
    let declared: Vec<_> = declared.collect();
    for (place, of) in PLACES {
        let all = declared.iter().map(|declared| (declared.era, of(declared)));
        let told = if view.is_of_one() { alone(all, era) } else { merged(&all.collect::<Vec<_>>(), era) };
        if !told.is_empty() {
            capabilities[place] = told.into();
        }
    }
    // A call with a key that takes long becomes a task, whatever its server knows of tasks.
    if era == Era::Modern && view.has_durable && capabilities["extensions"].get(TASKS).is_none() {
        capabilities["extensions"][TASKS] = json!({});
    }
    let tasks = match &*declared {
        _ if era == Era::Modern => None,
        [only] if view.is_of_one() => only.tasks.clone().filter(|_| only.era == era),
        _ => tasks::capability(view),
    };
    if let Some(tasks) = tasks {
        capabilities["tasks"] = tasks;
    }
}

/// What the one server has.
fn alone<'a>(mut all: impl Iterator<Item = (Era, &'a Map<String, Value>)>, era: Era) -> Map<String, Value> {
    let Some((of, all)) = all.next() else { return Map::new() };
    let mut told = all.clone();
    if of != era || era == Era::Legacy {
        told.remove(TASKS);
    }
    told
}

/// What works for whichever of these servers has it. The settings are theirs if they agree.
fn merged(all: &[(Era, &Map<String, Value>)], era: Era) -> Map<String, Value> {
    let of = |name: &str, is_told: &dyn Fn(Era) -> bool| {
        let mut each = all.iter().filter(|(of, _)| is_told(*of)).filter_map(|(_, all)| all.get(name));
        let first = each.next()?;
        let told = if each.all(|other| other == first) { first.clone() } else { json!({}) };
        Some((name.to_owned(), told))
    };
    let tasks = of(TASKS, &|of| of == era && era == Era::Modern);
    of(PAGES, &|_| true).into_iter().chain(tasks).collect()
}

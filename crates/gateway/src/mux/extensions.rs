//! What servers declare beyond the protocol, as it holds where many of them are at one address: what is declared there works
//! there. Alone at its address a server declares what it likes.

use linetender::Declared;
use serde_json::{Map, Value, json};

use crate::listing::View;

/// Pages of tools (MCP Apps): their addresses are named here as everything else is.
const PAGES: &str = "io.modelcontextprotocol/ui";

/// Extensions that work where many servers are.
const KNOWN: [&str; 1] = [PAGES];

/// Where servers declare extensions: in the place that the protocol has for them, and where some did before it had one.
const PLACES: [Place; 2] = [("extensions", |of| &of.extensions), ("experimental", |of| &of.experimental)];

type Place = (&'static str, fn(&Declared) -> &Map<String, Value>);

/// Puts what the servers of this address have declared so far among the capabilities that an agent is told of.
pub(super) fn declare(capabilities: &mut Value, view: &View) {
    let declared = view.routes.iter().filter_map(|route| route.berth.line.declared());
    let declared: Vec<_> = declared.collect();
    for (place, of) in PLACES {
        let all: Vec<_> = declared.iter().map(|declared| of(declared)).collect();
        let told = if view.is_of_one() {
            all.first().map(|all| (*all).clone()).unwrap_or_default()
        } else {
            merged(&all)
        };
        if !told.is_empty() {
            capabilities[place] = told.into();
        }
    }
}

/// What works for whichever of these servers has it. The settings are theirs if they agree.
fn merged(all: &[&Map<String, Value>]) -> Map<String, Value> {
    let of = |name: &str| {
        let mut each = all.iter().filter_map(|all| all.get(name));
        let first = each.next()?;
        Some(if each.all(|other| other == first) { first.clone() } else { json!({}) })
    };
    KNOWN.iter().filter_map(|name| Some(((*name).to_owned(), of(name)?))).collect()
}

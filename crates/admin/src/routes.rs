//! What can be asked at the address: one table, which requests are matched with and the `OpenAPI` document is made from.

use linetender_holder::holder::{CallReport, Done, Report, UnderWayReport};
use linetender_holder::journal::Entry;
use linetender_holder::processes::Tree;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::query::decoded;

/// One thing that can be asked.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// `{name}` stands for the name of a server.
    pub(crate) path: &'static str,
    pub(crate) is: Op,
    /// Its name for programs.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) gives: Gives,
    /// Statuses of problems that this route may have, beside those that every one may.
    pub(crate) fails: &'static [u16],
}

/// What is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Op {
    Health,
    Status,
    Why,
    Calls,
    Processes,
    Events,
    Redial,
    Park,
    Wake,
    Drain,
    Reload,
    LogLevel,
    Metrics,
    OpenApi,
}

/// Makes a schema.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What the response holds.
pub(crate) enum Gives {
    /// JSON with this schema.
    Json(SchemaOf),
    /// Text of these media types, with an explanation.
    Text(&'static [&'static str], &'static str),
    /// Server-sent events.
    Events,
}

/// What is known of why a server stands where it does.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Why {
    /// Server name.
    pub(crate) server: String,
    /// The story of its last failures in plain sentences, as `linetender why` tells it: a line each.
    pub(crate) story: Vec<String>,
    /// Its last journal entries, oldest first.
    pub(crate) entries: Vec<Entry>,
}

/// Requests under way.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Calls {
    /// The oldest of each server, 256 at most.
    pub(crate) calls: Vec<UnderWayReport>,
}

/// Processes of local servers.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Processes {
    /// One tree for each connection to a local server.
    pub(crate) trees: Vec<Tree>,
}

/// From where on to log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogLevel {
    /// The level.
    pub(crate) level: Level,
}

/// A level of the log.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// A number of events that the reader was too slow for.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Missed {
    /// How many.
    pub(crate) missed: u64,
}

/// The data of server-sent events, by the name of the event.
pub(crate) const EVENT_SCHEMAS: [(&str, SchemaOf); 3] =
    [("entry", schema::<Entry>), ("call", schema::<CallReport>), ("missed", schema::<Missed>)];

/// Everything that can be asked, the page apart.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/healthz",
        is: Op::Health,
        id: "health",
        summary: "Whether the gateway runs. Needs no token.",
        gives: Gives::Text(&["text/plain; charset=utf-8"], "ok"),
        fails: &[],
    },
    Route {
        method: "GET",
        path: "/api/v1/status",
        is: Op::Status,
        id: "status",
        summary: "Where every server stands, and what became of its requests.",
        gives: Gives::Json(schema::<Report>),
        fails: &[],
    },
    Route {
        method: "GET",
        path: "/api/v1/servers/{name}/why",
        is: Op::Why,
        id: "why",
        summary: "What happened to one server of late.",
        gives: Gives::Json(schema::<Why>),
        fails: &[404],
    },
    Route {
        method: "GET",
        path: "/api/v1/calls",
        is: Op::Calls,
        id: "calls",
        summary: "Requests that have not ended.",
        gives: Gives::Json(schema::<Calls>),
        fails: &[],
    },
    Route {
        method: "GET",
        path: "/api/v1/processes",
        is: Op::Processes,
        id: "processes",
        summary: "Processes of local servers, and their memory.",
        gives: Gives::Json(schema::<Processes>),
        fails: &[],
    },
    Route {
        method: "GET",
        path: "/api/v1/events",
        is: Op::Events,
        id: "events",
        summary: "Journal entries as they are written, and with calls=1 requests as they end, until the reader hangs up.",
        gives: Gives::Events,
        fails: &[503],
    },
    Route {
        method: "POST",
        path: "/api/v1/servers/{name}/redial",
        is: Op::Redial,
        id: "redial",
        summary: "Ends the connection to a server and opens a new one now. Returns when it is up, or failed.",
        gives: Gives::Json(schema::<Done>),
        fails: &[404, 409, 504],
    },
    Route {
        method: "POST",
        path: "/api/v1/servers/{name}/park",
        is: Op::Park,
        id: "park",
        summary: "Takes a server out of service until it is woken. Calls are refused meanwhile.",
        gives: Gives::Json(schema::<Done>),
        fails: &[404, 409, 504],
    },
    Route {
        method: "POST",
        path: "/api/v1/servers/{name}/wake",
        is: Op::Wake,
        id: "wake",
        summary: "Brings a parked server back.",
        gives: Gives::Json(schema::<Done>),
        fails: &[404, 409, 504],
    },
    Route {
        method: "POST",
        path: "/api/v1/servers/{name}/drain",
        is: Op::Drain,
        id: "drain",
        summary: "Replaces a server once its calls have ended. Returns at once.",
        gives: Gives::Json(schema::<Done>),
        fails: &[404, 409, 504],
    },
    Route {
        method: "POST",
        path: "/api/v1/reload",
        is: Op::Reload,
        id: "reload",
        summary: "Reads the config file again.",
        gives: Gives::Json(schema::<Done>),
        fails: &[409, 504],
    },
    Route {
        method: "PUT",
        path: "/api/v1/log-level",
        is: Op::LogLevel,
        id: "setLogLevel",
        summary: "Logs from this level on, until the next start.",
        gives: Gives::Json(schema::<Done>),
        fails: &[409, 415, 504],
    },
    Route {
        method: "GET",
        path: "/metrics",
        is: Op::Metrics,
        id: "metrics",
        summary: "Metrics for Prometheus: OpenMetrics if it is asked for, else the older text format.",
        gives: Gives::Text(
            &[
                "text/plain; version=0.0.4; charset=utf-8",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ],
            "docs/metrics.md describes them",
        ),
        fails: &[503],
    },
    Route {
        method: "GET",
        path: "/openapi.json",
        is: Op::OpenApi,
        id: "openapi",
        summary: "This document.",
        gives: Gives::Json(any),
        fails: &[],
    },
];

/// What a request is for.
pub(crate) enum Found {
    /// This, and the server that it names, if it names one.
    Route(&'static Route, String),
    /// There is such a path, for these methods.
    Methods(String),
    Nothing,
}

/// What a request of this method and path is for.
pub(crate) fn find(method: &str, path: &str) -> Found {
    // A response to HEAD is one to GET without its body.
    let method = if method == "HEAD" { "GET" } else { method };
    let mut methods = Vec::new();
    for route in ROUTES {
        let Some(name) = matches(route.path, path) else { continue };
        if route.method == method {
            return Found::Route(route, name);
        }
        methods.push(route.method);
    }
    if methods.is_empty() { Found::Nothing } else { Found::Methods(methods.join(", ")) }
}

/// The server that a path names, if it is of this pattern; empty if the pattern has no place for one.
fn matches(pattern: &str, path: &str) -> Option<String> {
    let (mut pattern, mut path, mut name) = (pattern.split('/'), path.split('/'), String::new());
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return Some(name),
            (Some("{name}"), Some(segment)) if !segment.is_empty() => name = decoded(segment)?,
            (Some(one), Some(other)) if one == other => {}
            _ => return None,
        }
    }
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn any(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object" })
}

#[cfg(test)]
mod tests {
    use super::{Found, Op, ROUTES, find};

    #[test]
    fn a_path_leads_to_its_route_and_a_name_is_decoded() {
        let of = |method: &str, path: &str| match find(method, path) {
            Found::Route(route, name) => format!("{:?} {name:?}", route.is),
            Found::Methods(methods) => methods,
            Found::Nothing => String::new(),
        };
        assert_eq!(of("GET", "/api/v1/status"), "Status \"\"");
        assert_eq!(of("HEAD", "/api/v1/status"), "Status \"\"");
        assert_eq!(of("POST", "/api/v1/servers/a%20b%2Fc/redial"), "Redial \"a b/c\"");
        assert_eq!(of("DELETE", "/api/v1/status"), "GET");
        for bad in
            ["/api/v1/status/", "/api/v1/servers//why", "/api/v1/servers/%ff/why", "/api/v2/status", ""]
        {
            assert_eq!(of("GET", bad), "", "{bad}");
        }
    }

    #[test]
    fn every_route_is_there_once() {
        for (at, route) in ROUTES.iter().enumerate() {
            let same = |other: &super::Route| {
                (other.method, other.path) == (route.method, route.path) || other.id == route.id
            };
            assert!(!ROUTES[at + 1..].iter().any(same), "{}", route.id);
        }
        assert!(ROUTES.iter().any(|route| route.is == Op::OpenApi));
    }
}

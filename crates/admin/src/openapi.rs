//! The `OpenAPI` document of the address, made from the table of routes and from the types that it answers with.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::page::ASSETS;
use crate::problem::{MEDIA_TYPE, Problem};
use crate::routes::{EVENT_SCHEMAS, Gives, LogLevel, Op, ROUTES, Route};

/// What any request may get that needs a token.
const ANY: [u16; 6] = [400, 401, 403, 408, 413, 429];

/// The document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>().to_value();
    let mut paths = Map::new();
    for route in ROUTES {
        let operation = operation(route, &problem, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.to_ascii_lowercase(), operation);
        }
    }
    for asset in ASSETS {
        let media_type = asset.media_type;
        let ok = json!({ "description": "a file of the page", "content": { media_type: { "schema": { "type": "string" } } } });
        let get =
            json!({ "summary": "The web page. Needs no token.", "security": [], "responses": { "200": ok } });
        paths.insert(asset.path.to_owned(), json!({ "get": get }));
    }
    let events: Map<String, Value> =
        EVENT_SCHEMAS.iter().map(|(name, of)| ((*name).to_owned(), of(&mut generator).to_value())).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "linetender admin address",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What the servers of a gateway do, and orders for them. Paths begin with /api/v1: what is there stays as it is, \
                            and members may be added to what is answered.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "gateway.admin.token" } },
        },
        "x-events": events,
    })
}

fn operation(route: &Route, problem: &Value, generator: &mut SchemaGenerator) -> Value {
    let public = route.is == Op::Health;
    let mut responses = Map::new();
    responses.insert("200".to_owned(), given(&route.gives, generator));
    // Whoever needs no token gets no 401.
    let any = ANY.iter().filter(|status| !public || !matches!(status, 401 | 429));
    for status in any.chain(route.fails) {
        let content = json!({ MEDIA_TYPE: { "schema": problem } });
        responses.insert(status.to_string(), json!({ "description": "a problem", "content": content }));
    }
    let mut operation = json!({ "operationId": route.id, "summary": route.summary, "responses": responses });
    let Some(members) = operation.as_object_mut() else { return operation };
    if public {
        members.insert("security".to_owned(), json!([]));
    }
    let mut parameters = Vec::new();
    if route.path.contains("{name}") {
        let schema = json!({ "type": "string", "minLength": 1 });
        parameters.push(json!({ "name": "name", "in": "path", "required": true, "description": "Server name.", "schema": schema }));
    }
    if route.is == Op::Events {
        let schema = json!({ "enum": ["0", "1"], "default": "0" });
        let what = "Whether requests are told as they end.";
        parameters.push(json!({ "name": "calls", "in": "query", "required": false, "description": what, "schema": schema }));
    }
    if !parameters.is_empty() {
        members.insert("parameters".to_owned(), parameters.into());
    }
    if route.is == Op::LogLevel {
        let schema = generator.subschema_for::<LogLevel>().to_value();
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        members.insert("requestBody".to_owned(), body);
    }
    operation
}

fn given(gives: &Gives, generator: &mut SchemaGenerator) -> Value {
    match gives {
        Gives::Json(schema) => {
            let schema = schema(generator).to_value();
            json!({ "description": "OK", "content": { "application/json": { "schema": schema } } })
        }
        Gives::Text(media_types, what) => {
            let of = |one: &&str| ((*one).to_owned(), json!({ "schema": { "type": "string" } }));
            let content: Map<String, Value> = media_types.iter().map(of).collect();
            json!({ "description": what, "content": content })
        }
        Gives::Events => {
            let what = "Server-sent events: `entry` (a journal entry), `call` (a request that ended), `missed` (how many the reader was too \
                        slow for). Their data is JSON; x-events has the schemas.";
            json!({ "description": what, "content": { "text/event-stream": { "schema": { "type": "string" } } } })
        }
    }
}

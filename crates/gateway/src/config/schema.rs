//! The file's JSON schema: for editors, and for telling what is unknown.

use linetender_core::RetryReason;
use schemars::{Schema, SchemaGenerator, schema_for};
use serde_json::{Value, json};

use super::file::File;

/// What the schema calls itself. The number changes with the version, as the keys may.
const ID: &str = concat!("urn:linetender:config:", env!("CARGO_PKG_VERSION"));

/// The schema of a config file.
pub fn schema() -> Value {
    let mut schema = schema_for!(File).to_value();
    if let Some(members) = schema.as_object_mut() {
        members.insert("$id".to_owned(), ID.into());
    }
    without_null(&mut schema);
    schema
}

/// What may be left out is left out: TOML has no null, and an editor should not offer one.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("default") == Some(&Value::Null) {
                members.remove("default");
            }
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    members.insert("type".to_owned(), one);
                }
            }
            members.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    /// Milliseconds.
    Time,
    /// Bytes.
    Size,
    /// Whatever its name says.
    Things,
}

impl Unit {
    /// Of a number of the policy.
    fn of(name: &str) -> Self {
        match name {
            "message" | "stderr" => Self::Size,
            "burst" | "depth" | "failures" | "in_flight" | "millis_per_answer" | "per_call" | "percent"
            | "queue" | "reserve_per_sec" | "tokens" | "useful_answers" | "useful_tokens" => Self::Things,
            _ => Self::Time,
        }
    }

    /// Of a number that this is the schema of.
    pub(super) fn in_schema(schema: &Value) -> Option<Self> {
        match schema.get(UNIT)?.as_str()? {
            "ms" => Some(Self::Time),
            "bytes" => Some(Self::Size),
            _ => None,
        }
    }
}

/// Where the schema says what a number counts. Editors pass over it.
const UNIT: &str = "x-unit";

fn with_unit(unit: Unit, default: &Value) -> Value {
    let (name, pattern) = match unit {
        Unit::Things => return json!({ "type": "integer", "minimum": 0, "default": default }),
        Unit::Time => ("ms", "^([0-9]+(ms|s|m|h) ?)+$"),
        Unit::Size => ("bytes", "^[0-9]+ ?([kKmMgG](i?[bB])?|[bB])?$"),
    };
    json!({ "type": ["integer", "string"], "minimum": 0, "pattern": pattern, UNIT: name, "default": default })
}

/// A time of the gateway's own.
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    without_default(Unit::Time)
}

/// A size of the gateway's own.
pub(super) fn size(_: &mut SchemaGenerator) -> Schema {
    without_default(Unit::Size)
}

/// Users, by name or by uid.
pub(super) fn users(_: &mut SchemaGenerator) -> Schema {
    let items = json!({ "type": ["integer", "string"], "minimum": 0 });
    Schema::try_from(json!({ "type": "array", "items": items })).unwrap_or_default()
}

/// The words of `state`.
pub(super) fn state(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(json!({ "enum": ["none", "unknown", "process"], "type": "string" })).unwrap_or_default()
}

/// The words of `retry_on`.
pub(super) fn retry_on(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(words_of_retry_on()).unwrap_or_default()
}

fn words_of_retry_on() -> Value {
    let words = RetryReason::SETTABLE.map(RetryReason::name);
    json!({ "type": "array", "items": { "enum": words, "type": "string" } })
}

/// The words of `tree`.
pub(super) fn tree(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(words_of_tree()).unwrap_or_default()
}

fn words_of_tree() -> Value {
    json!({ "enum": ["server", "all"], "type": "string" })
}

/// The default of a field is put in by whoever asks for its schema.
fn without_default(unit: Unit) -> Schema {
    let mut schema = with_unit(unit, &Value::Null);
    if let Some(members) = schema.as_object_mut() {
        members.remove("default");
    }
    Schema::try_from(schema).unwrap_or_default()
}

/// What a schema says of a member of this name.
pub(super) fn member<'a>(schema: &'a Value, root: &'a Value, name: &str) -> Option<&'a Value> {
    let schema = resolved(schema, root);
    let known = schema.get("properties").and_then(|known| known.get(name));
    known.or_else(|| schema.get("additionalProperties").filter(|others| others.is_object()))
}

/// Where a schema leads, if it leads somewhere else.
pub(super) fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    match schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#')) {
        Some(path) => root.pointer(path).unwrap_or(schema),
        None => schema,
    }
}

/// The policy's numbers are the core's, which knows nothing of schemas: their defaults say what they are.
pub(super) fn policy(_: &mut SchemaGenerator) -> Schema {
    let defaults = serde_json::to_value(linetender_core::Settings::default()).unwrap_or_default();
    Schema::try_from(of("", &defaults)).unwrap_or_default()
}

fn of(name: &str, default: &Value) -> Value {
    match default {
        Value::Object(members) => {
            let properties: serde_json::Map<_, _> =
                members.iter().map(|(name, value)| (name.clone(), of(name, value))).collect();
            json!({ "type": "object", "properties": properties })
        }
        Value::Number(_) => with_unit(Unit::of(name), default),
        Value::Bool(_) => json!({ "type": "boolean", "default": default }),
        Value::Array(_) => {
            let mut schema = words_of_retry_on();
            schema["default"] = default.clone();
            schema
        }
        Value::String(_) | Value::Null => json!({ "default": default }),
    }
}

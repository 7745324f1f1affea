//! The file's JSON schema: for editors, and for telling what is unknown.

use schemars::{Schema, SchemaGenerator, schema_for};
use serde_json::{Value, json};

use super::file::File;

/// The schema of a config file.
pub fn schema() -> Value {
    schema_for!(File).to_value()
}

/// The policy's numbers are the core's, which knows nothing of schemas: their defaults say what they are.
pub(super) fn policy(_: &mut SchemaGenerator) -> Schema {
    let defaults = serde_json::to_value(linetender_core::Settings::default()).unwrap_or_default();
    Schema::try_from(of(&defaults)).unwrap_or_default()
}

fn of(default: &Value) -> Value {
    match default {
        Value::Object(members) => {
            let properties: serde_json::Map<_, _> =
                members.iter().map(|(name, value)| (name.clone(), of(value))).collect();
            json!({ "type": "object", "properties": properties })
        }
        Value::Number(_) => json!({ "type": "integer", "minimum": 0, "default": default }),
        Value::Bool(_) => json!({ "type": "boolean", "default": default }),
        Value::String(_) | Value::Array(_) | Value::Null => json!({ "default": default }),
    }
}

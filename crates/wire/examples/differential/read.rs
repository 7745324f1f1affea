//! What `serde_json` reads: as a value, and as the structs that a server in Rust derives.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

type Read = BTreeMap<&'static str, Value>;

/// By both.
pub(crate) fn all(text: &str) -> Value {
    let refused = |error: serde_json::Error| json!({ "refused": error.to_string() });
    let value = serde_json::from_str(text).map_or_else(refused, |value| json!(of_value(&value)));
    let derived = serde_json::from_str(text).and_then(|message| of_derived(&message));
    let derived = derived.map_or_else(refused, |read| json!(read));
    json!({ "value": value, "derived": derived })
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A place in a message by name, and its path.
const PLACES: [(&str, &[&str]); 16] = [
    ("id", &["id"]),
    ("method", &["method"]),
    ("result", &["result"]),
    ("error", &["error"]),
    ("entry", &["name"]),
    ("name", &["params", "name"]),
    ("uri", &["params", "uri"]),
    ("requestId", &["params", "requestId"]),
    ("progressToken", &["params", "progressToken"]),
    ("ref.type", &["params", "ref", "type"]),
    ("ref.name", &["params", "ref", "name"]),
    ("ref.uri", &["params", "ref", "uri"]),
    ("_meta.progressToken", &["params", "_meta", "progressToken"]),
    ("_meta.version", &["params", "_meta", VERSION]),
    ("_meta.client", &["params", "_meta", CLIENT]),
    ("_meta.capabilities", &["params", "_meta", CAPABILITIES]),
];

fn of_value(message: &Value) -> Read {
    let at =
        |path: &[&str]| path.iter().try_fold(message, |value, name| value.get(name)).map(Value::to_string);
    PLACES.iter().map(|(place, path)| (*place, at(path).into())).collect()
}

/// Raw values say whether a member was there at all, and lose nothing.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    uri: Option<&'a RawValue>,
    request_id: Option<&'a RawValue>,
    progress_token: Option<&'a RawValue>,
    r#ref: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Reference<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    uri: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
}

fn of_derived(message: &Message<'_>) -> serde_json::Result<Read> {
    let params: Params<'_> = object(message.params)?;
    let (about, meta): (Reference<'_>, Meta<'_>) = (object(params.r#ref)?, object(params.meta)?);
    let read = [
        ("id", message.id),
        ("method", message.method),
        ("result", message.result),
        ("error", message.error),
        ("entry", message.name),
        ("name", params.name),
        ("uri", params.uri),
        ("requestId", params.request_id),
        ("progressToken", params.progress_token),
        ("ref.type", about.r#type),
        ("ref.name", about.name),
        ("ref.uri", about.uri),
        ("_meta.progressToken", meta.token),
        ("_meta.version", meta.version),
        ("_meta.client", meta.client),
        ("_meta.capabilities", meta.capabilities),
    ];
    Ok(read.into_iter().map(|(place, value)| (place, value.map(RawValue::get).into())).collect())
}

/// A struct is also read from an array, by position; a message whose target would stand in one is answered, not passed on.
fn object<'a, T: Default + Deserialize<'a>>(value: Option<&'a RawValue>) -> serde_json::Result<T> {
    let text = value.map(RawValue::get).filter(|text| text.starts_with('{'));
    text.map_or_else(|| Ok(T::default()), serde_json::from_str)
}

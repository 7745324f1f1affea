//! Which arguments of a tool are mirrored into headers: the `x-mcp-header` annotations of its schema.
// MCP 2026-07-28, Streamable HTTP, "Schema Extension": a tool with an annotation that breaks the rules is not offered.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::value::{decode, encode};
use crate::redact::Redacted;

/// How many arguments of one tool are mirrored at most.
pub const PARAMS_MOST: usize = 64;

/// The longest name of such a header.
pub const NAME_LIMIT: usize = 128;

const ANNOTATION: &str = "x-mcp-header";

/// The integers that every JSON reader holds exactly.
const SAFE: std::ops::RangeInclusive<i64> = -9_007_199_254_740_991..=9_007_199_254_740_991;

/// The arguments of one tool that are mirrored.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ParamHeaders(Vec<Mirror>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Mirror {
    header: HeaderName,
    /// The names that lead to the argument, outermost first.
    path: Vec<Box<str>>,
}

/// Why a tool cannot be offered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// Its schema cannot be read.
    #[error("the input schema is not JSON, or nested too deeply")]
    Schema,
    /// An annotation is no header name.
    #[error("x-mcp-header {name:?} is not a valid header name", name = .0.as_str())]
    Name(Redacted),
    /// Two annotations name the same header.
    #[error("x-mcp-header {name:?} is used twice", name = .0.as_str())]
    Twice(Redacted),
    /// An annotation stands on something that is no string, integer or boolean.
    #[error("x-mcp-header {name:?} is on a parameter that is not a string, integer or boolean", name = .0.as_str())]
    Type(Redacted),
    /// An annotation stands where no argument can be found for sure.
    #[error("x-mcp-header {name:?} is not on a plain property", name = .0.as_str())]
    Place(Redacted),
    /// There are too many.
    #[error("more than {PARAMS_MOST} x-mcp-header annotations")]
    TooMany,
}

/// Where in a schema we are.
#[derive(Clone, Copy)]
enum Place {
    Root,
    Property,
    Elsewhere,
}

impl ParamHeaders {
    /// Reads the annotations of a tool's `inputSchema`.
    ///
    /// # Errors
    /// If one of them breaks the rules: then the tool must not be offered.
    pub fn of(input_schema_json: &str) -> Result<Self, Invalid> {
        // The usual schema has none and is not parsed at all. An annotation's name can be spelt with escapes.
        if !input_schema_json.contains(ANNOTATION) && !input_schema_json.contains('\\') {
            return Ok(Self::default());
        }
        let schema: Value = serde_json::from_str(input_schema_json).map_err(|_| Invalid::Schema)?;
        let mut found = Self::default();
        found.walk(&schema, Place::Root, &mut Vec::new())?;
        Ok(found)
    }

    /// Whether nothing is mirrored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers, in the order of the schema's properties.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().map(|mirror| &mirror.header)
    }

    /// Mirrors what is there. What is missing, null, or no value of a permitted type has no header.
    pub(super) fn put(&self, map: &mut HeaderMap, arguments: &str) {
        if self.is_empty() {
            return;
        }
        let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return };
        for Mirror { header, path } in &self.0 {
            let value = path.iter().try_fold(&arguments, |value, name| value.as_object()?.get(&**name));
            if let Some(value) = value.and_then(text).and_then(|text| encode(&text)) {
                map.insert(header, value);
            }
        }
    }

    /// The first header that does not say what its argument does, or says it although there is none.
    // MCP 2026-07-28, Streamable HTTP, "Server Behavior for Custom Headers": a server MUST compare them, decoded.
    pub fn disagrees(&self, headers: &HeaderMap, arguments: Option<&str>) -> Option<&HeaderName> {
        let mut expected = HeaderMap::new();
        self.put(&mut expected, arguments.unwrap_or("{}"));
        let read = |value: &HeaderValue| value.to_str().ok().and_then(decode).map(Cow::into_owned);
        let differs = |name: &&HeaderName| {
            let mut said = headers.get_all(*name).iter();
            let differs = match (said.next(), expected.get(*name)) {
                (None, None) => false,
                (Some(said), Some(expected)) => read(said).is_none_or(|said| Some(said) != read(expected)),
                (Some(_), None) | (None, Some(_)) => true,
            };
            differs || said.next().is_some()
        };
        self.names().find(differs)
    }

    fn walk<'a>(&mut self, value: &'a Value, place: Place, path: &mut Vec<&'a str>) -> Result<(), Invalid> {
        let schema = match value {
            Value::Object(schema) => schema,
            Value::Array(several) => {
                return several.iter().try_for_each(|one| self.walk(one, Place::Elsewhere, path));
            }
            _ => return Ok(()),
        };
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.note(annotation, schema, place, path)?;
        }
        for (keyword, below) in schema {
            match (keyword.as_str(), below) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let place = match place {
                            Place::Root | Place::Property => Place::Property,
                            Place::Elsewhere => Place::Elsewhere,
                        };
                        path.push(name);
                        self.walk(property, place, path)?;
                        path.pop();
                    }
                }
                // The names in here are names, not keywords.
                (
                    "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                    Value::Object(named),
                ) => {
                    named.values().try_for_each(|one| self.walk(one, Place::Elsewhere, path))?;
                }
                // What is in here is data, not schema.
                ("default" | "const" | "enum" | "examples" | "example", _) => {}
                (_, below) => self.walk(below, Place::Elsewhere, path)?,
            }
        }
        Ok(())
    }

    fn note(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        place: Place,
        path: &[&str],
    ) -> Result<(), Invalid> {
        let shown = || Redacted::head(annotation.as_str().unwrap_or("(no string)"), NAME_LIMIT);
        let name = annotation
            .as_str()
            .filter(|name| !name.is_empty() && name.len() <= NAME_LIMIT)
            .ok_or_else(|| Invalid::Name(shown()))?;
        // A header name of this type is a token, and in lower case.
        let header = HeaderName::try_from(format!("mcp-param-{name}")).map_err(|_| Invalid::Name(shown()))?;
        if !matches!(place, Place::Property) {
            return Err(Invalid::Place(shown()));
        }
        if !is_primitive(schema.get("type")) {
            return Err(Invalid::Type(shown()));
        }
        if self.0.iter().any(|mirror| mirror.header == header) {
            return Err(Invalid::Twice(shown()));
        }
        if self.0.len() >= PARAMS_MOST {
            return Err(Invalid::TooMany);
        }
        self.0.push(Mirror { header, path: path.iter().copied().map(Box::from).collect() });
        Ok(())
    }
}

/// `null` beside a permitted type is fine: a parameter that is null has no header.
fn is_primitive(kind: Option<&Value>) -> bool {
    let permitted = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(permitted) && kinds.iter().all(|kind| permitted(kind) || kind == "null")
        }
        Some(kind) => permitted(kind),
        None => false,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Number(number) => {
            let whole = number.as_i64().or_else(|| whole(number.as_f64()?))?;
            SAFE.contains(&whole).then(|| whole.to_string())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `42.0` is an integer too.
fn whole(number: f64) -> Option<i64> {
    // Exact: a whole number below 2^53 prints as its digits.
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_991.0)
        .then(|| format!("{number:.0}").parse().ok())
        .flatten()
}

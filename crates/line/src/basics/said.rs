//! What a server said of itself that agents are told: read once for each greeting, however many agents come.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use linetender_wire::handshake::{Era, Greeting};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a server declares beyond the protocol is not looked at if its capabilities are longer.
const LONGEST: usize = 64 * 1024;

/// What a server declares beyond the lists and methods that every revision has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Declared {
    /// The era in which it was greeted.
    pub era: Era,
    /// Extensions, by their names.
    pub extensions: Map<String, Value>,
    /// The same, where servers declared them before there was a place for it.
    pub experimental: Map<String, Value>,
    /// What it says of tasks (MCP 2025-11-25).
    pub tasks: Option<Value>,
}

/// The greeting that was read last, and what was in it.
#[derive(Debug, Default)]
pub(crate) struct Said(Mutex<(Weak<Greeting>, Read)>);

#[derive(Clone, Debug, Default)]
struct Read {
    instructions: Option<Arc<str>>,
    declared: Option<Arc<Declared>>,
}

#[derive(Deserialize)]
struct Initialized<'a> {
    instructions: Option<String>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    extensions: Value,
    experimental: Value,
    tasks: Option<Value>,
}

impl Said {
    /// How to use it.
    pub(crate) fn instructions(&self, greeting: &Arc<Greeting>) -> Option<Arc<str>> {
        self.read(greeting).instructions
    }

    pub(crate) fn declared(&self, greeting: &Arc<Greeting>) -> Option<Arc<Declared>> {
        self.read(greeting).declared
    }

    fn read(&self, greeting: &Arc<Greeting>) -> Read {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.0.upgrade().is_some_and(|of| Arc::ptr_eq(&of, greeting)) {
            *read = (Arc::downgrade(greeting), Read::of(greeting));
        }
        read.1.clone()
    }
}

impl Read {
    fn of(greeting: &Greeting) -> Self {
        let Ok(said) = serde_json::from_str::<Initialized<'_>>(&greeting.result) else {
            return Self::default();
        };
        let capabilities = said.capabilities.filter(|all| all.get().len() <= LONGEST);
        let all: Option<Capabilities> = capabilities.and_then(|all| serde_json::from_str(all.get()).ok());
        let object = |value| if let Value::Object(object) = value { object } else { Map::new() };
        let declared = all.map(|all| Declared {
            era: greeting.era,
            extensions: object(all.extensions),
            experimental: object(all.experimental),
            tasks: all.tasks.filter(Value::is_object),
        });
        Self { instructions: said.instructions.map(Into::into), declared: declared.map(Arc::new) }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Said};
    use linetender_wire::handshake::{Era, Greeting};
    use serde_json::json;
    use std::sync::Arc;

    fn greeting(result: &str) -> Arc<Greeting> {
        Arc::new(Greeting { era: Era::Legacy, result: result.into() })
    }

    #[test]
    fn what_is_not_said_well_is_not_said() {
        let said = Said::default();
        let all = r#"{"instructions":"i","capabilities":{"extensions":{"a/b":{}},"experimental":7,"tasks":{"list":{}}}}"#;
        let told = said.declared(&greeting(all)).unwrap();
        assert_eq!(told.extensions["a/b"], json!({}));
        assert!(told.experimental.is_empty() && told.tasks == Some(json!({ "list": {} })));
        assert_eq!(said.instructions(&greeting(all)).as_deref(), Some("i"));
        for none in ["7", "{}", r#"{"capabilities":7}"#] {
            assert_eq!(said.declared(&greeting(none)), None, "{none}");
        }
        let long = format!(r#"{{"instructions":"i","capabilities":{{"x":"{}"}}}}"#, "x".repeat(LONGEST));
        assert_eq!(said.declared(&greeting(&long)), None);
        assert_eq!(said.instructions(&greeting(&long)).as_deref(), Some("i"));
    }
}

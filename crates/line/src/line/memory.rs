//! What is known of a server from an earlier time, so that an agent need not wait for it to start. Where it is kept is not decided
//! here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use linetender_wire::handshake::{Era, Greeting};
use serde_json::value::RawValue;

use crate::basics::kind::Kind;
use crate::catalogue::Catalogue;
use crate::server::Server;

/// A memory of servers.
pub trait Memory: fmt::Debug + Send + Sync {
    /// What is known of this server, for agents that introduce themselves in this era with these params: a server may offer other
    /// things to an agent that can do other things.
    fn page(&self, server: &Server, era: Era, introduction: Option<&str>) -> Arc<dyn Page>;
}

/// What is known of one server. [`recall`](Self::recall) is waited for when an agent is greeted; the others are called on a thread of
/// their own, and may block.
pub trait Page: fmt::Debug + Send + Sync {
    /// What it says.
    fn recall(&self) -> Option<Remembered>;

    /// Keeps this in place of what was known.
    fn keep(&self, what: &Remembered);

    /// The server did not start.
    fn failed(&self);

    /// Nothing is known any more.
    fn forget(&self);
}

/// What a server said of itself, and its lists.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub(crate) greeting: Greeting,
    pub(crate) catalogue: Catalogue,
}

impl Remembered {
    /// What a server said when it was greeted in this era, raw, and its lists. `None` if no server can have said that.
    pub fn new(era: Era, greeting: &str, lists: BTreeMap<Kind, Vec<Box<RawValue>>>) -> Option<Self> {
        let result = Box::<str>::from(greeting);
        Greeting::can_be(era, &result)
            .then(|| Self { greeting: Greeting { era, result }, catalogue: Catalogue::remembered(lists) })
    }

    /// The era in which it was greeted.
    pub fn era(&self) -> Era {
        self.greeting.era
    }

    /// What it said then, raw.
    pub fn greeting(&self) -> &str {
        &self.greeting.result
    }

    /// Its lists, raw.
    pub fn lists(&self) -> BTreeMap<Kind, Vec<Box<RawValue>>> {
        self.catalogue.to_remember()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::{Era, Kind, Remembered};

    #[test]
    fn what_is_remembered_makes_no_tool_safe() {
        let tool = r#"{"name":"echo","annotations":{"readOnlyHint":true}}"#.to_owned();
        let lists = BTreeMap::from([(Kind::Tools, vec![RawValue::from_string(tool).unwrap()])]);
        let greeting = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#;
        let known = Remembered::new(Era::Legacy, greeting, lists).unwrap();
        assert_eq!(known.catalogue.list(Kind::Tools).count(), 1);
        assert!(!known.catalogue.declares_safe("echo"));
        assert!(Remembered::new(Era::Legacy, "[]", BTreeMap::new()).is_none(), "no server says that");
    }
}

//! Tools that a server has and that are not offered, for the log.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use linetender_wire::visible;

/// How many of them are named.
const NAMED: usize = 8;

/// How much of a name is kept: a server decides how long it is.
const NAME: usize = 100;

/// Which tools, and why. Two are equal if they are the same tools.
#[derive(Clone, Debug, Default)]
pub(super) struct Hidden {
    tools: usize,
    /// Of all names, in their order.
    hash: u64,
    /// The first of them, fit to be logged.
    named: Vec<(String, String)>,
}

impl Hidden {
    pub(super) fn add(&mut self, tool: &str, why: &impl fmt::Display) {
        let mut hasher = DefaultHasher::new();
        (self.hash, tool).hash(&mut hasher);
        self.hash = hasher.finish();
        self.tools += 1;
        if self.named.len() < NAMED {
            self.named.push((visible::cut(tool, NAME), visible::cut(&why.to_string(), 2 * NAME)));
        }
    }

    pub(super) fn warn(&self, server: &str) {
        for (tool, invalid) in &self.named {
            let (tool, invalid) = (tool.as_str(), invalid.as_str());
            tracing::warn!(server, tool, invalid, "tool hidden: invalid x-mcp-header annotation");
        }
        if self.tools > NAMED {
            tracing::warn!(server, tools = self.tools, "tools hidden: invalid x-mcp-header annotations");
        }
    }
}

impl PartialEq for Hidden {
    fn eq(&self, other: &Self) -> bool {
        (self.tools, self.hash) == (other.tools, other.hash)
    }
}

//! What an agent is told when a context that it used was replaced.

use std::fmt;
use std::time::SystemTime;

use linetender_wire::Redacted;
use linetender_wire::wall::rfc3339;

/// Maximum number of tools that a notice names, and the longest name.
const TOOLS: usize = 8;
const NAME: usize = 80;

/// The loss of what a server kept in memory for an agent: a process or a session that the agent had used was replaced.
#[derive(Clone, Eq, PartialEq)]
#[non_exhaustive]
pub struct ContextLoss {
    /// Why the server was replaced.
    pub cause: String,
    /// When that was seen.
    pub at: SystemTime,
    /// The agent's tools that were run in the new process or session since. Of many, the first.
    pub since: Vec<String>,
}

impl ContextLoss {
    pub(crate) const fn new(cause: String, at: SystemTime) -> Self {
        Self { cause, at, since: Vec::new() }
    }

    /// The agent ran this tool in the new process or session.
    pub(crate) fn ran(&mut self, tool: &str) {
        let tool = Redacted::head(tool, NAME).to_string();
        if self.since.len() < TOOLS && !self.since.contains(&tool) {
            self.since.push(tool);
        }
    }

    /// What was lost and what to do, for a model that knows why. `then` is what comes after the setup.
    pub(crate) fn for_model(&self, then: &str) -> String {
        let ran = match self.since.as_slice() {
            [] => String::new(),
            tools => format!(" Run since in the new one: {}.", tools.join(", ")),
        };
        format!(
            "The server was replaced at {}; what it kept in memory (working folder, selected database, open pages …) is \
             gone. If this call needs it, set it up first{then}.{ran}",
            rfc3339(self.at)
        )
    }
}

impl fmt::Display for ContextLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server was replaced ({})", self.cause)
    }
}

/// Without the time, so that a world that is played again prints the same.
impl fmt::Debug for ContextLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextLoss")
            .field("cause", &self.cause)
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::{ContextLoss, TOOLS};

    #[test]
    fn a_notice_names_each_tool_once_and_not_too_many() {
        let mut loss = ContextLoss::new("it exited".to_owned(), SystemTime::UNIX_EPOCH);
        assert!(!loss.for_model("").contains("Run since"));
        for number in 0..100 {
            loss.ran("look");
            loss.ran(&format!("{number}{}", "x".repeat(1000)));
        }
        let text = loss.for_model("");
        assert!(text.contains("replaced at 1970-01-01T00:00:00.000Z; what"), "{text}");
        assert!(
            loss.since.len() == TOOLS && text.matches("look").count() == 1 && text.len() < 1200,
            "{text}"
        );
    }
}

//! How an agent is told that a tool call failed: agents differ in what they do with the two forms that MCP has.

/// How a session tells its agent of a tool call that the server could not answer. The words are the same in both forms.
///
/// Everything but a tool call fails with a JSON-RPC error, whatever is chosen here.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ToolErrors {
    /// As a result with `isError`, for the model to read: every agent that was tried shows it to its model, and goes on.
    #[default]
    Result,
    /// As a JSON-RPC error, for a program to read. Of agents, some keep its words from the model, some add "try again", and
    /// one ends its run.
    Error,
}

//! What came back: the server's own message for sessions, and a result for programs.

use bytes::Bytes;
use linetender_wire::frame::{Frame, Message, Outcome};
use linetender_wire::handshake::Era;
use serde::Deserialize;

/// A result, as the server spelt it.
///
/// A JSON-RPC error is never one: it is a [`CallError`](crate::CallError) of the kind
/// [`ErrorAnswer`](crate::CallErrorKind::ErrorAnswer). A tool that ran and failed is a result, by the rules of MCP: see
/// [`is_tool_error`](Self::is_tool_error).
///
/// ```
/// # fn example(answer: &linetender::Answer) -> Result<(), serde_json::Error> {
/// #[derive(serde::Deserialize)]
/// struct Sum {
///     sum: i64,
/// }
/// println!("{}", answer.text());
/// let Sum { sum } = answer.parse_structured()?;
/// # let _ = sum;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Answer(Reply);

/// The members of a tool's result that are looked at here.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolResult<'a> {
    is_error: bool,
    #[serde(borrow)]
    content: Vec<Content<'a>>,
    #[serde(borrow)]
    structured_content: Option<&'a serde_json::value::RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<std::borrow::Cow<'a, str>>,
}

impl Answer {
    /// The reply, if it is a result; else the raw JSON-RPC error.
    pub(crate) fn of(reply: Reply) -> Result<Self, Reply> {
        if reply.error().is_some() { Err(reply) } else { Ok(Self(reply)) }
    }

    /// The result, as raw JSON.
    pub fn raw(&self) -> &str {
        self.0.result()
    }

    /// The result as a type of yours; it may borrow from the answer.
    ///
    /// # Errors
    /// If the result does not have that form.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.raw())
    }

    /// A tool's structured content as a type of yours.
    ///
    /// # Errors
    /// If there is none, or it does not have that form.
    pub fn parse_structured<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        let result: ToolResult<'a> = self.parse()?;
        serde_json::from_str(result.structured_content.map_or("null", |content| content.get()))
    }

    /// Whether it is the result of a tool that ran and failed (`isError`).
    pub fn is_tool_error(&self) -> bool {
        self.parse::<ToolResult<'_>>().is_ok_and(|result| result.is_error)
    }

    /// The text of a tool's result: its text contents, one per line. Pictures, sounds and resources are left out.
    pub fn text(&self) -> String {
        let result: ToolResult<'_> = self.parse().unwrap_or_default();
        let texts: Vec<_> = result.content.into_iter().filter_map(|content| content.text).collect();
        texts.join("\n")
    }
}

/// The server's answer, be it an error, as it was spelt.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    frame: Frame,
    era: Era,
}

impl Reply {
    pub(crate) const fn new(frame: Frame, era: Era) -> Self {
        Self { frame, era }
    }

    /// Whether a modern server gave it.
    pub(crate) fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }

    /// The result, raw; `null` if it is an error.
    pub(crate) fn result(&self) -> &str {
        match self.frame.message() {
            Message::Response { outcome: Some((Outcome::Result, result)), .. } => result,
            _ => "null",
        }
    }

    /// The JSON-RPC error, raw, if it is one.
    pub(crate) fn error(&self) -> Option<&str> {
        match self.frame.message() {
            Message::Response { outcome: Some((Outcome::Error, error)), .. } => Some(error),
            _ => None,
        }
    }

    /// The whole message with another id in place of ours, for a room that reads it.
    pub(crate) fn framed(&self, id: &str) -> Frame {
        self.frame.with_id(id)
    }

    /// The same without a copy of a message that is this long.
    pub(crate) fn around_id(&self, id: &str, long: usize) -> Option<([Bytes; 3], Frame)> {
        let pieces = if self.frame.text().len() < long { None } else { self.frame.around_id(id) };
        pieces.map(|pieces| (pieces, self.frame.clone()))
    }
}

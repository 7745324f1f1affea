//! What came back: the server's own message for sessions, and a result for programs.

use bytes::Bytes;
use linetender_core::ServerRefusal;
use linetender_wire::frame::{Frame, Members, Message, Outcome};
use linetender_wire::handshake::Era;
use serde::Deserialize;
use serde_json::value::RawValue;

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
        let content = Members::of(self.raw()).and_then(|result| result.get("structuredContent"));
        let none = || serde::de::Error::custom("the result has no structuredContent");
        serde_json::from_str(content.ok_or_else(none)?.get())
    }

    /// Whether it is the result of a tool that ran and failed (`isError`).
    pub fn is_tool_error(&self) -> bool {
        let is_error = Members::of(self.raw()).and_then(|result| result.get("isError"));
        is_error.is_some_and(|is_error| is_error.get() == "true")
    }

    /// The text of a tool's result: its text contents, one per line. Pictures, sounds and resources are left out.
    pub fn text(&self) -> String {
        let content = Members::of(self.raw()).and_then(|result| result.get("content"));
        let items = content.and_then(|content| serde_json::from_str::<Vec<&RawValue>>(content.get()).ok());
        let texts = items.iter().flatten().filter_map(|item| Members::of(item.get())?.string("text"));
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The server's answer, be it an error, as it was spelt.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    frame: Frame,
    era: Era,
    /// How often the call was sent.
    pub(crate) attempts: u32,
    /// Set if it is the server's own error about a call that it says it did not execute.
    pub(crate) refusal: Option<ServerRefusal>,
}

impl Reply {
    pub(crate) const fn new(frame: Frame, era: Era) -> Self {
        Self { frame, era, attempts: 1, refusal: None }
    }

    /// The same as the server's words for this refusal.
    pub(crate) fn refused(self, refusal: ServerRefusal) -> Self {
        Self { refusal: Some(refusal), ..self }
    }

    /// Whether a modern server gave it.
    pub(crate) fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }

    /// Bytes of the message.
    pub(crate) fn len(&self) -> usize {
        self.frame.text().len()
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

#[cfg(test)]
mod tests {
    use super::{Answer, Reply};
    use linetender_wire::frame::{Limits, parse};
    use linetender_wire::handshake::Era;

    fn answer(result: &str) -> Answer {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let frame = parse(&text.into(), Limits { length: 1000, depth: 16 }).unwrap();
        Answer::of(Reply::new(frame, Era::Legacy)).unwrap()
    }

    #[test]
    fn what_is_spelt_oddly_hides_nothing_else() {
        for odd in ["null", "7", r#"[{"type":"text","text":7}]"#, "[]"] {
            let answer = answer(&format!(r#"{{"isError":true,"content":{odd}}}"#));
            assert!(answer.is_tool_error() && answer.text().is_empty(), "{odd}");
        }
        assert!(!answer(r#"{"isError":"no"}"#).is_tool_error());
        assert!(answer(r#"{"content":[],"content":[],"isErr\u006fr":true}"#).is_tool_error());
        let some = answer(r#"{"content":[{"text":"a"},7,{"type":"image"},{"text":"\u0062"}]}"#);
        assert_eq!(some.text(), "a\nb");
    }

    #[test]
    fn structured_content_that_is_not_there_is_an_error() {
        assert!(answer(r#"{"content":[]}"#).parse_structured::<Option<u8>>().is_err());
        assert_eq!(
            answer(r#"{"structuredContent":{"a":1}}"#).parse_structured::<serde_json::Value>().unwrap()["a"],
            1
        );
    }
}

//! What is written of one call.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use linetender_wire::visible;
use linetender_wire::wall::{rfc3339, wall_clock};

use super::chain::{Body, sha256};

/// The most bytes of each name and text. What is longer is cut, and ends with `…`.
pub const LONGEST_NAME: usize = 512;

/// The most bytes that arguments take in a line. Of longer ones only the beginning is written, as text.
pub const LONGEST_ARGUMENTS: usize = 32 * 1024;

/// What a record takes beside its texts, and its line beside those.
const RECORD: usize = 960;

/// One call, as it is written. Build it with `..Record::default()`: members may be added.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// When it ended: RFC 3339, milliseconds, UTC. See [`now`](Self::now).
    pub at: String,
    /// Its number in this process.
    pub call: u64,
    /// How the agent is connected.
    pub door: String,
    /// Who called, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Server name.
    pub server: String,
    /// The connection to the server that it was sent on, if it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Protocol era that the agent speaks.
    pub era: String,
    /// MCP method.
    pub method: String,
    /// Tool name, as the server calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments, or what is written in their place.
    #[serde(flatten)]
    pub arguments: Arguments,
    /// What became of it.
    pub verdict: Verdict,
    /// What linetender counted, if it was not executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_executed_reason: Option<&'static str>,
    /// What the server answered, if it refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_reason: Option<&'static str>,
    /// Why it is not known whether it was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_reason: Option<&'static str>,
    /// How often linetender sent it. 0 if it was not sent.
    pub attempts: u32,
    /// Why linetender sent it again, if it did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<&'static str>,
    /// How far it had come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// JSON-RPC error code of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<i64>,
    /// Size of the request.
    pub request_bytes: u64,
    /// Size of the response.
    pub response_bytes: u64,
    /// Milliseconds in the queue, until it was its turn.
    pub queue_ms: u64,
    /// Milliseconds that it waited for a connection to the server.
    pub line_ms: u64,
    /// Milliseconds from sending it to the server's response, or to the end of the connection.
    pub server_ms: u64,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Verdict {
    /// The server responded.
    #[serde(rename = "answered")]
    Answered,
    /// The server responded, and its result says that the tool failed.
    #[serde(rename = "tool error")]
    ToolError,
    /// The server, or a proxy before it, said that it did not execute it.
    #[serde(rename = "refused")]
    Refused,
    /// linetender counted that the server cannot have executed it.
    #[serde(rename = "not executed")]
    NotExecuted,
    /// It may have been executed.
    #[default]
    #[serde(rename = "unknown")]
    Unknown,
    /// The agent cancelled it; it may have been executed.
    #[serde(rename = "cancelled")]
    Cancelled,
}

/// The arguments of a call, as they are written.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Arguments {
    #[serde(rename = "arguments_sha256", skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(rename = "arguments_bytes", skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(rename = "arguments", skip_serializing_if = "Option::is_none")]
    whole: Option<Box<RawValue>>,
    /// Their beginning, if they are too long or no JSON.
    #[serde(rename = "arguments_cut", skip_serializing_if = "Option::is_none")]
    cut: Option<String>,
}

impl Arguments {
    /// The SHA-256 of the bytes that were sent, and their number.
    pub fn hash(sent: &[u8]) -> Self {
        Self { sha256: Some(sha256(sent)), bytes: Some(sent.len() as u64), ..Self::default() }
    }

    /// The same, and the arguments themselves; of long ones, their beginning.
    pub fn full(sent: &[u8]) -> Self {
        // Of a message of megabytes, no more is looked at than there is room for.
        let text = String::from_utf8_lossy(&sent[..sent.len().min(LONGEST_ARGUMENTS)]);
        // Inside of its strings JSON has no line breaks, and between its tokens a space is as good.
        let text = text.replace(['\n', '\r'], " ");
        let hash = Self::hash(sent);
        if sent.len() <= LONGEST_ARGUMENTS
            && visible::json(&text).len() <= LONGEST_ARGUMENTS
            && let Ok(whole) = RawValue::from_string(text.clone())
        {
            return Self { whole: Some(whole), ..hash };
        }
        Self { cut: Some(beginning(&text)), ..hash }
    }
}

/// As much as there is room for, spelt as JSON text.
fn beginning(text: &str) -> String {
    let mut most = LONGEST_ARGUMENTS / 2;
    loop {
        let cut = visible::first_bytes(text, most);
        let spelt = serde_json::to_string(cut).unwrap_or_default();
        if visible::json(&spelt).len() <= LONGEST_ARGUMENTS {
            return cut.to_owned();
        }
        most /= 2;
    }
}

impl Record {
    /// The time, as [`at`](Self::at) has it.
    pub fn now() -> String {
        rfc3339(wall_clock())
    }

    /// As members of a line.
    pub(super) fn body(&self) -> Body {
        #[derive(Serialize)]
        struct Call<'a> {
            what: &'static str,
            #[serde(flatten)]
            record: &'a Record,
        }
        Body::of(&Call { what: "call", record: self })
    }

    /// About what it takes in memory, and its line in the file.
    pub(super) fn weight(&self) -> usize {
        let Arguments { sha256, whole, cut, .. } = &self.arguments;
        let texts = [&self.at, &self.door, &self.server, &self.era, &self.method].map(String::len);
        let known = [&self.principal, &self.tool, &self.phase, sha256, cut];
        let known = known.map(|text| text.as_ref().map_or(0, String::len));
        let whole = whole.as_ref().map_or(0, |whole| whole.get().len());
        RECORD + texts.iter().chain(&known).sum::<usize>() + whole
    }

    /// Cuts what is too long: no text in it makes its line too long, or is kept until it is written.
    pub(super) fn shorten(&mut self) {
        for text in [&mut self.at, &mut self.door, &mut self.server, &mut self.era, &mut self.method] {
            shorten(text);
        }
        let known = [&mut self.principal, &mut self.tool, &mut self.phase];
        known.into_iter().flatten().for_each(shorten);
    }
}

fn shorten(text: &mut String) {
    if text.len() > LONGEST_NAME {
        let kept = visible::first_bytes(text, LONGEST_NAME).len();
        text.truncate(kept);
        text.push('…');
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::{LONGEST_LINE, Link, Tip};
    use super::{Arguments, Record, Verdict};
    use serde_json::{Value, json};

    fn line(record: Record) -> String {
        let (mut text, mut record) = (String::new(), record);
        record.shorten();
        Tip::before_all().add(&record.body(), &mut text);
        text
    }

    #[test]
    fn a_call_is_one_line_whatever_is_in_it() {
        let nasty = "a\n\u{202e}\"".to_owned();
        let arguments = Arguments::full("{\n\r \"k\\n\": \"\u{2028}\u{7f}\" }".as_bytes());
        let record = Record {
            server: nasty.clone(),
            tool: Some(nasty.clone()),
            arguments,
            verdict: Verdict::ToolError,
            ..Record::default()
        };
        let line = line(record);
        assert_eq!(line.matches(['\n', '\r', '\u{2028}', '\u{202e}', '\u{7f}']).count(), 1, "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&read["server"], &read["tool"]), (&json!(nasty), &json!(nasty)));
        assert_eq!(read["arguments"], json!({ "k\n": "\u{2028}\u{7f}" }));
        assert_eq!((&read["what"], &read["verdict"]), (&json!("call"), &json!("tool error")));
        assert_eq!(read["arguments_bytes"], 19);
        assert!(Link::read(line.as_bytes()).unwrap().follows(&Tip::before_all()));
    }

    #[test]
    fn no_text_makes_a_line_too_long() {
        for text in ["x", "\u{7f}", "\"", "\u{e0001}", "\u{1}"].map(|one| one.repeat(300_000)) {
            let json = serde_json::to_string(&json!({ "text": text })).unwrap();
            for arguments in [Arguments::full(json.as_bytes()), Arguments::full(text.as_bytes())] {
                let many = || Some(text.clone());
                let line = line(Record {
                    at: text.clone(),
                    door: text.clone(),
                    server: text.clone(),
                    era: text.clone(),
                    method: text.clone(),
                    principal: many(),
                    tool: many(),
                    phase: many(),
                    arguments,
                    ..Record::default()
                });
                assert!(line.len() <= LONGEST_LINE, "{}", line.len());
                let read: Value = serde_json::from_str(&line).unwrap();
                assert!(read["arguments_cut"].as_str().unwrap().len() > 1000);
                assert_eq!(read["arguments"], Value::Null);
            }
        }
    }

    #[test]
    fn arguments_are_a_hash_unless_they_are_asked_for() {
        let read = |arguments| -> Value {
            serde_json::from_str(&line(Record { arguments, ..Record::default() })).unwrap()
        };
        let hash = read(Arguments::hash(b"{}"));
        assert_eq!(
            hash["arguments_sha256"],
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        assert_eq!(hash["arguments"], Value::Null);
        assert_eq!(read(Arguments::full(b"{}"))["arguments"], json!({}));
        assert_eq!(read(Arguments::default())["arguments_sha256"], Value::Null);
    }
}

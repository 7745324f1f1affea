//! What the agent hears, as `rmcp` models it; and what becomes of the rest.
//!
//! `rmcp` waits for ever for an answer that its transport could not parse, so nothing with an id may be dropped here.

use bytes::Bytes;
use linetender::{Code, Delivery, Evidence};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::json;
use serde_json::value::RawValue;

/// How much of a parser's complaint is passed on.
const MOST_SAID: usize = 300;

/// What a message is to the client.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Something that it can read.
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// A question that it cannot read, and what the server is told instead of its answer.
    Refused(Bytes),
    /// Something that nobody waits for.
    Nothing,
}

/// Only as much of a message as says whom it concerns: all else may be what could not be read.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
}

/// Reads one message from the server of this name.
pub(crate) fn read(text: &[u8], server: &str) -> Heard {
    let error = match serde_json::from_slice(text) {
        Ok(message) => return Heard::Message(Box::new(message)),
        Err(error) => error.to_string(),
    };
    let envelope = serde_json::from_slice::<Envelope<'_>>(text).ok();
    let id = envelope.as_ref().and_then(|envelope| envelope.id);
    let id: Option<RequestId> = id.and_then(|id| serde_json::from_str(id.get()).ok());
    match (id, envelope.and_then(|envelope| envelope.method)) {
        (Some(id), None) => {
            let error = unread("response", server, Delivery::Answered, &error);
            Heard::Message(Box::new(RxJsonRpcMessage::<RoleClient>::error(error, Some(id))))
        }
        (Some(id), Some(method)) => {
            let what = format!("request {}", method.get());
            let error = unread(&what, server, Delivery::NotExecuted(Evidence::Queued), &error);
            let refusal = TxJsonRpcMessage::<RoleClient>::error(error, Some(id));
            serde_json::to_vec(&refusal).map_or(Heard::Nothing, |text| Heard::Refused(text.into()))
        }
        (None, method) => {
            let method = method.map_or("", RawValue::get);
            tracing::debug!(server, method, error, "dropped a message that rmcp cannot parse");
            Heard::Nothing
        }
    }
}

/// Names the five things that every error names.
fn unread(what: &str, server: &str, delivery: Delivery, error: &str) -> ErrorData {
    let why: String = error.chars().take(MOST_SAID).collect();
    let cause = format!("rmcp cannot parse the server's {what}: {why}");
    let mut data = json!({
        "source": "linetender",
        "server": server,
        "phase": linetender::Phase::InLinetender.name(),
        "cause": &cause,
        "delivery": delivery.name(),
        "nextTry": "now",
    });
    if let Some(reason) = delivery.reason() {
        data["reason"] = reason.into();
    }
    ErrorData::new(
        ErrorCode(Code::BadAnswer.number()),
        format!("{server}: {cause} (reading; {}; next try: now)", delivery.name()),
        Some(data),
    )
}

#[cfg(test)]
mod tests {
    use super::{Heard, read};
    use rmcp::model::{JsonRpcMessage, RequestId};
    use serde_json::Value;

    #[test]
    fn what_rmcp_knows_passes() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"of a shape":"of its own"}}"#,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        ] {
            assert!(matches!(read(text.as_bytes(), "s"), Heard::Message(_)), "{text}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_error_for_its_id() {
        for answer in [
            r#""result":{"n":1e999}"#,
            r#""result":{"text":"half a pair: \ud800"}"#,
            r#""error":{"code":"a word","message":"no"}"#,
            r#""error":{"code":99999999999,"message":"no"}"#,
            r#""error":"went wrong""#,
            r#""nothing":"at all""#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":7,{answer}}}"#);
            let Heard::Message(message) = read(text.as_bytes(), "clock") else { panic!("silence: {text}") };
            let JsonRpcMessage::Error(told) = *message else { panic!("{message:?}") };
            assert_eq!(told.id, Some(RequestId::Number(7)));
            assert!(!(-32768..=-32000).contains(&told.error.code.0));
            assert!(
                told.error.message.contains("clock: rmcp cannot parse the server's response: "),
                "{told:?}"
            );
            let data = told.error.data.unwrap();
            assert_eq!((&data["source"], &data["delivery"]), (&"linetender".into(), &"answered".into()));
        }
    }

    #[test]
    fn a_question_that_cannot_be_read_is_refused() {
        let text = r#"{"jsonrpc":"2.0","id":3,"method":"roots/list","params":{"n":1e999}}"#;
        let Heard::Refused(told) = read(text.as_bytes(), "s") else { panic!("not refused") };
        let told: Value = serde_json::from_slice(&told).unwrap();
        assert_eq!((&told["id"], &told["error"]["data"]["source"]), (&3.into(), &"linetender".into()));
        let data = &told["error"]["data"];
        assert_eq!((&data["delivery"], &data["reason"]), (&"not executed".into(), &"not-sent".into()));
        assert!(told["error"]["message"].as_str().unwrap().contains(r#"request "roots/list""#), "{told}");
    }

    #[test]
    fn what_nobody_waits_for_is_dropped() {
        for text in
            [r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1e999}}"#, "[]", "no JSON", ""]
        {
            assert!(matches!(read(text.as_bytes(), "s"), Heard::Nothing), "{text}");
        }
    }
}

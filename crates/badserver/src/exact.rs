//! A tool that keeps to the letter: it writes down the params as they were spelt, and answers with the text of a file.
//!
//! Everything else here reads JSON into values, and a value no longer knows how it was spelt.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::itself;

type Members<'a> = HashMap<String, &'a RawValue>;

/// The whole answer to a call of the tool `exact`; `None` if the message is something else.
///
/// Its arguments are paths: `heard` is where the params are written, `answer` has the result, and `then` has the result
/// for whoever comes back with `inputResponses`. With `dies` the server kills itself without an answer, unless there is a
/// file of that name, which it leaves behind. With `spread` the envelope has line breaks too.
pub(crate) fn answer(message: &str) -> Option<String> {
    // Nearly all messages are none of these, and need not be read twice.
    if !message.contains(r#""exact""#) {
        return None;
    }
    let message: Members<'_> = serde_json::from_str(message).ok()?;
    let params = *message.get("params")?;
    let members: Members<'_> = serde_json::from_str(params.get()).ok()?;
    if members.get("name")?.get() != r#""exact""# {
        return None;
    }
    let arguments: Members<'_> = serde_json::from_str(members.get("arguments")?.get()).ok()?;
    let path = |name: &str| serde_json::from_str::<String>(arguments.get(name)?.get()).ok();
    if let Some(heard) = path("heard") {
        std::fs::write(heard, params.get()).ok()?;
    }
    if let Some(mark) = path("dies").filter(|mark| !std::path::Path::new(mark).exists()) {
        std::fs::write(mark, "").ok()?;
        itself::kill();
    }
    let asked_again = members.contains_key("inputResponses");
    let result = std::fs::read_to_string(path(if asked_again { "then" } else { "answer" })?).ok()?;
    let id = message.get("id")?.get();
    Some(if arguments.contains_key("spread") {
        format!("{{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": {id},\n  \"result\": {result}\n}}\n")
    } else {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    })
}

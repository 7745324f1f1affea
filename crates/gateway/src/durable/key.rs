//! The key by which a caller says that two requests are one call, and what is made of it.

use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256};
use linetender_wire::frame::{Members, respell, sole, string};
use serde_json::Value;

use crate::failed::Failed;
use crate::principal::Principal;
use crate::splice::Splice;

/// Where a call has its key, in `_meta`.
const IN_META: &str = "linetender/call";

/// The longest key, in bytes.
const LONGEST: usize = 200;

/// The largest params of a call with a key: they are compared, and kept until the call ends, whoever waits for it.
const PARAMS: usize = 1024 * 1024;

const INVALID_PARAMS: i32 = -32602;

/// Which call it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Identity {
    /// What its record is called: whose it is, of which server and tool, and the caller's key.
    pub(super) name: String,
    /// Whose it is.
    pub(super) who: String,
    /// What else was asked. The same key with something else is a mistake.
    pub(super) arguments: String,
}

/// The key of a call, if it has one.
pub(crate) fn key(params: &str) -> Result<Option<String>, Failed> {
    let refused = |cause: &str| Failed::refused(INVALID_PARAMS, cause, "never");
    let meta = sole(params, "_meta").ok().flatten();
    let value = match meta.map(|meta| sole(meta.get(), IN_META)) {
        None | Some(Ok(None)) => return Ok(None),
        Some(Err(ambiguous)) => return Err(refused(&format!("the call key in `_meta` is {ambiguous}"))),
        Some(Ok(Some(value))) => value,
    };
    match string(value) {
        Some(key) if is_key(&key) => Ok(Some(key.into_owned())),
        _ => Err(refused("the call key (`linetender/call` in `_meta`) must be a string of 1 to 200 bytes")),
    }
}

/// Whether a text can be a key.
fn is_key(key: &str) -> bool {
    (1..=LONGEST).contains(&key.len())
}

/// Params with this key, unless they have one of their own.
pub(crate) fn with_key(params: &str, key: &str) -> String {
    let key = format!(r#""{IN_META}":{}"#, respell(key));
    let meta = sole(params, "_meta").ok().flatten().filter(|meta| Members::of(meta.get()).is_some());
    let (whole, object) = match meta {
        Some(meta) if !matches!(sole(meta.get(), IN_META), Ok(None)) => return params.to_owned(),
        Some(meta) => (Some(meta), meta.get()),
        None => (None, params),
    };
    let member = if whole.is_some() { key } else { format!(r#""_meta":{{{key}}}"#) };
    let rest = object.trim_start().trim_start_matches('{');
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    let made = format!("{{{member}{comma}{rest}");
    match whole {
        Some(meta) => {
            let mut splice = Splice::of(params);
            splice.put_raw(meta, made);
            splice.done().into_owned()
        }
        None => made,
    }
}

impl Identity {
    /// That of a call with this key; or why it cannot have one. The params name the tool as its server does.
    pub(crate) fn of(principal: &Principal, server: &str, key: &str, params: &str) -> Result<Self, Failed> {
        let refused = |cause: &str| Failed::refused(INVALID_PARAMS, cause, "never");
        if params.len() > PARAMS {
            return Err(refused("a call with a key can have 1 MiB of params at most"));
        }
        let tool = Members::of(params).and_then(|members| members.string("name"));
        let tool = tool.ok_or_else(|| refused("the params do not name a tool"))?;
        let mut value: Value =
            serde_json::from_str(params).map_err(|_| refused("the params cannot be compared"))?;
        let (mut arguments, mut round) = (Context::new(&SHA256), Context::new(&SHA256));
        if let Some(members) = value.as_object_mut() {
            // What is in there may be another one each time, and decides nothing.
            members.remove("_meta");
            // MCP 2026-07-28, "Multi Round-Trip Requests": what the server asked back is answered by a call of its own.
            for name in ["inputResponses", "requestState"] {
                feed(&mut round, &members.remove(name).unwrap_or_default());
            }
        }
        feed(&mut arguments, &value);
        let who = who(principal);
        let name = hash(&["call", &who, server, &tool, key, &hex(round)]);
        Ok(Self { name, who, arguments: hex(arguments) })
    }
}

/// Whom a record belongs to.
pub(super) fn who(principal: &Principal) -> String {
    let (kind, realm, own) = principal.identity();
    hash(&["principal", kind, realm, own])
}

/// A hash of these, in this order.
fn hash(parts: &[&str]) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        text(&mut context, part);
    }
    hex(context)
}

fn hex(context: Context) -> String {
    context.finish().as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A text and where it ends.
fn text(context: &mut Context, part: &str) {
    context.update(&(part.len() as u64).to_be_bytes());
    context.update(part.as_bytes());
}

/// A value, however it was spelt and in whatever order its members came. It is no deeper than a message may be.
fn feed(context: &mut Context, value: &Value) {
    match value {
        Value::Null => context.update(b"n"),
        Value::Bool(truth) => context.update(if *truth { b"t" } else { b"f" }),
        Value::Number(number) => {
            context.update(b"#");
            text(context, &number.to_string());
        }
        Value::String(own) => {
            context.update(b"s");
            text(context, own);
        }
        Value::Array(items) => {
            context.update(b"[");
            context.update(&(items.len() as u64).to_be_bytes());
            for item in items {
                feed(context, item);
            }
        }
        Value::Object(members) => {
            context.update(b"{");
            context.update(&(members.len() as u64).to_be_bytes());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in members {
                text(context, name);
                feed(context, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, PARAMS, key, with_key};
    use crate::principal::Principal;

    fn of(uid: u32, server: &str, key: &str, params: &str) -> Identity {
        Identity::of(&Principal::user(uid), server, key, params).unwrap()
    }

    #[test]
    fn a_key_is_a_short_text_in_the_meta() {
        let of = |meta: &str| key(&format!(r#"{{"name":"x","_meta":{meta}}}"#));
        assert_eq!(of(r#"{"linetender/call":"k"}"#).unwrap().as_deref(), Some("k"));
        assert_eq!(of(r#"{"linetender\/call":"k"}"#).unwrap().as_deref(), Some("k"));
        for none in ["{}", "null", r#"{"call":"k"}"#] {
            assert_eq!(of(none).unwrap(), None, "{none}");
        }
        assert_eq!(key(r#"{"linetender/call":"k"}"#).unwrap(), None);
        let long = format!(r#"{{"linetender/call":"{}"}}"#, "k".repeat(201));
        let twice = r#"{"linetender/call":"a","linetender/call":"b"}"#;
        for bad in [r#"{"linetender/call":7}"#, r#"{"linetender/call":""}"#, &long, twice] {
            assert_eq!(of(bad).unwrap_err().code(), -32602, "{bad}");
        }
    }

    #[test]
    fn the_key_of_a_header_is_put_where_there_is_none() {
        for params in [
            r#"{"name":"x"}"#,
            "{}",
            r#"{"name":"x","_meta":{}}"#,
            r#"{"_meta":{"a":1},"name":"x"}"#,
            r#"{ "_meta" : { "a" : [{}] } }"#,
        ] {
            let made = with_key(params, "a\"b");
            assert_eq!(key(&made).unwrap().as_deref(), Some("a\"b"), "{made}");
            let (mut was, mut is): (serde_json::Value, serde_json::Value) =
                (serde_json::from_str(params).unwrap(), serde_json::from_str(&made).unwrap());
            is["_meta"].as_object_mut().unwrap().remove(super::IN_META);
            let (meta, is_meta) = (was["_meta"].take(), is["_meta"].take());
            assert_eq!(
                (was, meta.as_object().cloned().unwrap_or_default()),
                (is, is_meta.as_object().cloned().unwrap_or_default())
            );
        }
        let own = r#"{"_meta":{"linetender/call":"own"}}"#;
        assert_eq!(with_key(own, "other"), own);
    }

    #[test]
    fn a_call_is_the_same_by_whom_it_is_for_its_server_its_tool_and_its_key() {
        let one = of(1, "a", "k", r#"{"name":"x","arguments":{"a":1,"b":[true,null]},"_meta":{"t":1}}"#);
        let alike = of(1, "a", "k", r#"{ "arguments": {"b":[true,null],"\u0061":1}, "name":"x" }"#);
        assert_eq!(one, alike);
        let named = |other: &Identity| other.name == one.name;
        for arguments in [r#"{"a":2,"b":[true,null]}"#, r#"{"a":1,"b":[null,true]}"#, r#"{"a":"1"}"#, "{}"] {
            let other = of(1, "a", "k", &format!(r#"{{"name":"x","arguments":{arguments}}}"#));
            assert!(named(&other) && other.arguments != one.arguments, "{arguments}");
        }
        let params = r#"{"name":"x","arguments":{"a":1,"b":[true,null]}}"#;
        for other in [of(2, "a", "k", params), of(1, "b", "k", params), of(1, "a", "l", params)] {
            assert!(!named(&other));
        }
        assert!(!named(&of(1, "a", "k", r#"{"name":"y"}"#)));
        let round = of(1, "a", "k", r#"{"name":"x","arguments":{"a":1,"b":[true,null]},"requestState":"1"}"#);
        assert!(!named(&round) && round.arguments == one.arguments, "an answer to a question goes on");
        let long = format!(r#"{{"name":"x","arguments":"{}"}}"#, "x".repeat(PARAMS));
        assert!(Identity::of(&Principal::user(1), "a", "k", &long).is_err());
    }
}

//! What a message's params say that decides where it goes: read once, at the door.

use serde_json::value::RawValue;

use super::alike::alike;
use super::members;
use crate::handshake::{CAPABILITIES_IN_META, CLIENT_IN_META, SUBSCRIPTION_IN_META, VERSION_IN_META};

/// The members that decide, as they were spelt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routing<'a> {
    /// The tool or prompt.
    pub name: Option<&'a RawValue>,
    /// The resource.
    pub uri: Option<&'a RawValue>,
    /// The task.
    pub task: Option<&'a RawValue>,
    /// What a completion is about.
    pub reference: Option<&'a RawValue>,
    /// The request that a cancellation is about.
    pub request_id: Option<&'a RawValue>,
    /// The token of a progress notification.
    pub token: Option<&'a RawValue>,
    /// What a request says of itself.
    pub meta: Meta<'a>,
}

/// The same of `_meta`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta<'a> {
    /// By which its sender wants to hear of progress.
    pub token: Option<&'a RawValue>,
    /// The protocol's version.
    pub version: Option<&'a RawValue>,
    /// Who sent it.
    pub client: Option<&'a RawValue>,
    /// What its sender is able to do.
    pub capabilities: Option<&'a RawValue>,
}

/// Why an object's members decide nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Ambiguous {
    /// Two members that somebody might take for the same, so that two readers read two messages.
    #[error("ambiguous: more than one member reads as `{0}`")]
    Twice(&'static str),
    /// A name, an address or a token that is longer than anybody's: others keep these while they wait.
    #[error("a message whose `{0}` is longer than {LONGEST} bytes")]
    TooLong(&'static str),
    /// More members than any message has: each of them would be looked at several times on its way.
    #[error("an object with more than {MEMBERS} members")]
    TooMany,
}

/// The longest name, address or token, as it is spelt.
const LONGEST: usize = 16 * 1024;

/// The most members of an object that decides something. What a tool is given may have any number.
const MEMBERS: usize = 1024;

const TOKEN: &str = "progressToken";
const META: [&str; 5] = [TOKEN, VERSION_IN_META, CLIENT_IN_META, CAPABILITIES_IN_META, SUBSCRIPTION_IN_META];
const REFERENCE: [&str; 3] = ["type", "name", "uri"];

impl<'a> Routing<'a> {
    /// Reads the params of a method. What is no object says nothing. Payload (`arguments`, contents, whatever decides nothing)
    /// is not looked into.
    ///
    /// # Errors
    /// If another reader might read something else.
    pub fn of(method: &str, params: Option<&'a str>) -> Result<Self, Ambiguous> {
        let mut read = Self::default();
        let Some(params) = params else { return Ok(read) };
        let mut meta = None;
        each(params, deciding(method), |name, value| match name {
            "name" => read.name = Some(value),
            "uri" => read.uri = Some(value),
            "taskId" => read.task = Some(value),
            "ref" => read.reference = Some(value),
            "requestId" => read.request_id = Some(value),
            TOKEN => read.token = Some(value),
            _ => meta = Some(value),
        })?;
        if let Some(reference) = read.reference {
            // Which of them counts some readers take from the type, and some from what is there.
            let mut targets = 0;
            each(reference.get(), &REFERENCE, |name, value| {
                targets += usize::from(name != "type" && value.get() != "null");
            })?;
            if targets > 1 {
                return Err(Ambiguous::Twice("ref"));
            }
        }
        if let Some(meta) = meta {
            each(meta.get(), &META, |name, value| match name {
                TOKEN => read.meta.token = Some(value),
                VERSION_IN_META => read.meta.version = Some(value),
                CLIENT_IN_META => read.meta.client = Some(value),
                CAPABILITIES_IN_META => read.meta.capabilities = Some(value),
                _ => {}
            })?;
        }
        Ok(read)
    }
}

/// The members of a method's params that decide something.
fn deciding(method: &str) -> &'static [&'static str] {
    match method {
        "tools/call" | "prompts/get" => &["_meta", "name"],
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => &["_meta", "uri"],
        "completion/complete" => &["_meta", "ref"],
        method if method.starts_with("tasks/") => &["_meta", "taskId"],
        "notifications/cancelled" => &["_meta", "requestId"],
        "notifications/progress" => &["_meta", TOKEN],
        "notifications/resources/updated" => &["_meta", "uri"],
        _ => &["_meta"],
    }
}

/// The one member of an object that anybody might take for this.
///
/// # Errors
/// If there are more.
pub fn sole<'a>(object: &'a str, name: &'static str) -> Result<Option<&'a RawValue>, Ambiguous> {
    let mut sole = None;
    each(object, &[name], |_, value| sole = Some(value))?;
    Ok(sole)
}

/// Hands over each member that has one of these names. What is no object has none.
fn each<'a>(
    object: &'a str,
    names: &[&'static str],
    mut found: impl FnMut(&'static str, &'a RawValue),
) -> Result<(), Ambiguous> {
    let (mut seen, mut ambiguous, mut count) = (0_u32, None, 0);
    members::each(object, |name, value| {
        count += 1;
        let Some((known, exact)) = alike(&name, names) else { return };
        let bit = names.iter().position(|name| *name == known).map_or(0, |at| 1 << at);
        if !exact || seen & bit != 0 {
            ambiguous = Some(Ambiguous::Twice(known));
        } else if value.get().len() > LONGEST && value.get().starts_with('"') {
            ambiguous = Some(Ambiguous::TooLong(known));
        }
        seen |= bit;
        found(known, value);
    });
    if count > MEMBERS {
        return Err(Ambiguous::TooMany);
    }
    ambiguous.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::{Ambiguous, RawValue, Routing};

    #[test]
    fn what_a_request_says_of_itself_is_read_beside_what_it_is_about() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"v"}"#;
        for method in ["tasks/get", "tools/call", "resources/read", "completion/complete", "x"] {
            for about in [r#""taskId":"a""#, r#""name":"a""#, r#""uri":"a""#, r#""ref":{"name":"a"}"#] {
                for params in [format!("{{{meta},{about}}}"), format!("{{{about},{meta}}}")] {
                    let read = Routing::of(method, Some(&params)).unwrap();
                    assert_eq!(read.meta.version.map(RawValue::get), Some(r#""v""#), "{method} {params}");
                }
            }
        }
        let read = Routing::of("tasks/get", Some(r#"{"taskId":"a"}"#)).unwrap();
        assert_eq!(read.task.map(RawValue::get), Some(r#""a""#));
    }

    #[test]
    fn x03_what_decides_is_said_once_and_payload_is_not_looked_into() {
        let call = |params| Routing::of("tools/call", Some(params)).map(|read| read.name.map(RawValue::get));
        assert_eq!(call(r#"{"name":"a","arguments":{"Name":1,"name":2,"NAME":3}}"#), Ok(Some(r#""a""#)));
        assert_eq!(call(r#"{"n\u0061me":"a"}"#), Ok(Some(r#""a""#)));
        assert_eq!(call(r#"{"name":"a","uri":1,"Uri":2}"#), Ok(Some(r#""a""#)), "no resource is read");
        assert_eq!(call("[1]"), Ok(None));
        for params in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
            r#"{"NAME":"b"}"#,
            r#"{"name":"a","name\u0000":"b"}"#,
        ] {
            assert_eq!(call(params), Err(Ambiguous::Twice("name")), "{params}");
        }
        let many: Vec<_> = (0..=super::MEMBERS).map(|number| format!(r#""a{number}":1"#)).collect();
        let (many, payload) = (many.join(","), r#"{"name":"a","arguments":{ALL}}"#);
        assert_eq!(Routing::of("x", Some(&format!("{{{many}}}"))).err(), Some(Ambiguous::TooMany));
        assert!(Routing::of("tools/call", Some(&payload.replace("ALL", &many))).is_ok());
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(super::LONGEST));
        assert_eq!(Routing::of("tools/call", Some(&long)).err(), Some(Ambiguous::TooLong("name")));
        for (method, params, twice) in [
            ("x", r#"{"_meta":{},"_Meta":{}}"#, "_meta"),
            ("x", r#"{"_meta":{"progressToken":1,"progressToken":2}}"#, "progressToken"),
            ("x", r#"{"_meta":{"progre\u017fsToken":1}}"#, "progressToken"),
            ("resources/read", r#"{"uri":"a","URI":"b"}"#, "uri"),
            ("completion/complete", r#"{"ref":{"name":"a","Name":"b"}}"#, "name"),
            ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"a","uri":"b"}}"#, "ref"),
            ("notifications/cancelled", r#"{"requestId":1,"requestid":2}"#, "requestId"),
        ] {
            assert_eq!(Routing::of(method, Some(params)).err(), Some(Ambiguous::Twice(twice)), "{params}");
        }
    }
}

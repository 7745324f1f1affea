//! A request's params on their way down: the few members we rewrite are spliced, and every other byte stays.

use std::borrow::Cow;
use std::ops::Range;

use linetender_wire::frame::{Members, Routing, respell, string};
use linetender_wire::handshake::{Hello, VERSION_IN_META};

use super::trace::{self, TraceContext};

/// The member of `_meta` by which progress finds its call.
const TOKEN: &str = "progressToken";

/// Params, and where in them lies what concerns us.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params<'a> {
    text: Option<&'a str>,
    meta: Option<Range<usize>>,
    token: Option<Range<usize>>,
    /// Whether they are known to be a modern request's without a look.
    modern: bool,
}

impl<'a> Params<'a> {
    pub(crate) fn of(text: Option<&'a str>) -> Self {
        let mut params = Self { text, ..Self::default() };
        // Most have no `_meta`, and are not looked at any further.
        if let Some(text) = text.filter(|text| may_name(text, "_meta"))
            && let Some(meta) = member(text, "_meta").filter(|meta| text[meta.clone()].starts_with('{'))
        {
            if may_name(&text[meta.clone()], TOKEN) {
                params.token = member(&text[meta.clone()], TOKEN)
                    .map(|token| meta.start + token.start..meta.start + token.end);
            }
            params.meta = Some(meta);
        }
        params
    }

    /// Those of a modern request that asks for no progress, as somebody has seen: nothing in them concerns us.
    pub(crate) fn of_modern(text: Option<&'a str>) -> Self {
        Self { text, modern: true, ..Self::default() }
    }

    /// Whether whoever wrote these wants to hear of progress.
    pub(crate) fn asks_for_progress(text: Option<&'a str>) -> bool {
        text.is_some_and(|text| may_name(text, TOKEN)) && Self::of(text).token().is_some()
    }

    /// The caller's own token, as it was spelt.
    pub(crate) fn token(&self) -> Option<&'a str> {
        Some(&self.text?[self.token.clone()?])
    }

    /// As the server is to read them: with our token in place of the caller's (or of none, if progress is wanted), and
    /// with what a modern server wants to see on every request.
    pub(crate) fn spell(&self, token: u64, wanted: bool, modern: Option<&Hello>) -> Option<Cow<'a, str>> {
        let mut text = self.text.map(Cow::Borrowed);
        if let (Some(own), Some(old)) = (&self.token, self.text) {
            text = Some(Cow::Owned(format!("{}{token}{}", &old[..own.start], &old[own.end..])));
        }
        let mut members = Vec::new();
        // An agent of the modern era has said it already, and its words are not touched.
        if let Some(hello) = modern.filter(|_| !self.is_modern()) {
            let ours = hello.meta().to_string();
            members.extend(ours.strip_prefix('{').and_then(|ours| ours.strip_suffix('}')).map(str::to_owned));
        }
        if wanted && self.token.is_none() {
            members.push(format!(r#""{TOKEN}":{token}"#));
        }
        if members.is_empty() {
            return match modern {
                None if self.is_modern() => text.map(|text| Cow::Owned(without_modern_meta(&text))),
                _ => text,
            };
        }
        let members = members.join(",");
        let text = text.unwrap_or(Cow::Borrowed("{}"));
        // What is no object is not ours to mend: the server says what it thinks of it.
        if !text.trim_start().starts_with('{') {
            return Some(text);
        }
        Some(Cow::Owned(put_meta(&text, self.meta.as_ref(), &members)))
    }

    fn is_modern(&self) -> bool {
        match (self.text, &self.meta) {
            // A slash may be escaped as well; and the words alone may stand anywhere.
            (Some(text), Some(meta)) => {
                let meta = &text[meta.clone()];
                (meta.contains(VERSION_IN_META) || meta.contains('\\'))
                    && member(meta, VERSION_IN_META).is_some()
            }
            _ => self.modern,
        }
    }
}

/// Params with one more member in their `_meta`.
pub(crate) fn with_meta_member(params: Option<&str>, member: &str) -> String {
    let params = Params::of(params);
    put_meta(params.text.unwrap_or("{}"), params.meta.as_ref(), member)
}

/// Params that belong to this trace, whatever their writer said of another. `None` if that cannot be said in them.
pub(crate) fn with_trace(text: Option<&str>, context: &TraceContext) -> Option<String> {
    let Some(text) = text else { return Some(format!(r#"{{"_meta":{{{}}}}}"#, context.members())) };
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let is_old = |name: &str| matches!(name, trace::PARENT | trace::STATE);
    let meta = Params::of(Some(text)).meta;
    match meta.clone().filter(|meta| may_name(&text[meta.clone()], "trace")) {
        // Where it begins stays.
        Some(at) => {
            let old = without_members(text, &at, is_old)?;
            Some(put_meta(&old, meta.as_ref(), &context.members()))
        }
        None => Some(put_meta(text, meta.as_ref(), &context.members())),
    }
}

/// Params with more members in their `_meta`, which is this, if it is an object. There is never a second one beside it: some
/// servers read the first, some the last.
fn put_meta(text: &str, meta: Option<&Range<usize>>, members: &str) -> String {
    if let Some(meta) = meta {
        return format!("{}{}", &text[..meta.start], put_first(&text[meta.start..], members));
    }
    match may_name(text, "_meta").then(|| member(text, "_meta")).flatten() {
        None => put_first(text, &format!(r#""_meta":{{{members}}}"#)),
        // Some agents spell out what they do not have.
        Some(none) if &text[none.clone()] == "null" => {
            format!("{}{{{members}}}{}", &text[..none.start], &text[none.end..])
        }
        // What is no object is not ours to mend: the server says what it thinks of it.
        Some(_) => text.to_owned(),
    }
}

/// The params of a progress notification with the caller's token in place of ours.
pub(crate) fn with_token(params: &str, token: &str) -> Option<String> {
    respell_member(params, TOKEN, token)
}

/// An object's text with another value for one of its members.
pub(crate) fn respell_member(object: &str, name: &str, value: &str) -> Option<String> {
    let old = member(object, name)?;
    Some(format!("{}{value}{}", &object[..old.start], &object[old.end..]))
}

/// Params as a legacy server wants them: nothing of the modern era in their `_meta`.
pub(crate) fn without_modern_meta(text: &str) -> String {
    const OURS: &str = "io.modelcontextprotocol/";
    let Some(meta) = member(text, "_meta") else { return text.to_owned() };
    without_members(text, &meta, |name| name.starts_with(OURS)).unwrap_or_else(|| text.to_owned())
}

/// A text without some of the members of the object that lies there. `None` if a name is no text: it cannot be spelt again,
/// and such an object stays as it is.
fn without_members(text: &str, object: &Range<usize>, unwanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut kept = Vec::new();
    for (name, value) in Members::of(&text[object.clone()])?.all() {
        let name = name?;
        if !unwanted(&name) {
            kept.push(format!("{}:{}", respell(&name), value.get()));
        }
    }
    Some(format!("{}{{{}}}{}", &text[..object.start], kept.join(","), &text[object.end..]))
}

/// Whether a member of this name can be in here. Names may be spelt with escapes, which hardly any are.
fn may_name(text: &str, name: &str) -> bool {
    text.contains(name) || text.contains(r"\u")
}

/// Where a member of an object lies in its text.
fn member(text: &str, name: &str) -> Option<Range<usize>> {
    let value = Members::of(text)?.get(name)?.get();
    let start = value.as_ptr() as usize - text.as_ptr() as usize;
    Some(start..start + value.len())
}

/// An object's text with these members before its own.
pub(crate) fn put_first(object: &str, members: &str) -> String {
    let open = object.find('{').map_or(0, |at| at + 1);
    let comma = if object[open..].trim_start().starts_with('}') { "" } else { "," };
    format!("{}{members}{comma}{}", &object[..open], &object[open..])
}

/// The tool that a request calls.
pub(crate) fn tool_of(method: &str, params: Option<&str>) -> Option<Box<str>> {
    (method == "tools/call").then(|| params.and_then(tool_name)).flatten().map(Into::into)
}

/// The name of the tool that a raw `tools/call` is about. Where the server may read another, none: what is known of a tool
/// permits that it is called again.
pub(crate) fn tool_name(params: &str) -> Option<String> {
    Routing::of("tools/call", Some(params)).ok()?.name.and_then(string).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::{Params, with_token, with_trace};
    use crate::basics::trace::TraceContext;
    use linetender_wire::handshake::Hello;

    #[test]
    fn meta_is_spliced_in_and_every_other_byte_stays() {
        let hello = Hello::Ours { name: "n".into(), version: "1".into() };
        for (params, tail) in [
            (Some(r#"{"z":12345678901234567890123,"a":1.50}"#), r#","z":12345678901234567890123,"a":1.50}"#),
            (Some("{ }"), " }"),
            (None, "}"),
            (Some(r#"{"b":1,"_meta":{"progressToken":7},"a":2}"#), r#","progressToken":31},"a":2}"#),
        ] {
            let made = Params::of(params).spell(31, false, Some(&hello)).unwrap();
            assert!(made.ends_with(tail), "{made}");
            let read: serde_json::Value = serde_json::from_str(&made).unwrap();
            assert_eq!(read["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{made}");
            assert_eq!(read["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "n", "{made}");
        }
        assert_eq!(Params::of(Some("[1]")).spell(1, true, Some(&hello)).unwrap(), "[1]");
    }

    #[test]
    fn x03_no_member_is_put_beside_another_of_the_same_name() {
        let hello = Hello::Ours { name: "n".into(), version: "1".into() };
        let spelt = |params| Params::of(Some(params)).spell(31, true, Some(&hello)).unwrap().into_owned();
        for params in [
            r#"{"_meta":null,"a":1}"#,
            r#"{"a":1,"\u005fmeta": null }"#,
            r#"{"a":1,"_meta":{"x":"io.modelcontextprotocol/protocolVersion"}}"#,
        ] {
            let made = spelt(params);
            let read: serde_json::Value = serde_json::from_str(&made).unwrap();
            assert_eq!(read["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{made}");
            assert_eq!((&read["_meta"]["progressToken"], &read["a"]), (&31.into(), &1.into()), "{made}");
            assert!(linetender_wire::frame::Routing::of("tools/call", Some(&made)).is_ok(), "{made}");
        }
        // It has said it already, however it spells it.
        let escaped =
            r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28","progressToken":7},"a":1}"#;
        assert_eq!(spelt(escaped), escaped.replace(":7", ":31"));
        assert_eq!(spelt(r#"{"_meta":[],"a":1}"#), r#"{"_meta":[],"a":1}"#);
    }

    #[test]
    fn a_token_is_exchanged_and_comes_back() {
        let text = r#"{"x":"progressToken", "_meta": { "a":1, "progressToken" : "mine" }, "y":[]}"#;
        let params = Params::of(Some(text));
        assert_eq!(params.token(), Some(r#""mine""#));
        let made = params.spell(9, true, None).unwrap();
        assert_eq!(made, text.replace(r#""mine""#, "9"));
        let progress = r#"{"progress":0.50,"progressToken":9,"message":"9"}"#;
        assert_eq!(with_token(progress, r#""mine""#).unwrap(), progress.replace(":9,", r#":"mine","#));
        let modern = r#"{"a":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"00-1","progressToken":"t"}}"#;
        let legacy = Params::of(Some(modern)).spell(4, false, None).unwrap();
        assert_eq!(legacy, r#"{"a":1,"_meta":{"traceparent":"00-1","progressToken":4}}"#);
        // An odd name is no reason to let somebody else's token through: on a shared line it may be the number of another.
        let odd = r#"{"\ud800":1,"_meta":{"\udc00":2,"progressToken":7}}"#;
        assert_eq!(Params::of(Some(odd)).spell(9, false, None).unwrap(), odd.replace(":7", ":9"));
        let escaped = r#"{"_meta":{"progress\u0054oken":7}}"#;
        assert_eq!(Params::of(Some(escaped)).spell(9, false, None).unwrap(), escaped.replace(":7", ":9"));
        let both = r#"{"\u005fmeta":{"progressToken":7}}"#;
        assert_eq!(Params::of(Some(both)).spell(9, false, None).unwrap(), both.replace(":7", ":9"));
        assert!(
            Params::asks_for_progress(Some(escaped))
                && !Params::asks_for_progress(Some(r#"{"a":"progressToken"}"#))
        );
        // Nothing is touched where nothing concerns us, and a token is added only for whoever wants one.
        let plain = r#"{"name":"echo","arguments":{"_meta":{"progressToken":3}}}"#;
        assert_eq!(Params::of(Some(plain)).spell(9, false, None).unwrap(), plain);
        assert_eq!(Params::of(None).spell(9, false, None), None);
        assert_eq!(Params::of(None).spell(9, true, None).unwrap(), r#"{"_meta":{"progressToken":9}}"#);
    }

    #[test]
    fn our_trace_stands_in_place_of_the_callers() {
        let ours = TraceContext::new(0xabc, 0xdef, 1, None).unwrap();
        let spelt = format!(r#""traceparent":"{ours}""#);
        let made = |params| with_trace(Some(params), &ours).map(|made| made.replace(&spelt, "OURS"));
        for (params, expected) in [
            (r#"{"z":1.50}"#, r#"{"_meta":{OURS},"z":1.50}"#),
            (r#"{"_meta":{},"z":1}"#, r#"{"_meta":{OURS},"z":1}"#),
            (r#"{"_meta":null,"z":1}"#, r#"{"_meta":{OURS},"z":1}"#),
            (r#"{"a":1,"_meta":{"progressToken": 7}}"#, r#"{"a":1,"_meta":{OURS,"progressToken": 7}}"#),
            (
                r#"{"a":1,"_meta": {"traceparent":"x","k":1.0,"tracestate":"y","\u0074raceparent":"z"} }"#,
                r#"{"a":1,"_meta": {OURS,"k":1.0} }"#,
            ),
            // Not ours to mend.
            (r#"{"_meta":[],"a":"traceparent"}"#, r#"{"_meta":[],"a":"traceparent"}"#),
        ] {
            assert_eq!(made(params).as_deref(), Some(expected));
        }
        assert_eq!(made("[1]"), None);
        // There is never a second one beside it.
        assert_eq!(made(r#"{"_meta":{"\udc00":2,"traceparent":"x"}}"#), None);
        assert_eq!(with_trace(None, &ours).unwrap(), format!(r#"{{"_meta":{{{spelt}}}}}"#));
    }
}

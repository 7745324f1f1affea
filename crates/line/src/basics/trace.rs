//! The trace that a request belongs to, as W3C Trace Context spells it and MCP carries it: `traceparent` and `tracestate` in
//! `_meta`.
// MCP 2026-07-28 (SEP-414): these names stand in `_meta` without a prefix.

use std::fmt;

use linetender_wire::frame::{Members, respell};

pub(crate) const PARENT: &str = "traceparent";
pub(crate) const STATE: &str = "tracestate";

/// The length of a `traceparent` of version 00, and of what is read of a later one.
const LENGTH: usize = 55;

/// The longest `traceparent` of a later version that is read.
const LONGEST: usize = 256;

/// The longest `tracestate` that is handed on.
const STATE_LIMIT: usize = 512;

/// The bits of the flags that mean something: sampled, and random.
const FLAGS: u8 = 0b11;

/// A span, as others name it who continue its trace.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TraceContext {
    /// The trace. Never 0.
    pub trace: u128,
    /// The span. Never 0.
    pub span: u64,
    /// The flags: 1 for sampled, 2 for an id that is random.
    pub flags: u8,
    /// What the tracing systems on the way wrote down for each other.
    pub state: Option<Box<str>>,
}

impl TraceContext {
    /// A span of a trace. `None` if one of the two numbers is 0, which names nothing. A state that is too long, or is not plain
    /// ASCII, is left out.
    pub fn new(trace: u128, span: u64, flags: u8, state: Option<&str>) -> Option<Self> {
        let is_plain = |state: &&str| {
            !state.is_empty()
                && state.len() <= STATE_LIMIT
                && state.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        };
        let state = state.filter(is_plain).map(Into::into);
        (trace != 0 && span != 0).then_some(Self { trace, span, flags: flags & FLAGS, state })
    }

    /// What is said in the `_meta` of these params. `None` if nothing is, or something that is no trace context: an agent may
    /// write anything there.
    pub fn of_params(params: Option<&str>) -> Option<Self> {
        let params = params.filter(|text| text.contains(PARENT) || text.contains(r"\u"))?;
        let meta = Members::of(Members::of(params)?.get("_meta")?.get())?;
        let parent = meta.get(PARENT).filter(|value| value.get().len() <= LONGEST)?;
        let (trace, span, flags) = read(&linetender_wire::frame::string(parent)?)?;
        // Escapes take six bytes at most.
        let state = meta.get(STATE).filter(|value| value.get().len() <= 6 * STATE_LIMIT);
        let state = state.and_then(linetender_wire::frame::string);
        Self::new(trace, span, flags, state.as_deref())
    }

    /// As members of an object.
    pub(crate) fn members(&self) -> String {
        let parent = format!(r#""{PARENT}":"{self}""#);
        match &self.state {
            Some(state) => format!(r#"{parent},"{STATE}":{}"#, respell(state)),
            None => parent,
        }
    }
}

/// As a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Reads a `traceparent`.
// W3C Trace Context, "Versioning of traceparent": of a later version the parts of 00 are read, and what follows a dash is not.
fn read(text: &str) -> Option<(u128, u64, u8)> {
    let is_ours = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    let head = text.get(..LENGTH).filter(|head| head.bytes().all(is_ours))?;
    let mut parts = head.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (span, flags) = (parts.next()?, parts.next()?);
    let whole = (version.len(), trace.len(), span.len(), flags.len()) == (2, 32, 16, 2);
    let tail = &text[LENGTH..];
    let ends = tail.is_empty() || (version != "00" && tail.starts_with('-'));
    if !whole || !ends || version == "ff" {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok()?;
    let span = u64::from_str_radix(span, 16).ok()?;
    Some((trace, span, u8::from_str_radix(flags, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(meta: &str) -> Option<TraceContext> {
        TraceContext::of_params(Some(&format!(r#"{{"a":1,"_meta":{meta}}}"#)))
    }

    #[test]
    fn a_context_is_read_and_spelt_as_it_was() {
        let read = of(&format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=\"1\",b=2"}}"#)).unwrap();
        assert_eq!((read.to_string().as_str(), read.state.as_deref()), (PARENT, Some("a=\"1\",b=2")));
        assert_eq!(read.members(), format!(r#""traceparent":"{PARENT}","tracestate":"a=\"1\",b=2""#));
        let escaped = of(&format!(r#"{{"\u0074raceparent":"{PARENT}"}}"#)).unwrap();
        assert_eq!((escaped.to_string().as_str(), escaped.state), (PARENT, None));
        let later = of(&format!(r#"{{"traceparent":"{}-more"}}"#, PARENT.replacen("00", "cc", 1)));
        assert_eq!(later.unwrap().to_string(), PARENT, "of a later version, what we know");
        let flags = of(&format!(r#"{{"traceparent":"{}f3"}}"#, &PARENT[..53])).unwrap();
        assert_eq!(flags.flags, 3, "flags that mean nothing yet are not handed on");
    }

    #[test]
    fn what_is_no_context_is_ignored() {
        let long = format!("{}-{}", PARENT.replacen("00", "cc", 1), "x".repeat(300));
        for parent in [
            "",
            "00-1",
            &PARENT.to_uppercase(),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replace('-', "_"),
            &format!("{PARENT}-more"),
            &format!("{PARENT}0"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-+1",
            "00-4bf92f3577b34da6a3ce929d0e0e473ä-00f067aa0ba902b7-1",
            &long,
        ] {
            assert_eq!(of(&format!(r#"{{"traceparent":"{parent}"}}"#)), None, "{parent}");
        }
        for meta in ["null", "[]", "7", r#"{"traceparent":7}"#, r#"{"x":"traceparent"}"#] {
            assert_eq!(of(meta), None, "{meta}");
        }
        assert_eq!(TraceContext::of_params(None), None);
        assert_eq!(TraceContext::of_params(Some(r#"["traceparent"]"#)), None);
        for state in [String::new(), "é".to_owned(), r"a\nb".to_owned(), "x".repeat(600)] {
            let read = of(&format!(r#"{{"traceparent":"{PARENT}","tracestate":"{state}"}}"#)).unwrap();
            assert_eq!(read.state, None, "{state}");
        }
    }
}

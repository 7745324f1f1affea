//! From bytes to frames. Foreign bytes are hostile: capped in length and depth before anything else looks.

use std::borrow::Cow;

use bytes::Bytes;
use bytestring::ByteString;
use serde_json::value::RawValue;

use super::alike::{ENVELOPE, alike};
use super::batch::BATCH;
use super::members::{Members, each as each_member, string};
use super::{Frame, Kept, Outcome, Shape, Span};

/// How long and how deep a message may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// In bytes.
    pub length: usize,
    /// Nested arrays and objects.
    pub depth: usize,
}

/// The longest id and method, as they are spelt.
const NAME: usize = 1024;

/// Why some text is no frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Bad {
    /// It is not JSON, or not UTF-8.
    #[error("not JSON")]
    NotJson,
    /// It is JSON, but not JSON-RPC.
    #[error("not a JSON-RPC message")]
    NotRpc,
    /// It is too long.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// There is no room for it.
    #[error("{}", crate::room::NoRoom)]
    NoRoom,
    /// It is nested too deeply.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Two readers may read two different messages in it.
    #[error("ambiguous: two of its members have the same name, or names that differ only in case")]
    Ambiguous,
    /// Its id or its method is longer than anybody's: others keep these while they wait.
    #[error("a message with an id or a method of more than {limit} bytes")]
    LongName {
        /// The limit.
        limit: usize,
    },
    /// It is a batch of too many messages.
    #[error("a batch of more than {limit} messages")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

/// The members we look at. Everything else is passed over and kept.
#[derive(Clone, Copy, Default)]
struct Envelope<'a> {
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// A member that is there twice.
    doubled: bool,
    /// A member that another reader may take for one of these.
    variant: bool,
}

impl<'a> Envelope<'a> {
    /// `None` if it is no object.
    fn of(text: &'a str) -> Option<Self> {
        let mut read = Self::default();
        let mut version = None;
        each_member(text, |name, value| {
            let Some((known, exact)) = alike(&name, &ENVELOPE) else { return };
            if !exact {
                read.variant = true;
                return;
            }
            let place = match known {
                "id" => &mut read.id,
                "method" => &mut read.method,
                "params" => &mut read.params,
                "result" => &mut read.result,
                "error" => &mut read.error,
                _ => &mut version,
            };
            read.doubled |= place.replace(value).is_some();
        })?;
        Some(read)
    }
}

/// Whether a text is one value that can be a part of a message.
///
/// # Errors
/// If it is not, and why.
pub fn check(text: &str, limits: Limits) -> Result<(), Bad> {
    if text.len() > limits.length {
        return Err(Bad::TooLong { limit: limits.length });
    }
    if too_deep(text.as_bytes(), limits.depth) {
        return Err(Bad::TooDeep { limit: limits.depth });
    }
    serde_json::from_str::<&RawValue>(text).map(drop).map_err(|_| Bad::NotJson)
}

/// One message.
///
/// # Errors
/// If it is not exactly one JSON-RPC message within the limits.
pub fn parse(text: &Bytes, limits: Limits) -> Result<Frame, Bad> {
    let mut frames = parse_all(text, limits)?;
    match (frames.pop(), frames.is_empty()) {
        (Some(frame), true) => Ok(frame),
        _ => Err(Bad::NotRpc),
    }
}

/// All messages of a text: usually one; a batch (2025-03-26) has several, and so have two that were glued together. Parsing stops at
/// the first one beyond [`BATCH`], so that a text of tiny messages does not become something many times as large.
///
/// # Errors
/// If any part of it is no message, or if there are too many.
pub fn parse_all(text: &Bytes, limits: Limits) -> Result<Vec<Frame>, Bad> {
    if text.len() > limits.length.min(u32::MAX as usize) {
        return Err(Bad::TooLong { limit: limits.length });
    }
    if too_deep(text, limits.depth) {
        return Err(Bad::TooDeep { limit: limits.depth });
    }
    let text = &ByteString::try_from(text.clone()).map_err(|_| Bad::NotJson)?;
    if let Some(frame) = alone(text) {
        return Ok(vec![frame]);
    }
    if text.trim_start().starts_with('[') {
        // Before the whole of it is looked at: that is what a batch of too many is about.
        let mut count = Count::default();
        each(text, &mut |_| count.one())?;
    }
    let mut frames = Vec::with_capacity(1);
    let mut count = Count::default();
    let mut push = |raw: &str| {
        count.one()?;
        envelope(text, raw).map(|frame| frames.push(frame))
    };
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let raw = value.map_err(|_| Bad::NotJson)?.get();
        if raw.starts_with('[') {
            each(raw, &mut push)?;
        } else {
            push(raw)?;
        }
    }
    if frames.is_empty() { Err(Bad::NotJson) } else { Ok(frames) }
}

/// How many messages one text had so far.
#[derive(Default)]
struct Count(usize);

impl Count {
    /// One more, if there may be.
    const fn one(&mut self) -> Result<(), Bad> {
        if self.0 == BATCH {
            return Err(Bad::TooMany { limit: BATCH });
        }
        self.0 += 1;
        Ok(())
    }
}

/// Hands over each element of an array, until one is refused.
pub(super) fn each(array: &str, push: &mut impl FnMut(&str) -> Result<(), Bad>) -> Result<(), Bad> {
    struct Elements<'p, P> {
        push: &'p mut P,
        refused: &'p mut Option<Bad>,
    }
    impl<'de, P: FnMut(&str) -> Result<(), Bad>> serde::de::Visitor<'de> for Elements<'_, P> {
        type Value = ();

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("an array")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
            while let Some(raw) = elements.next_element::<&'de RawValue>()? {
                if let Err(bad) = (self.push)(raw.get()) {
                    *self.refused = Some(bad);
                    return Err(serde::de::Error::custom("refused"));
                }
            }
            Ok(())
        }
    }
    let mut refused = None;
    let elements = Elements { push, refused: &mut refused };
    let read = serde::Deserializer::deserialize_seq(&mut serde_json::Deserializer::from_str(array), elements);
    match (read, refused) {
        (_, Some(bad)) => Err(bad),
        (Err(_), None) => Err(Bad::NotJson),
        (Ok(()), None) => Ok(()),
    }
}

/// The messages at the beginning of a line, and what is left when something is no message, or one too many.
pub(crate) fn parse_some(text: &Bytes, limits: Limits) -> (Vec<Frame>, Option<(Bytes, Bad)>) {
    let whole = |bad| (Vec::new(), Some((text.clone(), bad)));
    if text.len() > limits.length.min(u32::MAX as usize) {
        return whole(Bad::TooLong { limit: limits.length });
    }
    if too_deep(text, limits.depth) {
        return whole(Bad::TooDeep { limit: limits.depth });
    }
    let Ok(utf8) = ByteString::try_from(text.clone()) else { return whole(Bad::NotJson) };
    if let Some(frame) = alone(&utf8) {
        return (vec![frame], None);
    }
    let mut frames = Vec::with_capacity(1);
    let mut values = serde_json::Deserializer::from_str(&utf8).into_iter::<&RawValue>();
    let (mut good, mut count) = (0, Count::default());
    while let Some(value) = values.next() {
        let Ok(raw) = value.map(RawValue::get) else {
            return (frames, Some((text.slice(good..), Bad::NotJson)));
        };
        // The elements of a batch stand for themselves: one that is no message takes no other with it.
        let mut take = |raw: &str| {
            count.one()?;
            frames.extend(envelope(&utf8, raw).ok());
            Ok(())
        };
        let bad = match raw.as_bytes().first() {
            Some(b'[') => each(raw, &mut take).err(),
            _ => count.one().and_then(|()| envelope(&utf8, raw)).map(|frame| frames.push(frame)).err(),
        };
        if let Some(bad) = bad {
            return (frames, Some((text.slice(good..), bad)));
        }
        good = values.byte_offset();
    }
    (frames, None)
}

/// Counts nesting by itself: raw values have no recursion limit of their own.
pub(super) fn too_deep(text: &[u8], limit: usize) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = behind_string(text, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Where the string ends that begins here. Large messages are mostly one large string.
fn behind_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        // What is escaped ends nothing.
        at = (at + 2).min(text.len());
    }
    text.len()
}

/// The one message that nearly every text is, read in one pass. Anything else is looked at more closely.
fn alone(text: &ByteString) -> Option<Frame> {
    let raw = text.trim_matches([' ', '\t', '\r', '\n']);
    if raw.starts_with('{') { shaped(text, raw, &Envelope::of(raw)?).ok() } else { None }
}

/// One message. `raw` is a part of `text`.
pub(super) fn envelope(text: &ByteString, raw: &str) -> Result<Frame, Bad> {
    // Whoever reads members would also take an array of them for a message.
    if !raw.starts_with('{') {
        return Err(Bad::NotRpc);
    }
    // A small part would keep the whole text for as long as it is kept itself.
    if raw.len() < text.len() / 2 {
        let text = ByteString::from(raw);
        return shaped(&text, &text, &Envelope::of(&text).ok_or(Bad::NotRpc)?);
    }
    shaped(text, raw, &Envelope::of(raw).ok_or(Bad::NotRpc)?)
}

fn shaped(text: &ByteString, raw: &str, envelope: &Envelope<'_>) -> Result<Frame, Bad> {
    let text = text.slice_ref(raw);
    let of = |value: &RawValue| span(raw.as_bytes(), value.get());
    let said = |value: &&RawValue| value.get() != "null";
    if envelope.doubled {
        return Err(Bad::Ambiguous);
    }
    let error = envelope.error.filter(said);
    let params = envelope.params.filter(said).map(of);
    let Some(method) = envelope.method.filter(said) else {
        // What nobody else could misread is passed on as it came.
        if envelope.variant || (error.is_some() && envelope.result.is_some()) {
            return plain_response(raw, error.is_some());
        }
        let id = id(envelope.id.filter(said))?.map(of);
        let outcome = match (envelope.result, error) {
            (_, Some(error)) => Some((Outcome::Error, of(error))),
            (Some(result), None) => Some((Outcome::Result, of(result))),
            (None, None) if id.is_none() => return Err(Bad::NotRpc),
            (None, None) => None,
        };
        return Ok(Frame { text, shape: Shape::Response { id, outcome }, kept: Kept::default() });
    };
    if envelope.variant || envelope.result.is_some() || error.is_some() {
        return Err(Bad::Ambiguous);
    }
    if method.get().len() > NAME {
        return Err(Bad::LongName { limit: NAME });
    }
    let method = known(string(method).ok_or(Bad::NotRpc)?);
    let shape = match id(envelope.id)? {
        Some(id) => Shape::Request { id: of(id), method, params },
        None => Shape::Notification { method, params },
    };
    Ok(Frame { text, shape, kept: Kept::default() })
}

// JSON-RPC 2.0, section 4: an id is a string or a number. MCP has no null among them.
fn id(value: Option<&RawValue>) -> Result<Option<&RawValue>, Bad> {
    let is_one =
        |id: &RawValue| id.get().starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    match value {
        Some(id) if !is_one(id) => Err(Bad::NotRpc),
        Some(id) if id.get().len() > NAME => Err(Bad::LongName { limit: NAME }),
        id => Ok(id),
    }
}

/// A response without what another reader might take for one of its members, and with one outcome.
fn plain_response(raw: &str, is_error: bool) -> Result<Frame, Bad> {
    let mut kept = Vec::new();
    for (name, value) in Members::of(raw).ok_or(Bad::NotRpc)?.all() {
        // A name that is no text cannot be spelt again, and nobody could read it.
        let Some(name) = name else { continue };
        match alike(name.as_bytes(), &ENVELOPE) {
            Some((_, false)) => {}
            Some(("result", true)) if is_error => {}
            _ => kept.push(format!("{}:{}", super::respell(&name), value.get())),
        }
    }
    let text = ByteString::from(format!("{{{}}}", kept.join(",")));
    shaped(&text, &text, &Envelope::of(&text).ok_or(Bad::NotRpc)?)
}

/// Where `part`, which was borrowed from `whole`, lies in it.
fn span(whole: &[u8], part: &str) -> Span {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    Span::of(start, start + part.len())
}

/// The methods that come by all the time cost no allocation.
pub(super) fn known(method: Cow<'_, str>) -> Cow<'static, str> {
    const KNOWN: [&str; 12] = [
        "tools/call",
        "tools/list",
        "notifications/progress",
        "notifications/message",
        "notifications/cancelled",
        "ping",
        "initialize",
        "resources/read",
        "prompts/get",
        "resources/list",
        "prompts/list",
        "notifications/initialized",
    ];
    match KNOWN.iter().find(|known| **known == method) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(method.into_owned()),
    }
}

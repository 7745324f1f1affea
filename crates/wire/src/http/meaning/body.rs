//! What the body of a response holds.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde::Deserialize;

use super::{Exchange, HEAD_SHOWN, VERSIONS_MOST};
use crate::frame::{self, Bad, Frame, Limits, Message, Outcome};
use crate::http::BYTE_ORDER_MARK;
use crate::http::sse::{Sse, SseItem};
use crate::lines::{self, About};
use crate::redact::Redacted;

/// What it is.
pub(super) enum Body {
    /// An answer under our id.
    Ours(Answer),
    /// An answer under no id, or a made-up one. It came in response to us, so it is ours; here it carries our id.
    Paired(Answer),
    /// An answer under a number that is not ours. Ids of requests are numbers, so it is the answer to another request.
    Foreign,
    /// A page for people.
    Page,
    /// An answer under our id that cannot be read.
    Garbled,
    /// JSON-RPC or other JSON that is no answer.
    NoAnswer(&'static str),
    /// Nothing.
    Nothing,
    /// Anything else.
    Text,
}

/// An answer, and the code if it is an error.
pub(super) struct Answer {
    pub(super) frame: Frame,
    pub(super) error: Option<Fault>,
}

/// What we look at in an error.
#[derive(Default, Deserialize)]
pub(super) struct Fault {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Option<serde_json::Value>,
}

impl Body {
    pub(super) fn read(exchange: &Exchange<'_>) -> Self {
        let body = unwrapped(exchange);
        match body.trim_ascii_start().first() {
            None => Self::Nothing,
            Some(b'{' | b'[') => json(&body, exchange),
            Some(b'<') => Self::Page,
            Some(_) if is(exchange, b"text/html") => Self::Page,
            Some(_) => Self::Text,
        }
    }

    /// The answer, whosesoever id it came under.
    pub(super) fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Ours(answer) | Self::Paired(answer) => Some(answer),
            _ => None,
        }
    }

    /// The code, if it is an error.
    pub(super) fn code(&self) -> Option<i64> {
        Some(self.answer()?.error.as_ref()?.code)
    }

    /// The versions that an error lists.
    pub(super) fn supported(&self) -> Vec<Box<str>> {
        let data = self.answer().and_then(|answer| answer.error.as_ref()?.data.as_ref()?.get("supported"));
        let listed =
            data.and_then(|list| list.as_array()).into_iter().flatten().filter_map(|one| one.as_str());
        listed.filter(|one| one.len() <= VERSIONS_MOST.1).take(VERSIONS_MOST.0).map(Box::from).collect()
    }

    /// What to show of it.
    pub(super) fn words(&self, exchange: &Exchange<'_>) -> Redacted {
        match self {
            Self::Ours(Answer { error: Some(error), .. })
            | Self::Paired(Answer { error: Some(error), .. }) => {
                Redacted::head(&format!("{} ({})", error.message, error.code), HEAD_SHOWN)
            }
            _ => head(exchange),
        }
    }
}

/// The beginning of the body.
pub(super) fn head(exchange: &Exchange<'_>) -> Redacted {
    let body = exchange.body.trim_ascii_start();
    // Four bytes make at most one character.
    Redacted::head(&String::from_utf8_lossy(&body[..body.len().min(4 * HEAD_SHOWN)]), HEAD_SHOWN)
}

pub(super) fn is(exchange: &Exchange<'_>, kind: &[u8]) -> bool {
    exchange.headers.get(CONTENT_TYPE).is_some_and(|given| {
        let essence = given.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(kind)
    })
}

/// Some servers wrap even a refusal into an event, and send notifications before it. The event that answers us, or else
/// one that answers, or else the first.
fn unwrapped(exchange: &Exchange<'_>) -> Bytes {
    if !is(exchange, b"text/event-stream") {
        let body = exchange.body;
        return if body.starts_with(BYTE_ORDER_MARK) {
            body.slice(BYTE_ORDER_MARK.len()..)
        } else {
            body.clone()
        };
    }
    let mut sse = Sse::new(exchange.limits.length);
    sse.push(exchange.body);
    let mut best: Option<(Rank, Bytes)> = None;
    let mut look = |data: Bytes| {
        let rank = Rank::of(&data, exchange);
        if !data.is_empty() && best.as_ref().is_none_or(|(known, _)| rank > *known) {
            best = Some((rank, data));
        }
    };
    while let Some(item) = sse.take() {
        if let SseItem::Event(event) = item {
            look(event.data);
        }
    }
    if let Some(event) = sse.finish() {
        look(event.data);
    }
    best.map(|(_, data)| data).unwrap_or_default()
}

/// What an event is to us, the best last.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    Other,
    Answers,
    AnswersUs,
}

impl Rank {
    fn of(data: &Bytes, exchange: &Exchange<'_>) -> Self {
        let (frames, _) = frame::parse_some(data, exchange.limits);
        let ours = exchange.asked.id();
        let rank = |frame: &Frame| match frame.message() {
            Message::Response { .. } if ours.is_some() && frame.response_number() == ours => Self::AnswersUs,
            Message::Response { .. } => Self::Answers,
            _ => Self::Other,
        };
        frames.iter().map(rank).max().unwrap_or(Self::Other)
    }
}

fn json(body: &Bytes, exchange: &Exchange<'_>) -> Body {
    let (frames, rest) = frame::parse_some(body, exchange.limits);
    let ours = exchange.asked.id();
    let answers = || frames.iter().filter(|frame| matches!(frame.message(), Message::Response { .. }));
    let named = ours.and_then(|id| answers().find(|frame| frame.response_number() == Some(id)));
    // Of several that do not name us nobody can say which is meant.
    let only = || answers().next().filter(|_| answers().count() == 1);
    let garbled = || rest.as_ref().is_some_and(|(rest, _)| is_garbled(rest, ours));
    if named.is_none() && garbled() {
        return Body::Garbled;
    }
    let Some(frame) = named.or_else(only) else {
        return Body::NoAnswer(match rest {
            Some((_, Bad::TooDeep { .. })) => "nested too deeply",
            Some((_, Bad::TooLong { .. })) => "too long",
            _ if frames.is_empty() => "not JSON-RPC",
            _ => "no response among the messages",
        });
    };
    if named.is_none() && ours.is_some() && frame.response_number().is_some() {
        return Body::Foreign;
    }
    let Message::Response { outcome: Some((which, text)), .. } = frame.message() else {
        return Body::NoAnswer("neither a result nor an error");
    };
    let error = (which == Outcome::Error).then(|| serde_json::from_str::<Fault>(text).unwrap_or_default());
    let answer = |frame| Answer { frame, error };
    match (named, ours) {
        (Some(frame), Some(id)) => Body::Ours(answer(spelt(frame, id))),
        (_, None) => Body::Paired(answer(frame.clone())),
        (None, Some(id)) => {
            let id = id.to_string();
            let text = match which {
                Outcome::Error => frame::error_reply(&id, text),
                Outcome::Result => frame::reply(&id, text),
            };
            match frame::parse(&text, roomy(exchange.limits)) {
                Ok(frame) => Body::Paired(answer(frame)),
                Err(_) => Body::NoAnswer("not JSON-RPC"),
            }
        }
    }
}

/// Whether this text, which is no message, begins like the answer to us.
fn is_garbled(text: &[u8], ours: Option<u64>) -> bool {
    let about = lines::about(text.trim_ascii_start());
    matches!(&about, About::Answer(id) if ours.is_some() && frame::number(id) == ours)
}

/// Our id as we spell it: some servers make a string of it.
fn spelt(frame: &Frame, id: u64) -> Frame {
    let ours = id.to_string();
    match frame.message() {
        Message::Response { id: Some(given), .. } if given != ours => frame.with_id(&ours),
        _ => frame.clone(),
    }
}

/// An envelope of ours around what was within the limits is not what the limits are for.
const fn roomy(limits: Limits) -> Limits {
    Limits { length: limits.length.saturating_add(128), depth: limits.depth.saturating_add(1) }
}

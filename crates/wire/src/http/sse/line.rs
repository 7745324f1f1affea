//! One line of an event stream.

use bytes::{Bytes, BytesMut};

use super::ID_LIMIT;

/// The longest name of an event that is kept.
const NAME_LIMIT: usize = 256;

/// What a line says.
pub(super) enum Line {
    Data(Bytes),
    Id(Box<str>),
    Name(Box<str>),
    Retry(u64),
    /// A field that nobody knows, or a value that does not count.
    Ignored,
}

/// The data of an event: mostly one line, which is then not copied.
#[derive(Debug, Default)]
pub(super) enum Data {
    #[default]
    None,
    One(Bytes),
    Many(BytesMut),
}

// WHATWG HTML, "Interpreting an event stream": a field's name, a colon, at most one space, its value.
pub(super) fn read(line: &Bytes) -> Line {
    let (name, value) = match memchr::memchr(b':', line) {
        None => (&line[..], Bytes::new()),
        Some(colon) => {
            let space = usize::from(line.get(colon + 1) == Some(&b' '));
            (&line[..colon], line.slice(colon + 1 + space..))
        }
    };
    match name {
        b"data" => Line::Data(value),
        b"id" => text(&value, ID_LIMIT).filter(|id| !id.contains('\0')).map_or(Line::Ignored, Line::Id),
        b"event" => text(&value, NAME_LIMIT).map_or(Line::Ignored, Line::Name),
        b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            // More digits than fit are a long time.
            Line::Retry(text(&value, 20).and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX))
        }
        _ => Line::Ignored,
    }
}

fn text(value: &[u8], limit: usize) -> Option<Box<str>> {
    if value.len() > limit {
        return None;
    }
    std::str::from_utf8(value).ok().map(Box::from)
}

impl Data {
    pub(super) fn push(&mut self, value: Bytes) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(value),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity(first.len() + 1 + value.len());
                all.extend_from_slice(&first);
                Self::Many(joined(all, &value))
            }
            Self::Many(all) => Self::Many(joined(all, &value)),
        };
    }

    pub(super) fn join(self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::One(data) => data,
            Self::Many(data) => data.freeze(),
        }
    }

    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(data) => data.len(),
            Self::Many(data) => data.len(),
        }
    }
}

fn joined(mut all: BytesMut, value: &[u8]) -> BytesMut {
    all.extend_from_slice(b"\n");
    all.extend_from_slice(value);
    all
}

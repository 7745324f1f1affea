//! A text as its reader takes it: without what a terminal does not show, and with escapes replaced by what they stand for.
//!
//! The ways to spell one value are too many to list: `json.dumps` writes `ü` as `\u00fc`, Jinja `'` as `&#39;`, and any character may be
//! written as its number. So a text is decoded, and each of its bytes remembers where it came from. Values are decoded in the same way
//! before they are compared: what is ambiguous then is the same in both.

use std::ops::Range;

/// How many spellings may be inside each other, as JSON in a log line in JSON.
const LAYERS: usize = 4;

/// The longest command to a terminal that is recognized by its end, as one that sets a title.
const COMMAND: usize = 256;

/// What such a command ends with, and what every command begins with.
const BELL: u8 = 7;
const ESCAPE: u8 = 0x1b;

/// A text, decoded.
pub(super) struct Decoded {
    text: Vec<u8>,
    /// Which bytes of the original each byte stands for.
    from: Vec<Range<usize>>,
}

/// True if nothing in this text can be anything but what it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'%' | b'&' | b'+'))
}

impl Decoded {
    /// The text, decoded; `None` if that is the text itself.
    pub(super) fn of(text: &str) -> Option<Self> {
        if is_plain(text) {
            return None;
        }
        let from = (0..text.len()).map(|at| at..at + 1).collect();
        let mut decoded = Self { text: text.as_bytes().to_vec(), from };
        for _ in 0..LAYERS {
            let before = decoded.text.len();
            decoded = decoded.peeled();
            // What was decoded is shorter.
            if decoded.text.len() == before {
                break;
            }
        }
        Some(decoded)
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Where a part of it came from.
    pub(super) fn origin(&self, part: &Range<usize>) -> Range<usize> {
        let start = self.from.get(part.start).map_or(0, |range| range.start);
        let end =
            part.end.checked_sub(1).and_then(|last| self.from.get(last)).map_or(start, |range| range.end);
        start..end
    }

    /// The same with one layer less.
    fn peeled(&self) -> Self {
        let (mut text, mut from) = (Vec::with_capacity(self.text.len()), Vec::with_capacity(self.text.len()));
        let mut at = 0;
        while at < self.text.len() {
            let (means, length) = meaning(&self.text[at..]);
            let origin = self.from[at].start..self.from[at + length - 1].end;
            for byte in means.bytes() {
                text.push(*byte);
                from.push(origin.clone());
            }
            at += length;
        }
        Self { text, from }
    }
}

/// What a few bytes stand for.
enum Means {
    Nothing,
    Byte([u8; 1]),
    Character([u8; 4], usize),
}

impl Means {
    /// What cannot be seen stands for nothing.
    fn character(character: char) -> Self {
        if is_unseen(character) {
            return Self::Nothing;
        }
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Self::Character(bytes, length)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Byte(byte) => byte,
            Self::Character(bytes, length) => &bytes[..*length],
        }
    }
}

/// Emoji may have a selector, and credentials have none.
const fn is_unseen(character: char) -> bool {
    crate::visible::is_hidden(character) || matches!(character, '\u{fe0e}' | '\u{fe0f}')
}

/// What stands at the beginning of these bytes, and how many of them it is. They are not none.
fn meaning(text: &[u8]) -> (Means, usize) {
    let itself = || (Means::Byte([text[0]]), 1);
    match text[0] {
        ESCAPE => (Means::Nothing, command(text)),
        b'\\' => backslash(text).unwrap_or_else(itself),
        b'&' => entity(text).unwrap_or_else(itself),
        b'%' => number(text, 1, 2, 16).and_then(byte_of).map_or_else(itself, |means| (means, 3)),
        // A space, in a form.
        b'+' => (Means::Byte(*b" "), 1),
        0..0x20 | 0x7f => (Means::Nothing, 1),
        0x80.. => match first_character(text) {
            Some('\u{9b}') => (Means::Nothing, 2 + parameters(&text[2..]).unwrap_or(0)),
            Some(character) => (Means::character(character), character.len_utf8()),
            None => itself(),
        },
        _ => itself(),
    }
}

/// How long a command to a terminal is that begins here.
fn command(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => 2 + parameters(&text[2..]).unwrap_or(0),
        Some(b']') => {
            let rest = &text[2..text.len().min(COMMAND)];
            let end = rest.iter().position(|byte| matches!(*byte, BELL | ESCAPE));
            2 + end.map_or(0, |end| {
                end + 1 + usize::from(rest[end] == ESCAPE && rest.get(end + 1) == Some(&b'\\'))
            })
        }
        _ => {
            let between = text[1..].iter().take_while(|byte| matches!(byte, 0x20..=0x2f)).count();
            match text.get(1 + between) {
                Some(0x30..=0x7e) if between > 0 => 2 + between,
                Some(b'7' | b'8' | b'=' | b'>' | b'c' | b'D' | b'E' | b'H' | b'M' | b'N' | b'O' | b'Z') => 2,
                _ => 1,
            }
        }
    }
}

/// How long the parameters of a command are, with its last letter.
fn parameters(text: &[u8]) -> Option<usize> {
    let end = text.iter().take(COMMAND).position(|byte| !matches!(byte, 0x20..=0x3f))?;
    matches!(text[end], 0x40..=0x7e).then_some(end + 1)
}

/// An escape of JSON and of most programming languages.
fn backslash(text: &[u8]) -> Option<(Means, usize)> {
    let character = |code: u32, length| Some((Means::character(char::from_u32(code)?), length));
    match *text.get(1)? {
        known @ (b'"' | b'\'' | b'\\' | b'/' | b'`') => Some((Means::Byte([known]), 2)),
        b'n' | b'r' | b't' | b'b' | b'f' | b'v' => Some((Means::Nothing, 2)),
        // To most it is the character for what is behind.
        b'e' => Some((Means::Byte([ESCAPE]), 2)),
        b'a' => Some((Means::Byte([BELL]), 2)),
        b'x' => Some((byte_of(number(text, 2, 2, 16)?)?, 4)),
        b'U' => character(number(text, 2, 8, 16)?, 10),
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = text[3..].iter().take(7).position(|byte| *byte == b'}')?;
            character_or_command(number(text, 3, digits, 16)?, digits + 4)
        }
        b'u' => {
            let first = number(text, 2, 4, 16)?;
            if !(0xd800..0xdc00).contains(&first) {
                return character_or_command(first, 6);
            }
            let second =
                text.get(6..8).filter(|begins| *begins == br"\u").and_then(|_| number(text, 8, 4, 16))?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            character(0x10000 + ((first - 0xd800) << 10) + low, 12)
        }
        b'0'..=b'3' => Some((byte_of(number(text, 1, 3, 8)?)?, 4)),
        _ => None,
    }
}

/// What begins or ends a command to a terminal is kept until the command is recognized.
fn character_or_command(code: u32, length: usize) -> Option<(Means, usize)> {
    match code {
        7 => return Some((Means::Byte([BELL]), length)),
        0x1b => return Some((Means::Byte([ESCAPE]), length)),
        0x9b => return Some((Means::Character([0xc2, 0x9b, 0, 0], 2), length)),
        _ => {}
    }
    Some((Means::character(char::from_u32(code)?), length))
}

/// A byte as a number: of a character that is no ASCII there are several.
fn byte_of(number: u32) -> Option<Means> {
    let byte = u8::try_from(number).ok()?;
    let is_unseen = byte.is_ascii_control() && !matches!(byte, ESCAPE | BELL);
    Some(if is_unseen { Means::Nothing } else { Means::Byte([byte]) })
}

/// A character as HTML and XML spell it.
fn entity(text: &[u8]) -> Option<(Means, usize)> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let code = match &text[1..end] {
        b"amp" => u32::from(b'&'),
        b"lt" => u32::from(b'<'),
        b"gt" => u32::from(b'>'),
        b"quot" => u32::from(b'"'),
        b"apos" => u32::from(b'\''),
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 0, digits.len(), 16)?,
        [b'#', digits @ ..] => number(digits, 0, digits.len(), 10)?,
        _ => return None,
    };
    Some((Means::character(char::from_u32(code)?), end + 1))
}

/// So many digits from here, as a number.
fn number(text: &[u8], from: usize, digits: usize, radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(from..from + digits)?).ok()?;
    // Not the sign that Rust allows before it.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, radix).ok())?
}

fn first_character(text: &[u8]) -> Option<char> {
    let longest = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next()
}

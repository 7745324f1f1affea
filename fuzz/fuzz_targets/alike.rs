//! What we decide on is what everybody else reads in the bytes that we pass on: readers that take the first or the last of two
//! members, by their exact names, folded as Go does, or as leniently as any might. The readers here are a model that shares
//! nothing with the code it judges; `tools/differential` asks real ones.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run alike -- -max_total_time=60`
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use linetender_wire::frame::{self, Limits, Message, Outcome, Routing};
use serde_json::value::RawValue;

const LIMITS: Limits = Limits { length: 4096, depth: 16 };

fuzz_target!(|input: &[u8]| {
    let Ok(frames) = frame::parse_all(&Bytes::copy_from_slice(input), LIMITS) else { return };
    for one in frames {
        match one.message() {
            Message::Request { method, params, .. } => {
                let passed = frame::request(7, method, params);
                asks(passed.text(), Some("7"), method, params);
            }
            Message::Notification { method, params } => asks(one.text(), None, method, params),
            Message::Response { id, outcome } => {
                let of = |which| outcome.filter(|(is, _)| *is == which).map(|(_, text)| text);
                let text = text(one.text());
                for reader in READERS {
                    let said = |name| reader.member(text, name).filter(|value| *value != "null");
                    assert_eq!(said("id"), id, "{reader:?} reads another id: {text}");
                    assert_eq!(said("method"), None, "{reader:?} reads a request: {text}");
                    assert_eq!(said("error"), of(Outcome::Error), "{reader:?} reads another error: {text}");
                    let result = reader.member(text, "result");
                    assert_eq!(result, of(Outcome::Result), "{reader:?} reads another result: {text}");
                }
            }
        }
    }
});

/// A request or notification, as it is passed on.
fn asks(passed: &[u8], id: Option<&str>, method: &str, params: Option<&str>) {
    let Ok(routing) = Routing::of(method, params) else { return };
    let passed = text(passed);
    for reader in READERS {
        let member = |name| reader.member(passed, name);
        let said = |name| member(name).filter(|value| *value != "null");
        assert_eq!(member("id"), id, "{reader:?} reads another id: {passed}");
        assert_eq!(said("params"), params, "{reader:?} reads other params: {passed}");
        assert_eq!((member("result"), said("error")), (None, None), "{reader:?} reads an answer: {passed}");
        let spelt = member("method").and_then(|spelt| String::from_utf16(&unescaped(spelt)).ok());
        assert_eq!(spelt.as_deref(), Some(method), "{reader:?} reads another method: {passed}");
        let at = |name| params.and_then(|params| reader.member(params, name));
        let same = |name: &str, read: Option<&str>, decided: Option<&RawValue>| {
            assert_eq!(read, decided.map(RawValue::get), "{reader:?} reads another {name}: {passed}");
        };
        match method {
            "tools/call" | "prompts/get" => same("name", at("name"), routing.name),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe"
            | "notifications/resources/updated" => same("uri", at("uri"), routing.uri),
            "notifications/cancelled" => same("request", at("requestId"), routing.request_id),
            "notifications/progress" => same("token", at("progressToken"), routing.token),
            "completion/complete" => {
                same("reference", at("ref"), routing.reference);
                for name in ["type", "name", "uri"] {
                    let read = at("ref").and_then(|about| reader.member(about, name));
                    let exact = at("ref").and_then(|about| READERS[0].member(about, name));
                    assert_eq!(read, exact, "{reader:?} reads another reference: {passed}");
                }
            }
            _ => {}
        }
        let in_meta = |name| at("_meta").and_then(|meta| reader.member(meta, name));
        same("progress token", in_meta("progressToken"), routing.meta.token);
        same("version", in_meta("io.modelcontextprotocol/protocolVersion"), routing.meta.version);
        same("client", in_meta("io.modelcontextprotocol/clientInfo"), routing.meta.client);
        same("capabilities", in_meta("io.modelcontextprotocol/clientCapabilities"), routing.meta.capabilities);
    }
}

fn text(passed: &[u8]) -> &str {
    std::str::from_utf8(passed).expect("what is passed on is UTF-8")
}

/// How a reader takes names for the same, and which of two members it takes.
#[derive(Clone, Copy, Debug)]
struct Reader {
    fold: Fold,
    first: bool,
}

#[derive(Clone, Copy, Debug)]
enum Fold {
    Exact,
    /// Case, and the two letters outside ASCII that fold into it.
    Go,
    /// Also Turkish letters, and a name ends at a zero byte.
    Lenient,
}

const READERS: [Reader; 6] = [
    Reader { fold: Fold::Exact, first: true },
    Reader { fold: Fold::Exact, first: false },
    Reader { fold: Fold::Go, first: true },
    Reader { fold: Fold::Go, first: false },
    Reader { fold: Fold::Lenient, first: true },
    Reader { fold: Fold::Lenient, first: false },
];

impl Reader {
    /// The text of a member's value. What is no object has none.
    fn member<'a>(self, object: &'a str, name: &str) -> Option<&'a str> {
        let name: Vec<u16> = self.folded(name.encode_utf16().collect());
        let mut found = members(object).into_iter().filter(|(own, _)| self.folded(unescaped(own)) == name);
        if self.first { found.next() } else { found.last() }.map(|(_, value)| value)
    }

    fn folded(self, name: Vec<u16>) -> Vec<u16> {
        let letter = |unit: u16| match (self.fold, unit) {
            (Fold::Exact, _) => unit,
            (_, 0x41..=0x5a) => unit + 0x20,
            (_, 0x17f) => u16::from(b's'),
            (_, 0x212a) => u16::from(b'k'),
            (Fold::Lenient, 0x130 | 0x131) => u16::from(b'i'),
            _ => unit,
        };
        let goes_on = |unit: &u16| !matches!((self.fold, *unit), (Fold::Lenient, 0));
        name.into_iter().take_while(goes_on).map(letter).collect()
    }
}

/// The names, in quotes as they are spelt, and values of an object that is known to be JSON.
fn members(object: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut scan = Scan { text: object, at: 0 };
    if scan.token() != Some("{") {
        return found;
    }
    while let Some(name) = scan.token().filter(|name| name.starts_with('"')) {
        assert_eq!(scan.token(), Some(":"));
        found.push((name, scan.value()));
        if scan.token() != Some(",") {
            break;
        }
    }
    found
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next token: a mark, a string, or anything else up to the next of those.
    fn token(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        let start = self.at;
        self.at += 1;
        match bytes.get(start)? {
            b'"' => {
                while bytes.get(self.at).is_some_and(|byte| *byte != b'"') {
                    self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
                }
                self.at += 1;
            }
            b'{' | b'}' | b'[' | b']' | b':' | b',' => {}
            _ => {
                let ends = |byte: &u8| b"{}[]:,\" \t\r\n".contains(byte);
                while bytes.get(self.at).is_some_and(|byte| !ends(byte)) {
                    self.at += 1;
                }
            }
        }
        self.text.get(start..self.at)
    }

    fn value(&mut self) -> &'a str {
        let first = self.token().unwrap_or_default();
        let start = self.at - first.len();
        let mut depth = usize::from(matches!(first, "{" | "["));
        while depth > 0 {
            match self.token() {
                Some("{" | "[") => depth += 1,
                Some("}" | "]") => depth -= 1,
                Some(_) => {}
                None => break,
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// What a string is, in units that can be half of a surrogate pair.
fn unescaped(quoted: &str) -> Vec<u16> {
    let inside = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let (mut units, mut letters) = (Vec::new(), inside.chars());
    while let Some(letter) = letters.next() {
        let unit = match (letter, if letter == '\\' { letters.next() } else { None }) {
            ('\\', Some('u')) => {
                let digits: String = letters.by_ref().take(4).collect();
                u16::from_str_radix(&digits, 16).expect("four digits")
            }
            ('\\', Some('b')) => 8,
            ('\\', Some('f')) => 12,
            ('\\', Some('n')) => 10,
            ('\\', Some('r')) => 13,
            ('\\', Some('t')) => 9,
            ('\\', Some(other)) => u16::try_from(u32::from(other)).expect("one of three marks"),
            _ => {
                units.extend_from_slice(letter.encode_utf16(&mut [0; 2]));
                continue;
            }
        };
        units.push(unit);
    }
    units
}

//! Messages of all kinds, more or less hostile.

use crate::dice::Dice;

/// A text that somebody sends.
pub(crate) struct Made {
    pub(crate) text: String,
    /// It is no message but an entry of a list.
    pub(crate) is_entry: bool,
}

/// Every name that decides something, somewhere.
const NAMES: [&str; 21] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "name",
    "uri",
    "ref",
    "type",
    "requestId",
    "progressToken",
    "_meta",
    "arguments",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/subscriptionId",
    "isError",
    "content",
    "tools",
];
const REQUESTS: [&str; 10] = [
    "tools/call",
    "tools/call",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "tools/list",
    "initialize",
    "x/own",
];
const NOTIFICATIONS: [&str; 5] = [
    "notifications/cancelled",
    "notifications/progress",
    "notifications/resources/updated",
    "notifications/message",
    "notifications/x",
];
const STRINGS: [&str; 14] = [
    r#""a""#,
    r#""git__status""#,
    r#""""#,
    r#""n\u0061me""#,
    r#""\ud83d\ude00""#,
    r#""\ud800""#,
    r#""\udc00x""#,
    r#""a\u0000b""#,
    r#""größe \/ \" \\ \b\f\n\r\t""#,
    r#""file:\/\/\/etc\/passwd""#,
    r#""note://a?<b>&c=\u003c""#,
    "\"\u{2028}\u{feff}\u{1f600}\"",
    r#""7""#,
    r#""},{\"id\":1""#,
];
const NUMBERS: [&str; 14] = [
    "0",
    "-0",
    "7",
    "1.0",
    "1e0",
    "-1.5E+3",
    "9007199254740993",
    "18446744073709551616",
    "123456789012345678901234567890",
    "1e308",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1000000000000000055511151231257827",
];

/// Message number `nth` of a seed.
pub(crate) fn message(seed: u64, nth: u64) -> Made {
    let mut maker = Maker { dice: Dice::new(seed, nth), hostile: 0 };
    maker.hostile = *maker.dice.one_of(&[0, 0, 1, 3, 8, 20]);
    let is_entry = maker.dice.often(5);
    let text = if is_entry {
        maker.entry()
    } else {
        match maker.dice.below(20) {
            0..=10 => maker.asks(&REQUESTS, true),
            11..=14 => maker.asks(&NOTIFICATIONS, false),
            _ => maker.response(),
        }
    };
    Made { text, is_entry }
}

struct Maker {
    dice: Dice,
    /// How many names of a hundred are spelt to deceive.
    hostile: usize,
}

impl Maker {
    fn asks(&mut self, methods: &[&str], has_id: bool) -> String {
        let method = *self.dice.one_of(methods);
        let params = if self.dice.often(3) { self.value(2) } else { self.params(method) };
        let mut all =
            vec![("jsonrpc", r#""2.0""#.to_owned()), ("method", self.string_of(method)), ("params", params)];
        if has_id {
            let id = self.id();
            all.push(("id", id));
        }
        if self.dice.often(3) {
            all.retain(|(name, _)| *name != "params");
        }
        if self.dice.often(self.hostile) {
            let (name, value) = (*self.dice.one_of(&["result", "error", "id", "extra"]), self.value(1));
            all.push((name, value));
        }
        self.object(all)
    }

    fn params(&mut self, method: &str) -> String {
        let mut all = Vec::new();
        let target = match method {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
            "notifications/resources/updated" => Some("uri"),
            "notifications/cancelled" => Some("requestId"),
            "notifications/progress" => Some("progressToken"),
            _ => None,
        };
        if let Some(target) = target {
            let value = if self.dice.often(95) { self.string() } else { self.value(1) };
            all.push((target, value));
        }
        if method == "completion/complete" {
            let about = self.reference();
            all.push(("ref", about));
        }
        if self.dice.often(50) {
            let meta = if self.dice.often(95) { self.meta() } else { self.value(1) };
            all.push(("_meta", meta));
        }
        if self.dice.often(50) {
            // Payload: it may have every name, as often as it likes.
            let payload = self.payload(3);
            all.push(("arguments", payload));
        }
        if self.dice.often(10) {
            let (name, value) = (*self.dice.one_of(&NAMES), self.value(1));
            all.push((name, value));
        }
        self.object(all)
    }

    fn reference(&mut self) -> String {
        if self.dice.often(4) {
            return self.value(1);
        }
        let mut all = vec![if self.dice.often(50) {
            ("type", r#""ref/prompt""#.to_owned())
        } else {
            ("type", r#""ref/resource""#.to_owned())
        }];
        let is_prompt = all[0].1.contains("prompt");
        all.push((if is_prompt { "name" } else { "uri" }, self.string()));
        if self.dice.often(5) {
            all.push((if is_prompt { "uri" } else { "name" }, self.string()));
        }
        self.object(all)
    }

    fn meta(&mut self) -> String {
        let mut all = Vec::new();
        for name in ["progressToken", NAMES[14], NAMES[15], NAMES[16], NAMES[17], "own/thing"] {
            if self.dice.often(40) {
                let value = self.value(1);
                all.push((name, value));
            }
        }
        self.object(all)
    }

    fn response(&mut self) -> String {
        let mut all = vec![("jsonrpc", r#""2.0""#.to_owned())];
        if self.dice.often(95) {
            let id = self.id();
            all.push(("id", id));
        }
        for (name, often) in [("result", 80), ("error", 25)] {
            if self.dice.often(often) {
                let payload = self.payload(3);
                all.push((name, payload));
            }
        }
        if self.dice.often(5) {
            let (name, value) =
                (*self.dice.one_of(&["method", "params", "extra", "a\u{131}b"]), self.value(1));
            all.push((name, value));
        }
        self.object(all)
    }

    fn entry(&mut self) -> String {
        let (name, payload) = (self.string(), self.payload(2));
        self.object(vec![("name", name), ("inputSchema", payload)])
    }

    /// An object of these members, in any order; some of them twice, or with somebody beside them who looks alike.
    fn object(&mut self, mut all: Vec<(&str, String)>) -> String {
        for at in 0..all.len() {
            if self.dice.often(self.hostile) {
                let value = if self.dice.often(50) { all[at].1.clone() } else { self.value(1) };
                all.push((all[at].0, value));
            }
        }
        for at in (1..all.len()).rev() {
            all.swap(at, self.dice.below(at + 1));
        }
        let mut text = format!("{}{{", self.blank());
        for (at, (name, value)) in all.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let name = self.name(name);
            let blanks = [self.blank(), self.blank(), self.blank(), self.blank()];
            text.extend([comma, blanks[0], &name, blanks[1], ":", blanks[2], value, blanks[3]]);
        }
        text.push('}');
        text
    }

    /// A name as a JSON string: as it is, with escapes, or as something that another reader takes for it.
    fn name(&mut self, name: &str) -> String {
        if !self.dice.often(self.hostile) {
            return if self.dice.often(5) { self.escaped(name) } else { format!("\"{name}\"") };
        }
        let changed: String = match self.dice.below(8) {
            0 => name.to_uppercase(),
            1 => self.flipped(name),
            2 => name.replace('s', "\u{17f}").replace('k', "\u{212a}"),
            3 => name.replace('i', "\u{131}"),
            4 => name.replace('i', "\u{130}"),
            5 => return format!(r#""{name}\u0000{}""#, if self.dice.often(50) { "x" } else { "" }),
            6 => return format!(r#""{name}\ud800""#),
            _ => format!(
                "{}{name}{}",
                self.dice.one_of(&["", " ", "x"]),
                self.dice.one_of(&["s", " ", "\u{301}"])
            ),
        };
        if self.dice.often(50) { self.escaped(&changed) } else { format!("\"{changed}\"") }
    }

    fn flipped(&mut self, name: &str) -> String {
        let mut flip = |letter: char| {
            if self.dice.often(70) {
                return letter;
            }
            if letter.is_ascii_lowercase() {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            }
        };
        name.chars().map(&mut flip).collect()
    }

    /// The same text, some of it in escapes.
    fn escaped(&mut self, text: &str) -> String {
        let mut spelt = String::from("\"");
        for letter in text.chars() {
            match letter {
                '/' if self.dice.often(50) => spelt.push_str("\\/"),
                _ if self.dice.often(40) => {
                    let mut units = [0; 2];
                    for unit in letter.encode_utf16(&mut units) {
                        let lower = format!("\\u{unit:04x}");
                        let upper = format!("\\u{unit:04X}");
                        spelt.push_str(if self.dice.often(50) { &lower } else { &upper });
                    }
                }
                _ => spelt.push(letter),
            }
        }
        spelt + "\""
    }

    fn string_of(&mut self, text: &str) -> String {
        if self.dice.often(10) { self.escaped(text) } else { format!("\"{text}\"") }
    }

    fn string(&mut self) -> String {
        (*self.dice.one_of(&STRINGS)).to_owned()
    }

    fn id(&mut self) -> String {
        if self.dice.often(3) {
            return (*self.dice.one_of(&["null", "true", "{}", "[]"])).to_owned();
        }
        if self.dice.often(60) { (*self.dice.one_of(&NUMBERS)).to_owned() } else { self.string() }
    }

    fn value(&mut self, depth: usize) -> String {
        match self.dice.below(8) {
            0 => "null".to_owned(),
            1 => (*self.dice.one_of(&["true", "false", "[]", "{}"])).to_owned(),
            2 | 3 => (*self.dice.one_of(&NUMBERS)).to_owned(),
            4 | 5 => self.string(),
            _ => self.payload(depth),
        }
    }

    /// Something that nobody has to look into.
    fn payload(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.string();
        }
        if self.dice.often(15) {
            return format!("[{},{}{}]", self.value(depth - 1), self.blank(), self.value(depth - 1));
        }
        let mut all = Vec::new();
        for _ in 0..self.dice.below(4) {
            let (name, value) = (*self.dice.one_of(&NAMES), self.value(depth - 1));
            all.push((name, value));
        }
        self.object(all)
    }

    fn blank(&mut self) -> &'static str {
        const BLANKS: [&str; 5] = [" ", "\t", "\n", "\r\n", "  "];
        if self.dice.often(90) {
            return "";
        }
        self.dice.one_of::<&str>(&BLANKS)
    }
}

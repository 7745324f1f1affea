//! Lines of a pipe, taken apart into frames; and everything that is not a frame, told apart.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::frame::{self, Bad, Batch, Frame, Limits};

/// How far into a message that is too long we look for its id.
const SNIFF: usize = 4096;

/// The room of a line above this is given back when the line is.
const LARGE: usize = 64 * 1024;

/// At how many places of a line of noise a message may begin.
const GLUED: usize = 4;

/// What a line was.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Item {
    /// A message.
    Frame(Frame),
    /// Something else: a banner, a log line, half of what was meant to be a message.
    Noise(Bytes),
    /// A message that breaks a limit.
    Unreadable {
        /// What it was, as far as could be seen.
        about: About,
        /// The limit.
        bad: Bad,
        /// How much of it had come when that was clear.
        seen: usize,
    },
}

/// What a message was of which only the beginning can be read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum About {
    /// An answer, to this id.
    Answer(String),
    /// A request with this id, or a notification. It has an id of its own, which is none of ours.
    Question(Option<String>),
    /// Nobody can tell.
    #[default]
    Unknown,
}

/// Collects bytes and yields what the lines were.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    limits: Limits,
    /// How much of the buffer is known to hold no line break.
    searched: usize,
    /// Inside a line that was too long: everything up to its end is dropped.
    discarding: bool,
    ready: VecDeque<Item>,
    /// The batches among the lines, if somebody wants to know of them.
    batches: Option<VecDeque<Batch>>,
}

impl Lines {
    /// Nothing read yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            buffer: BytesMut::with_capacity(8192),
            limits,
            searched: 0,
            discarding: false,
            ready: VecDeque::new(),
            batches: None,
        }
    }

    /// The same for lines of somebody whose batches are [told of](Self::batch): an agent's, who wants their answers in one.
    #[must_use]
    pub fn with_batches(self) -> Self {
        Self { batches: Some(VecDeque::new()), ..self }
    }

    /// A batch, from when on the first of its messages is taken: they come by themselves as well.
    pub fn batch(&mut self) -> Option<Batch> {
        self.batches.as_mut()?.pop_front()
    }

    /// Where the next bytes go.
    pub fn buffer(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < 1024 {
            self.buffer.reserve(8192);
        }
        &mut self.buffer
    }

    /// The next item that is complete.
    pub fn take(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.overlong();
            };
            let line = self.buffer.split_to(self.searched + at).freeze();
            self.buffer.advance(1);
            // What comes next begins in the room of this line, and would keep all of it.
            if line.len() > LARGE && self.buffer.len() <= LARGE {
                let mut rest = BytesMut::with_capacity(8192.max(self.buffer.len()));
                rest.extend_from_slice(&self.buffer);
                self.buffer = rest;
            }
            self.searched = 0;
            if !std::mem::take(&mut self.discarding) {
                self.take_apart(&line);
            }
        }
    }

    /// The other side is gone: a complete message without its line break still counts.
    pub fn finish(&mut self) -> Option<Item> {
        if !self.buffer.is_empty() && !std::mem::take(&mut self.discarding) {
            let line = self.buffer.split().freeze();
            self.take_apart(&line);
            // Half a line is no answer: what became of the call is for its generation's end to say.
            self.ready.retain(|item| !matches!(item, Item::Unreadable { .. }));
        }
        self.searched = 0;
        self.ready.pop_front()
    }

    fn overlong(&mut self) -> Option<Item> {
        if self.discarding {
            self.forget_buffer();
            return None;
        }
        if self.buffer.len() <= self.limits.length {
            return None;
        }
        Some(self.dropped(Bad::TooLong { limit: self.limits.length }))
    }

    /// How many bytes of a line are held that has not all come.
    pub(crate) fn unfinished(&self) -> usize {
        self.buffer.len()
    }

    /// Gives up the line that has not all come: there is no room for it.
    pub(crate) fn give_up(&mut self) -> Option<Item> {
        (!self.discarding && !self.buffer.is_empty()).then(|| self.dropped(Bad::NoRoom))
    }

    /// Drops a line up to its end.
    fn dropped(&mut self, bad: Bad) -> Item {
        let item = if begins_like_a_message(&self.buffer) {
            Item::Unreadable { about: about(&self.buffer), bad, seen: self.buffer.len() }
        } else {
            Item::Noise(Bytes::copy_from_slice(&self.buffer[..SNIFF.min(self.buffer.len())]))
        };
        self.discarding = true;
        self.forget_buffer();
        item
    }

    fn forget_buffer(&mut self) {
        self.buffer = BytesMut::with_capacity(8192);
        self.searched = 0;
    }

    fn take_apart(&mut self, line: &Bytes) {
        let line = trimmed(line);
        if line.is_empty() {
            return;
        }
        if let Some(batches) = &mut self.batches
            && frame::is_batch(&line)
        {
            match frame::parse_batch(&line, self.limits) {
                Ok(batch) => {
                    self.ready.extend(batch.frames.iter().cloned().map(Item::Frame));
                    return batches.push_back(batch);
                }
                Err(bad @ (Bad::NotRpc | Bad::TooMany { .. })) => {
                    let (about, seen) = (About::Unknown, line.len());
                    return self.ready.push_back(Item::Unreadable { about, bad, seen });
                }
                // Log text, a batch with something glued to it, or anything that breaks a limit.
                Err(_) => {}
            }
        }
        // Coloured log text is full of brackets: only what begins like a message can be one that breaks a limit.
        if !begins_like_a_message(&line) {
            return self.noise(line);
        }
        let (frames, rest) = frame::parse_some(&line, self.limits);
        self.ready.extend(frames.into_iter().map(Item::Frame));
        let Some((rest, bad)) = rest else { return };
        let rest = trimmed(&rest);
        // An answer that cannot be read is still an answer: whoever waits for it must not wait for ever.
        let about = if rest.starts_with(b"{") { about(&rest) } else { About::Unknown };
        match bad {
            Bad::NotJson | Bad::NotRpc if about == About::Unknown => self.noise(rest),
            _ => self.ready.push_back(Item::Unreadable { about, bad, seen: rest.len() }),
        }
    }

    /// Log text glued before a message: the message counts, the rest is noise.
    fn noise(&mut self, line: Bytes) {
        for at in memchr::memmem::find_iter(&line, b"{\"").filter(|&at| at > 0).take(GLUED) {
            if let Ok(frames) = frame::parse_all(&line.slice(at..), self.limits) {
                self.ready.push_back(Item::Noise(line.slice(..at)));
                self.ready.extend(frames.into_iter().map(Item::Frame));
                return;
            }
        }
        self.ready.push_back(Item::Noise(line));
    }
}

fn begins_like_a_message(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.starts_with(b"{")
        || line.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
}

fn trimmed(line: &Bytes) -> Bytes {
    let text = line.trim_ascii();
    let start = text.as_ptr() as usize - line.as_ptr() as usize;
    line.slice(start..start + text.len())
}

/// What a message is of which only the beginning can be read, by the members of the outermost object.
pub fn about(text: &[u8]) -> About {
    let text = &text[..text.len().min(SNIFF)];
    let (mut depth, mut at) = (0_u32, 0);
    let (mut id, mut asks) = (None, false);
    while at < text.len() {
        match text[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = end_of_string(text, at) else { break };
                if depth == 1 && is_name(&text[end + 1..]) {
                    match &text[at..=end] {
                        b"\"id\"" => id = id.or_else(|| value_of(&text[end + 1..])),
                        b"\"method\"" => asks = true,
                        _ => {}
                    }
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    match (asks, id) {
        (true, id) => About::Question(id),
        (false, Some(id)) => About::Answer(id),
        (false, None) => About::Unknown,
    }
}

/// A string is a member's name if a colon follows it.
fn is_name(rest: &[u8]) -> bool {
    rest.trim_ascii_start().starts_with(b":")
}

fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The number or string behind a colon.
fn value_of(rest: &[u8]) -> Option<String> {
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let end = match rest.first()? {
        b'"' => end_of_string(rest, 0)? + 1,
        _ => rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-')?,
    };
    let value = std::str::from_utf8(&rest[..end]).ok()?;
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{About, Bad, Item, Lines, about};
    use crate::frame::Limits;

    const LIMITS: Limits = Limits { length: 100, depth: 8 };

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(LIMITS);
        let mut seen = Vec::new();
        let mut take = |item| {
            seen.push(match item {
                Item::Frame(frame) => String::from_utf8(frame.text().to_vec()).unwrap(),
                Item::Noise(noise) => format!("noise {}", String::from_utf8_lossy(&noise)),
                Item::Unreadable { about, bad, .. } => format!("{bad}: {about:?}"),
            });
        };
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            while let Some(item) = lines.take() {
                take(item);
            }
        }
        while let Some(item) = lines.finish() {
            take(item);
        }
        seen
    }

    #[test]
    fn lines_arrive_in_any_pieces() {
        let text = b"{\"id\":1,\"result\":1}\r\n\n  {\"id\":2,\"result\":2}\n{\"id\":3,\"result\":3}";
        let whole = read(&[text]);
        assert_eq!(whole.len(), 3);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes), whole, "complete JSON without its line break counts at the end");
    }

    #[test]
    fn noise_is_told_apart_and_what_is_glued_to_it_counts() {
        let text = b"Listening\nINFO {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n{\"half\":\n{\"jsonrpc\"\n";
        let expected =
            ["noise Listening", "noise INFO ", r#"{"jsonrpc":"2.0","id":1,"result":1}"#, "noise {\"half\":"];
        let seen = read(&[text]);
        assert_eq!(seen[..4], expected);
        assert_eq!(seen[4], "noise {\"jsonrpc\"");
    }

    #[test]
    fn a_line_that_is_too_long_names_its_call_and_costs_nothing_more() {
        let mut lines = Lines::new(LIMITS);
        lines.buffer().extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"");
        let mut told = 0;
        for _ in 0..1000 {
            lines.buffer().extend_from_slice(&[b'x'; 50]);
            while let Some(item) = lines.take() {
                let Item::Unreadable { about, bad: Bad::TooLong { limit: 100 }, seen } = item else {
                    panic!("{item:?}")
                };
                assert_eq!(about, About::Answer("7".into()));
                assert!(seen <= 150);
                told += 1;
            }
            assert!(lines.buffer().len() <= 200);
        }
        assert_eq!(told, 1);
        lines.buffer().extend_from_slice(b"\"}\n{\"id\":8,\"result\":1}\n");
        assert!(matches!(lines.take(), Some(Item::Frame(_))), "what follows the line break is read again");
    }

    #[test]
    fn batches_are_told_of_to_whoever_wants_to_know() {
        let text = b"[{\"id\":1,\"method\":\"a\"},7]\n[]\n[8]\n[info] up\n[{\"id\":2,\"method\":\"b\"}]";
        let mut lines = Lines::new(LIMITS).with_batches();
        lines.buffer().extend_from_slice(text);
        let (mut batches, mut items) = (Vec::new(), Vec::new());
        while let Some(item) = lines.take() {
            batches.extend(std::iter::from_fn(|| lines.batch()));
            items.push(item);
        }
        items.extend(lines.finish());
        batches.extend(std::iter::from_fn(|| lines.batch()));
        let of = batches.iter().map(|batch| (batch.frames.len(), batch.bad.len()));
        assert!(of.eq([(1, 1), (0, 1), (1, 0)]), "{batches:?}");
        let [Item::Frame(_), Item::Unreadable { bad: Bad::NotRpc, .. }, Item::Noise(_), Item::Frame(_)] =
            &items[..]
        else {
            panic!("{items:?}")
        };
        let mut lines = Lines::new(LIMITS);
        lines.buffer().extend_from_slice(b"[{\"id\":1,\"method\":\"a\"},7]\n");
        assert!(matches!((lines.take(), lines.take(), lines.batch()), (Some(Item::Frame(_)), None, None)));
    }

    #[test]
    fn x13_a_line_of_tiny_messages_is_read_up_to_a_bound_and_none_of_them_keeps_the_line() {
        let mut lines = Lines::new(LIMITS);
        for separator in [",", ""] {
            let text = vec![r#"{"id":1,"method":"n"}"#; crate::frame::BATCH + 1].join(separator);
            let (open, close) = if separator.is_empty() { ("", "") } else { ("[", "]") };
            lines.limits.length = text.len() + 2;
            lines.buffer().extend_from_slice(format!("{open}{text}{close}\n").as_bytes());
            for _ in 0..crate::frame::BATCH {
                let Some(Item::Frame(frame)) = lines.take() else { panic!("a message") };
                assert!(frame.into_text().try_into_mut().is_ok(), "nothing else keeps its bytes");
            }
            let Some(Item::Unreadable { bad: Bad::TooMany { .. }, .. }) = lines.take() else {
                panic!("the rest is told")
            };
            assert_eq!(lines.take(), None);
        }
    }

    #[test]
    fn a_message_that_is_too_deep_names_its_call() {
        let text = format!("{{\"id\":\"a\",\"result\":{}\n", "[".repeat(9));
        assert_eq!(read(&[text.as_bytes()]), [r#"nested deeper than 8: Answer("\"a\"")"#]);
    }

    #[test]
    fn an_answer_that_cannot_be_read_names_its_call() {
        assert_eq!(read(&[b"{\"id\":1,\"result\":NaN}\n"]), [r#"not JSON: Answer("1")"#]);
        assert_eq!(read(&[b"{\"id\":2,\"result\":\"\xff\"}\n"]), [r#"not JSON: Answer("2")"#]);
        let behind = read(&[b"{\"id\":3,\"result\":3}INFO done\n"]);
        assert_eq!(behind, [r#"{"id":3,"result":3}"#, "noise INFO done"]);
        let half = read(&[b"{\"id\":4,\"result\":4}{\"id\":5,\"resu\n"]);
        assert_eq!(half, [r#"{"id":4,"result":4}"#, r#"not JSON: Answer("5")"#]);
        assert_eq!(read(&[b"{\"id\":5,\"resu"]), [""; 0], "but half a line at the end of file is nothing");
        assert_eq!(read(&[b"[{\"id\":6,\"result\":6},7]\n"]), [r#"{"id":6,"result":6}"#]);
    }

    #[test]
    fn coloured_log_text_is_noise_however_long_and_deep() {
        let bar = "\u{1b}[32m#\u{1b}[0m".repeat(9);
        assert!(read(&[format!("{bar}\n").as_bytes()])[0].starts_with("noise"));
        let long = format!("{}\n", "[====".repeat(100));
        assert!(read(&[long.as_bytes()]).iter().all(|line| line.starts_with("noise")));
    }

    #[test]
    fn a_question_that_cannot_be_read_is_nobodys_answer() {
        let text = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"sampling/createMessage\",\"params\":NaN}\n";
        assert_eq!(read(&[text]), [r#"not JSON: Question(Some("3"))"#]);
        assert_eq!(read(&[b"{\"method\":\"n\",\"params\":NaN}\n"]), ["not JSON: Question(None)"]);
    }

    #[test]
    fn only_the_outermost_id_is_sniffed() {
        let answer = |id: &str| About::Answer(id.to_owned());
        assert_eq!(about(br#"{"result":{"id":3,"x":[{"id":4}]},"id" : 5,"#), answer("5"));
        assert_eq!(about(br#"{"result":{"id":3}"#), About::Unknown);
        assert_eq!(about(br#"{"x":"\"id\":9","id":"s\"1","#), answer(r#""s\"1""#));
        assert_eq!(about(br#"{"id":12"#), About::Unknown, "it may go on");
        assert_eq!(about(br#"{"id":nope,"#), About::Unknown);
        assert_eq!(about(br#"{"result":"method","id":1,"#), answer("1"), "a value is no name");
    }
}

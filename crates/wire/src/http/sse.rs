//! Server-sent events, without I/O and with a bound.
//!
//! A server may drip an event for ever, and the crates that read such streams either keep all of it or say nothing of
//! the priming events (an id and no data) that a resume begins with. So this reader is our own: it holds at most the
//! limit and one chunk, and when an event outgrows the limit it says so once, with the event's beginning, so that
//! the call it was meant for can be told.
//!
//! After each [`push`](Sse::push), [`take`](Sse::take) until there is nothing left.

mod line;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

use line::{Data, Line};

use super::BYTE_ORDER_MARK;

/// How much of an event that is too long is kept, to look for the id of the answer in it.
pub const HEAD: usize = 4096;

/// An event id above this many bytes is no id: it has to fit into a header when the stream is resumed.
pub const ID_LIMIT: usize = 1024;

/// The least and the most milliseconds that a server may tell us to wait before we come back.
pub const RETRY: (u64, u64) = (100, 300_000);

/// What a stream yields.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SseItem {
    /// An event.
    Event(SseEvent),
    /// An event above the limit. Its rest is dropped as it comes.
    TooLong {
        /// How much of it had come when that was clear.
        seen: usize,
        /// The beginning of its data.
        head: Bytes,
    },
}

/// One event. An event that has neither data nor an id is not reported.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SseEvent {
    /// Its data; several lines are joined by a line feed. A priming event has none.
    pub data: Bytes,
    /// The id that this event itself carried.
    pub id: Option<Box<str>>,
    /// Its name; `message` is meant where there is none.
    pub name: Option<Box<str>>,
}

/// Collects bytes and yields events.
#[derive(Debug)]
pub struct Sse {
    buffer: BytesMut,
    limit: usize,
    /// How much of the buffer is known to hold no line break.
    searched: usize,
    at: Place,
    event: Pending,
    last_id: Option<Box<str>>,
    retry: Option<Duration>,
    comments: u64,
}

/// Where in the stream the buffer begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// At its very beginning, where a byte order mark may stand.
    Start,
    /// At the beginning of a line.
    Line,
    /// Behind a carriage return: a line feed here belongs to it.
    Return,
    /// Inside a line whose rest is of no interest.
    Skipping,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Pending {
    data: Data,
    id: Option<Box<str>>,
    name: Option<Box<str>>,
    /// How many bytes of lines were kept for it.
    size: usize,
    /// It was too long, and this was said.
    over: bool,
}

impl Sse {
    /// Nothing read yet. An event may have `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
            searched: 0,
            at: Place::Start,
            event: Pending::default(),
            last_id: None,
            retry: None,
            comments: 0,
        }
    }

    /// More bytes came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next item that is complete.
    pub fn take(&mut self) -> Option<SseItem> {
        if !self.begin() {
            return None;
        }
        loop {
            if self.at == Place::Return {
                match self.buffer.first() {
                    None => return None,
                    Some(b'\n') => self.buffer.advance(1),
                    Some(_) => {}
                }
                self.at = Place::Line;
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', &self.buffer[self.searched..]) else {
                return self.unfinished();
            };
            let line = self.buffer.split_to(self.searched + end).freeze();
            self.searched = 0;
            let skipped = self.at == Place::Skipping;
            self.at = if self.buffer[0] == b'\r' { Place::Return } else { Place::Line };
            self.buffer.advance(1);
            if !skipped && let Some(item) = self.line(&line) {
                return Some(item);
            }
        }
    }

    /// The stream ended: the event that was being read, if it had data. The rules of the format drop it; but a server
    /// that was cut behind its answer has answered, so whoever calls takes it if it reads as a whole message.
    pub fn finish(&mut self) -> Option<SseEvent> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        if self.at != Place::Skipping && !rest.is_empty() {
            self.line(&rest);
        }
        let event = std::mem::take(&mut self.event);
        if event.over || event.data.is_none() {
            return None;
        }
        Some(SseEvent { data: event.data.join(), id: event.id, name: event.name })
    }

    /// The id to resume behind: that of the last complete event that carried one.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long the server wants us to wait before we come back, kept within [`RETRY`].
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// How many comments came: servers send them to show that they live.
    pub const fn comments(&self) -> u64 {
        self.comments
    }

    /// Gives up the event that has not all come, as if it were too long: there is no room for it.
    pub(crate) fn give_up(&mut self) -> Option<SseItem> {
        if self.event.over || self.held() == 0 {
            return None;
        }
        let line = self.buffer.split().freeze();
        if !line.is_empty() {
            self.forget_line();
        }
        Some(self.too_long(&line))
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.buffer.len() + self.event.data.len()
    }

    /// Passes over a byte order mark; false while it cannot be told whether there is one.
    fn begin(&mut self) -> bool {
        if self.at != Place::Start {
            return true;
        }
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
        } else if BYTE_ORDER_MARK.starts_with(&self.buffer) {
            return false;
        }
        self.at = Place::Line;
        true
    }

    /// The buffer holds a part of a line: nothing may grow without end.
    fn unfinished(&mut self) -> Option<SseItem> {
        self.searched = self.buffer.len();
        if self.at == Place::Skipping {
            self.forget_line();
            return None;
        }
        match self.buffer.first() {
            None => None,
            Some(b':') => {
                self.comments += 1;
                self.forget_line();
                None
            }
            Some(_) if self.event.over => {
                self.forget_line();
                None
            }
            Some(_) if self.event.size + self.buffer.len() > self.limit => {
                let line = self.buffer.split().freeze();
                self.forget_line();
                Some(self.too_long(&line))
            }
            Some(_) => None,
        }
    }

    fn forget_line(&mut self) {
        self.at = Place::Skipping;
        self.buffer.clear();
        self.searched = 0;
    }

    /// A whole line, without its end.
    fn line(&mut self, line: &Bytes) -> Option<SseItem> {
        if line.is_empty() {
            return self.dispatch();
        }
        if line.starts_with(b":") {
            self.comments += 1;
            return None;
        }
        if self.event.over {
            return None;
        }
        if self.event.size + line.len() > self.limit {
            return Some(self.too_long(line));
        }
        match line::read(line) {
            Line::Data(value) => {
                self.event.size += line.len() + 1;
                self.event.data.push(value);
            }
            Line::Id(id) => self.event.id = Some(id),
            Line::Name(name) => self.event.name = Some(name),
            Line::Retry(millis) => self.retry = Some(Duration::from_millis(millis.clamp(RETRY.0, RETRY.1))),
            Line::Ignored => {}
        }
        None
    }

    /// An empty line ends an event.
    fn dispatch(&mut self) -> Option<SseItem> {
        let event = std::mem::take(&mut self.event);
        if event.id.is_some() {
            self.last_id.clone_from(&event.id);
        }
        if event.over || (event.data.is_none() && event.id.is_none()) {
            return None;
        }
        Some(SseItem::Event(SseEvent { data: event.data.join(), id: event.id, name: event.name }))
    }

    fn too_long(&mut self, line: &Bytes) -> SseItem {
        let seen = self.event.size + line.len();
        // The byte that broke the limit is the last one looked at, however large the chunk was that it came in.
        let line = line.slice(..line.len().min((self.limit + 1).saturating_sub(self.event.size)));
        let mut data = std::mem::take(&mut self.event.data);
        if let Line::Data(value) = line::read(&line) {
            data.push(value);
        }
        self.event.over = true;
        let head = data.join();
        SseItem::TooLong { seen, head: Bytes::copy_from_slice(&head[..head.len().min(HEAD)]) }
    }
}

//! The transport of 2024-11-05 (HTTP+SSE): one event stream, whose first event names the URL that messages are posted to, and
//! on which every answer comes.
//!
//! The stream is the session. While it is open a message that was taken is answered there or not at all, so its end is the end
//! of the generation, and of every call that was taken and not answered.
// MCP 2024-11-05, "HTTP with SSE".

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use linetender_core::LossReport;
use tokio::sync::oneshot;

use super::exchange::{self, Replied};
use super::shared::{PINGS, Shared, Spoken};
use crate::frame::{self, Bad, Frame, Message};
use crate::http::meaning::{Call, HEAD_SHOWN, Line, Purpose};
use crate::http::sse::{Sse, SseItem};
use crate::http::{Body, Endpoint, URL_LIMIT, headers};
use crate::lines::{self, About, Item};
use crate::redact::Redacted;
use crate::room::Unfinished;
use crate::seam::{Loss, Ticket};
use crate::seen::Seen;
use crate::test_hooks;

/// The name of the event that says where messages are posted to, and of those that are messages.
const ENDPOINT: &str = "endpoint";
const MESSAGE: &str = "message";

/// Opens the stream for the first frame, posts the frame, and reads what comes until the end, which is told. If the stream
/// cannot be opened, only the frame is lost: the next one tries again. `opened` is told, or dropped, when that is known.
pub(super) async fn attach(
    shared: &Arc<Shared>,
    frame: Frame,
    id: Option<u64>,
    ticket: Option<Arc<dyn Ticket>>,
    opened: oneshot::Sender<()>,
) {
    test_hooks::point("stream");
    let reader = match open(shared).await {
        Ok(reader) => reader,
        Err(loss) => {
            drop(opened);
            if let Some(id) = id {
                shared.listener.lost(id, *loss);
            }
            return;
        }
    };
    let _ = opened.send(());
    let posted = exchange::run(Arc::clone(shared), frame, id, ticket);
    let reading = async {
        let words = read(shared, reader).await;
        // The line first: whoever is told that a call was lost may call again at once.
        shared.lost(Seen::StreamEnded { words: words.clone() }).await;
        shared.replies.end(words);
    };
    tokio::join!(posted, reading);
}

/// A stream that is being read.
struct Reader<'a> {
    shared: &'a Shared,
    body: Body,
    sse: Sse,
    unfinished: Unfinished<'a>,
    /// How much of a message was there when it was last looked at.
    held: usize,
}

/// How a stream ended: nothing, if the server closed it.
struct Ended(Redacted);

impl Reader<'_> {
    /// The URL for messages, as it was spelt. It should be the first thing that is said.
    async fn named(&mut self) -> Result<Bytes, Ended> {
        loop {
            match self.next().await? {
                SseItem::Event(event) if event.name.as_deref() == Some(ENDPOINT) => return Ok(event.data),
                SseItem::Event(_) | SseItem::TooLong { .. } => {}
            }
        }
    }

    /// The next event.
    async fn next(&mut self) -> Result<SseItem, Ended> {
        loop {
            if let Some(item) = self.sse.take() {
                self.shared.listener.heard();
                return Ok(item);
            }
            // A long message that comes slowly is a sign of life. Comments are not: whatever stands before a server that hangs
            // may send them for it.
            let held = self.sse.held();
            if held > std::mem::replace(&mut self.held, held) {
                self.shared.listener.heard();
            }
            let waits = self.unfinished.now(held).is_err();
            let chunk = tokio::select! {
                biased;
                settled = self.unfinished.settled() => {
                    if settled.is_err() {
                        self.unfinished.none();
                        if let Some(item) = self.sse.give_up() {
                            return Ok(item);
                        }
                    }
                    continue;
                }
                chunk = self.body.chunk(), if !waits => chunk,
            };
            match chunk {
                Ok(Some(chunk)) => self.sse.push(&chunk),
                Ok(None) => return Err(Ended(Redacted::default())),
                Err(broken) => return Err(Ended(Redacted::head(&broken.to_string(), 2 * HEAD_SHOWN))),
            }
        }
    }
}

/// Opens the stream, and learns from it where messages are posted to.
async fn open(shared: &Shared) -> Result<Reader<'_>, Box<Loss>> {
    let unsent = |seen: Seen| Box::new(Loss::new(LossReport::NoByteWritten, seen));
    let ours = headers::stream_headers(None, None, None);
    let (request, key) = exchange::request(shared, Method::GET, ours, Bytes::new(), None);
    let response = shared.pool.send(&request).await.map_err(|broken| unsent(broken.seen()))?;
    let at = response.moved.clone().unwrap_or_else(|| shared.pool.endpoint().clone());
    let replied = exchange::read(shared, &Spoken::nothing(), Purpose::Stream, response, key).await;
    let Replied { meaning, response, refused, .. } = replied.map_err(|broken| unsent(broken.seen()))?;
    let Some(response) = response else {
        let after = if let Line::Throttled { after, .. } = meaning.line { after } else { None };
        let seen = meaning.line.seen().unwrap_or_else(|| not_a_stream(meaning.call));
        return Err(Box::new(Loss { after, refused, ..*unsent(seen) }));
    };
    let mut reader = Reader {
        shared,
        body: response.body,
        sse: Sse::new(shared.limits.length),
        unfinished: Unfinished::new(&*shared.listener),
        held: 0,
    };
    let within = shared.endpoint_within;
    let Ok(named) = tokio::time::timeout(within, reader.named()).await else {
        let words =
            format!("its event stream named no endpoint for messages within {} ms", within.as_millis());
        return Err(unsent(Seen::Unusable { words: Redacted::head(&words, HEAD_SHOWN) }));
    };
    let named = named.map_err(|Ended(words)| unsent(Seen::StreamEnded { words }))?;
    let to = endpoint(&at, &named)
        .map_err(|words| unsent(Seen::BadEndpoint { words: Redacted::head(&words, 2 * HEAD_SHOWN) }))?;
    shared.pool.stay_at(to);
    shared.spoken().attached = true;
    Ok(reader)
}

/// What came instead of an event stream.
fn not_a_stream(call: Call) -> Seen {
    let head = match call {
        Call::Lost { words, .. } | Call::Unusable(words) => words,
        _ => Redacted::default(),
    };
    Seen::NotMcp { head: Redacted::head(&format!("{head} (to GET, for an event stream)"), 2 * HEAD_SHOWN) }
}

/// Where messages are posted to. Every message carries the credentials of the server at `from`, so it must be there too.
fn endpoint(from: &Endpoint, named: &[u8]) -> Result<Endpoint, String> {
    if named.len() > URL_LIMIT {
        return Err(format!("it is longer than {URL_LIMIT} bytes"));
    }
    let named = std::str::from_utf8(named).map_err(|_| "it is not a URL".to_owned())?.trim_ascii();
    // A fragment is not sent.
    let named = named.split('#').next().unwrap_or_default();
    if named.is_empty() {
        return Err("it is empty".to_owned());
    }
    let to = from.join(named).ok_or_else(|| "it is not a URL".to_owned())?;
    if !from.same_origin(&to) {
        let (host, port) = (to.host(), to.port());
        let scheme = if to.is_secure() { "https" } else { "http" };
        return Err(format!(
            "it is at another origin ({scheme}://{host}:{port}), where the credentials for this server must not be sent; \
             correct the public URL in the server's settings, or configure the URL that it names"
        ));
    }
    Ok(to)
}

/// Reads messages until the end, and says how it broke.
async fn read(shared: &Shared, mut reader: Reader<'_>) -> Redacted {
    let Ended(words) = loop {
        match reader.next().await {
            Ok(SseItem::Event(event)) if event.name.as_deref().is_none_or(|name| name == MESSAGE) => {
                hear(shared, &event.data);
            }
            // Where messages go was said once.
            Ok(SseItem::Event(_)) => {}
            Ok(SseItem::TooLong { seen, head }) => {
                let limit = shared.limits.length;
                let bad = if seen > limit { Bad::TooLong { limit } } else { Bad::NoRoom };
                unreadable(shared, lines::about(&head), bad, seen);
            }
            Err(ended) => break ended,
        }
    };
    // A server that was cut behind an answer has answered. Half a message is none: it does not parse.
    if let Some(event) = reader.sse.finish()
        && event.name.as_deref().is_none_or(|name| name == MESSAGE)
        && frame::parse_all(&event.data, shared.limits).is_ok()
    {
        hear(shared, &event.data);
    }
    words
}

/// One event's data: a message, or several.
fn hear(shared: &Shared, data: &Bytes) {
    if data.is_empty() {
        return;
    }
    let (frames, rest) = frame::parse_some(data, shared.limits);
    for frame in frames {
        let answers = matches!(frame.message(), Message::Response { .. }).then(|| frame.response_number());
        // Our own pings were answered when they were taken.
        if answers.flatten().is_some_and(|id| id >= PINGS) {
            continue;
        }
        if answers.is_some() && shared.is_greeted() {
            shared.served();
        }
        shared.listener.hear(Item::Frame(frame));
        if let Some(id) = answers.flatten() {
            shared.replies.answered(id);
        }
    }
    if let Some((rest, bad)) = rest {
        match lines::about(&rest) {
            About::Unknown => shared.listener.hear(Item::Noise(rest)),
            about => unreadable(shared, about, bad, rest.len()),
        }
    }
}

/// Whoever waits for a message that cannot be read waits for no other.
fn unreadable(shared: &Shared, about: About, bad: Bad, seen: usize) {
    let answers = if let About::Answer(id) = &about { frame::number(id) } else { None };
    shared.listener.hear(Item::Unreadable { about, bad, seen });
    if let Some(id) = answers {
        shared.replies.answered(id);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Endpoint, URL_LIMIT, endpoint};

    fn from() -> Endpoint {
        Endpoint::new("https://mcp.example.com/a/sse?key=k").unwrap()
    }

    #[test]
    fn messages_go_to_the_origin_of_the_stream_or_nowhere() {
        for (named, to) in [
            ("/messages?session_id=1", Some("https://mcp.example.com/messages?session_id=1")),
            ("messages/", Some("https://mcp.example.com/a/messages/")),
            ("?session_id=1", Some("https://mcp.example.com/a/sse?session_id=1")),
            (" /m#part ", Some("https://mcp.example.com/m")),
            ("https://MCP.example.com:443/m", Some("https://MCP.example.com:443/m")),
            ("http://mcp.example.com/m", None),
            ("https://mcp.example.com:8443/m", None),
            ("https://mcp.example.com.evil.example/m", None),
            ("https://mcp.example.com@evil.example/m", None),
            ("https://evil.example\\@mcp.example.com/m", None),
            ("//evil.example/m", None),
            ("///evil.example/m", None),
            // To a browser this is another host. It goes to this one.
            ("/\\evil.example/m", Some("https://mcp.example.com/\\evil.example/m")),
            ("javascript://mcp.example.com/%0aalert(1)", None),
            ("unix:/run/x.sock", Some("https://mcp.example.com/a/unix:/run/x.sock")),
            ("#", None),
            ("", None),
        ] {
            let found = endpoint(&from(), named.as_bytes());
            match to {
                Some(to) => assert_eq!(found.map(|found| found.to_string()).as_deref(), Ok(to), "{named}"),
                None => assert!(found.is_err_and(|words| !words.is_empty()), "{named}"),
            }
        }
        let long = format!("/{}", "x".repeat(URL_LIMIT));
        assert!(endpoint(&from(), long.as_bytes()).is_err());
        let socket = Endpoint::new("unix:/run/x.sock:/sse").unwrap();
        assert_eq!(endpoint(&socket, b"/m").map(|to| to.to_string()).as_deref(), Ok("unix:/run/x.sock:/m"));
        assert!(endpoint(&socket, b"http://localhost/m").is_err());
    }

    /// What could be an address, made of the parts that readers of addresses disagree about.
    fn spelt() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            Just("https:"),
            Just("http:"),
            Just("//"),
            Just("/"),
            Just("\\"),
            Just("@"),
            Just(":"),
            Just("443"),
            Just("mcp.example.com"),
            Just("evil.example"),
            Just("?"),
            Just("#"),
            Just("."),
            Just(".."),
            Just("%2f"),
            Just("[::1]"),
            Just(" "),
            Just("\t"),
            Just("\r\n"),
            Just("\u{0}"),
            Just("é"),
            Just("x"),
            Just("unix:"),
        ];
        proptest::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn whatever_is_named_is_at_the_origin_of_the_stream_and_fits_into_a_request(named in spelt()) {
            if let Ok(to) = endpoint(&from(), named.as_bytes()) {
                prop_assert!(to.same_origin(&from()), "{named:?} -> {to}");
                let host = to.host_header().to_str().unwrap().to_ascii_lowercase();
                prop_assert_eq!(host.trim_end_matches(":443"), "mcp.example.com");
                let path = to.path();
                prop_assert!(path.starts_with('/') && !path.contains(['\r', '\n', ' ', '#']), "{path:?}");
                prop_assert_eq!(to.origin_form().to_string(), path);
            }
        }

        #[test]
        fn any_bytes_are_read(named in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(to) = endpoint(&from(), &named) {
                prop_assert!(to.same_origin(&from()));
            }
        }
    }
}

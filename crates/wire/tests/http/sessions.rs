//! Sessions: when a caller carries its call itself, and what a ping on a session that may be gone says of it, and of a call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linetender_core::{LossReport, ServerRefusal};
use linetender_wire::http::Remote;
use linetender_wire::seam::{Event, Exchange, Listener, Loss, Outgoing, Refused};
use linetender_wire::{Item, Seen, frame};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::peer::{SOON, answer, approach, ok, read_request, server};

/// What the listener hears of.
enum News {
    Answer,
    Lost(Loss),
}

struct Ears(mpsc::UnboundedSender<News>);

impl Listener for Ears {
    fn hear(&self, _: Item) {
        let _ = self.0.send(News::Answer);
    }

    fn heard(&self) {}

    fn lost(&self, _: u64, loss: Loss) {
        let _ = self.0.send(News::Lost(loss));
    }

    fn gap(&self) {}
}

/// Longer than any refusal that is believed.
const LATE: Duration = Duration::from_millis(1100);

const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
const NO_STREAM: &str = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";

fn status(line: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The same response under the id of a ping, where it has a place for that.
fn with_id(response: &str, id: &str) -> String {
    match response.split_once("\r\n\r\n") {
        Some((_, body)) if body.contains("PING") => status("404 Not Found", &body.replace("PING", id)),
        _ => response.to_owned(),
    }
}

/// A refusal that does not say what it refuses.
fn bad_request() -> String {
    status(
        "400 Bad Request",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no valid session"}}"#,
    )
}

/// A server with a session, which answers a call and a ping in these words. A ping that it is to answer properly is one, and
/// so is the first: a server that refuses even that knows no pings.
async fn refusing(call: String, ping: Option<String>) -> Line {
    refusing_after(call, ping, false).await
}

/// The same, and it may take its time for the call.
async fn refusing_after(call: String, ping: Option<String>, late: bool) -> Line {
    begun(call, ping, late, false).await
}

/// A server that refuses pings on any session like this, and runs calls.
async fn pingless(call: String, ping: String) -> Line {
    begun(call, Some(ping), false, true).await
}

async fn begun(call: String, ping: Option<String>, late: bool, pingless: bool) -> Line {
    let pinged = watch::Sender::new(false);
    let (at, _) = server(move |_, mut stream| {
        let (call, ping, pinged) = (call.clone(), ping.clone(), pinged.clone());
        async move {
            while let Some(request) = read_request(&mut stream).await {
                let said = if request.starts_with("GET") {
                    NO_STREAM.to_owned()
                } else if request.contains("notifications/") {
                    ACCEPTED.to_owned()
                } else if request.contains(r#""method":"initialize""#) {
                    ok(INITIALIZED).replace("\r\n\r\n", "\r\nMcp-Session-Id: s\r\n\r\n")
                } else if request.contains(r#""method":"tools/list""#) {
                    let id = request.rsplit_once(r#""id":"#).unwrap().1;
                    let id: String = id.chars().take_while(char::is_ascii_digit).collect();
                    ok(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[]}}}}"#))
                } else if request.contains(r#""method":"ping""#) {
                    let id = request.rsplit_once(r#""id":"#).unwrap().1;
                    let id: String = id.chars().take_while(char::is_ascii_digit).collect();
                    let again = pinged.send_replace(true) || pingless;
                    ping.as_ref().filter(|_| again).map_or_else(
                        || ok(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)),
                        |ping| with_id(ping, &id),
                    )
                } else {
                    if request.contains("tools/call")
                        && request.to_ascii_lowercase().contains("mcp-session-id")
                    {
                        let _ = pinged.subscribe().wait_for(|pinged| *pinged).await;
                    }
                    if late {
                        tokio::time::sleep(LATE).await;
                    }
                    call.clone()
                };
                answer(&mut stream, &said).await;
            }
        }
    })
    .await;
    line_to(at)
}

/// A line to a server made by hand.
fn line_to(at: SocketAddr) -> Line {
    let ((tell, news), (events, told)) = (mpsc::unbounded_channel(), mpsc::channel(100));
    let approach = approach(at);
    Line { remote: Remote::launch(approach, Arc::new(Ears(tell)), events), news, told }
}

struct Line {
    remote: Remote,
    news: mpsc::UnboundedReceiver<News>,
    told: mpsc::Receiver<Event>,
}

fn request(id: u64, method: &str, params: Option<&str>) -> Outgoing {
    Outgoing::frame(frame::request(id, method, params), None)
}

fn notice(method: &str, params: Option<&str>) -> Outgoing {
    Outgoing::text(frame::notification(method, params), None)
}

impl Line {
    fn say(&self, what: Outgoing) {
        self.remote.outbox().send(what).unwrap();
    }

    async fn news(&mut self) -> News {
        timeout(SOON, self.news.recv()).await.expect("something is heard in time").unwrap()
    }

    /// Shakes hands, and makes a call.
    async fn call(&mut self) -> News {
        self.say(request(1, "initialize", Some("{}")));
        assert!(matches!(self.news().await, News::Answer));
        self.say(notice("notifications/initialized", None));
        self.say(request(2, "tools/call", Some(r#"{"name":"t"}"#)));
        self.news().await
    }

    fn carry(&self, what: Outgoing) -> Result<Option<Exchange>, Refused> {
        self.remote.outbox().carry(what)
    }

    /// Makes a call, and says whether its caller carries it.
    fn is_carried(&self) -> bool {
        matches!(self.carry(request(3, "tools/call", Some(r#"{"name":"t"}"#))), Ok(Some(_)))
    }

    /// The next thing that is told of the generation, beside that something came.
    async fn told(&mut self) -> Event {
        loop {
            match timeout(SOON, self.told.recv()).await.expect("something is told in time").unwrap() {
                Event::FirstByte => {}
                event => return event,
            }
        }
    }
}

#[tokio::test]
async fn a_ping_that_is_refused_in_the_same_way_makes_it_a_lost_session() {
    let mut line = refusing(bad_request(), Some(bad_request())).await;
    let News::Lost(loss) = line.call().await else { panic!("it is no answer") };
    assert_eq!(loss.report, LossReport::Refused(ServerRefusal::SessionLost));
    assert_eq!(line.told().await, Event::Lost(Seen::SessionNeverKnown));
}

#[tokio::test]
async fn a_ping_that_fails_in_another_way_proves_nothing_of_the_call() {
    for ping in ["404 Not Found", "503 Service Unavailable", "502 Bad Gateway", "429 Too Many Requests"] {
        let mut line = refusing(bad_request(), Some(status(ping, ""))).await;
        let News::Lost(loss) = line.call().await else { panic!("{ping}: it is no answer") };
        assert_eq!(loss.report, LossReport::Nothing, "{ping}");
        let event = line.told().await;
        if matches!(ping, "404 Not Found" | "503 Service Unavailable") {
            assert_eq!(
                event,
                Event::Lost(Seen::SessionNeverKnown),
                "{ping}: the session is begun anew all the same"
            );
        } else {
            let words = loss.seen.to_string();
            assert!(words.contains("no valid session") && words.contains("ping"), "{ping}: {words}");
            assert!(matches!(event, Event::Trouble(_)), "{ping}: {event:?}");
        }
    }
}

#[tokio::test]
async fn what_the_server_said_is_told_although_no_ping_made_it_clear() {
    let away = status("503 Service Unavailable", r#"{"detail":"maintenance"}"#);
    let mut line = refusing(away, Some(status("502 Bad Gateway", ""))).await;
    let News::Lost(loss) = line.call().await else { panic!("it is no answer") };
    let words = loss.seen.to_string();
    assert!(words.contains("503") && words.contains("maintenance"), "{words}");
}

#[tokio::test]
async fn h19_a_refusal_without_our_id_on_a_session_that_lives_proves_nothing() {
    let page = "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    for (call, words) in [(bad_request(), "no valid session"), (page.to_owned(), "session affinity")] {
        let mut line = refusing(call, None).await;
        let News::Lost(loss) = line.call().await else { panic!("it is no answer") };
        assert_eq!(loss.report, LossReport::Nothing);
        let seen = loss.seen.to_string();
        assert!(
            seen.contains(words) && seen.contains("a ping on the same session succeeded afterwards"),
            "{seen}"
        );
    }
}

#[tokio::test]
async fn h19_a_refusal_that_comes_late_proves_nothing_and_the_session_is_begun_anew() {
    let gone = || {
        let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
        status("404 Not Found", body)
    };
    for (late, report) in
        [(false, LossReport::Refused(ServerRefusal::SessionLost)), (true, LossReport::Nothing)]
    {
        let mut line = refusing_after(gone(), Some(gone()), late).await;
        let News::Lost(loss) = line.call().await else { panic!("it is no answer") };
        assert_eq!(loss.report, report, "late: {late}");
        assert_eq!(line.told().await, Event::Lost(Seen::SessionNeverKnown), "late: {late}");
    }
}

#[tokio::test]
async fn h18_a_session_that_is_refused_under_our_id_is_lost_only_if_a_ping_confirms_it() {
    let gone = |id: &str| {
        let error = r#"{"code":-32001,"message":"Session not found"}"#;
        status("404 Not Found", &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    };
    let mut line = refusing(gone("2"), Some(gone("PING"))).await;
    let News::Lost(loss) = line.call().await else { panic!("its ping was refused too") };
    assert_eq!(loss.report, LossReport::Refused(ServerRefusal::SessionLost));
    assert_eq!(line.told().await, Event::Lost(Seen::SessionNeverKnown));
    let mut line = refusing(gone("2"), None).await;
    assert!(matches!(line.call().await, News::Answer), "the session lives, so it is the tool's answer");
}

#[tokio::test]
async fn a_server_that_knows_no_pings_is_asked_for_a_list_and_its_refusals_prove_nothing() {
    let absent = || status("404 Not Found", r#"{"detail":"Not Found"}"#);
    let mut line = pingless(absent(), absent()).await;
    let News::Lost(loss) = line.call().await else { panic!("it is no answer") };
    assert_eq!(loss.report, LossReport::Nothing, "it ran, and said 404");
    // The session was not given up: what the tender asks is answered, though it is refused.
    line.say(request(9, "ping", None));
    assert!(matches!(line.news().await, News::Answer));
}

/// Events, and then the end of the connection.
fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{text}")
}

/// MCP 2025-11-25 lets a server end a stream after an event id, and its client poll for the rest.
#[tokio::test]
async fn a_stream_that_is_polled_is_taken_up_for_as_long_as_it_brings_something() {
    let (at, _server) = server(|_, mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            let lower = request.to_ascii_lowercase();
            let last =
                lower.lines().find_map(|line| line.strip_prefix("last-event-id: ")?.parse::<u32>().ok());
            let said = match last {
                // The answer, and the end right behind it: no empty line.
                Some(7) => events(r#"data: {"jsonrpc":"2.0","id":2,"result":{}}"#),
                Some(last) => events(&format!("id: {}\nretry: 1\ndata:\n\n", last + 1)),
                None if request.starts_with("GET") => NO_STREAM.to_owned(),
                None if request.contains("notifications/") => ACCEPTED.to_owned(),
                None if request.contains("tools/call") => events("id: 1\nretry: 1\ndata:\n\n"),
                None if request.contains("initialize") => ok(INITIALIZED),
                None => status("404 Not Found", ""),
            };
            answer(&mut stream, &said).await;
            if said.contains("Connection: close") {
                return;
            }
        }
    })
    .await;
    let mut line = line_to(at);
    assert!(matches!(line.call().await, News::Answer), "it came after seven polls");
}

#[tokio::test]
async fn a_reply_to_another_request_is_nobodys_answer_and_ends_its_connection() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let (at, _server) = server(move |_, mut stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            while let Some(request) = read_request(&mut stream).await {
                let id = request.rsplit_once(r#""id":"#).map_or("", |(_, rest)| rest);
                let id: String = id.chars().take_while(char::is_ascii_digit).collect();
                let other = if request.contains("tools/call") { "777".to_owned() } else { id };
                answer(&mut stream, &ok(&format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#))).await;
            }
        }
    })
    .await;
    let mut line = line_to(at);
    line.say(request(1, "server/discover", Some("{}")));
    assert!(matches!(line.news().await, News::Answer));
    line.say(request(2, "tools/call", Some(r#"{"name":"t"}"#)));
    let News::Lost(loss) = line.news().await else { panic!("it is another's") };
    assert_eq!(loss.report, LossReport::Nothing);
    assert!(loss.seen.to_string().contains("carries the id of another request"), "{}", loss.seen);
    line.say(request(3, "tools/list", None));
    assert!(matches!(line.news().await, News::Answer));
    assert_eq!(connections.load(Ordering::Relaxed), 2, "nothing else was asked on the first");
}

#[tokio::test]
async fn after_the_handshake_of_either_era_a_caller_carries_its_own_call() {
    let discovered = ok(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    for (hello, then) in [("initialize", true), ("server/discover", false)] {
        let mut line = refusing(discovered.clone(), None).await;
        assert!(!line.is_carried(), "{hello}: nothing overtakes it");
        line.say(request(1, hello, Some("{}")));
        while !matches!(line.news().await, News::Answer) {}
        if then {
            line.say(notice("notifications/initialized", None));
        }
        let carried = async {
            while !line.is_carried() {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, carried).await.expect("its caller has it");
        let told = notice("notifications/a", None);
        assert!(matches!(line.carry(told), Ok(None)), "{hello}: nobody would carry a notification");
        line.remote.outbox().seal();
        let call = request(4, "tools/call", None);
        assert!(matches!(line.carry(call), Err(Refused::Sealed)), "{hello}: none begins after the end");
    }
}

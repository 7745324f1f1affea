//! H28: servers that send events again when a stream is resumed behind them, and the stream that never brings the answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linetender_core::LossReport;
use linetender_wire::frame::{self, Message};
use linetender_wire::http::Remote;
use linetender_wire::seam::{Event, Listener, Loss, Outgoing};
use linetender_wire::{Item, Seen};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::peer::{SOON, answer, approach, ok, read_request, server};

const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#;
const NO_STREAM: &str = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

enum News {
    Answer,
    Notice(String),
    Lost(Loss),
}

struct Ears(mpsc::UnboundedSender<News>);

impl Listener for Ears {
    fn hear(&self, item: Item) {
        let Item::Frame(frame) = item else { return };
        let news = match frame.message() {
            Message::Notification { params, .. } => News::Notice(params.unwrap_or_default().to_owned()),
            Message::Response { .. } => News::Answer,
            Message::Request { .. } => return,
        };
        let _ = self.0.send(news);
    }

    fn heard(&self) {}

    fn lost(&self, _: u64, loss: Loss) {
        let _ = self.0.send(News::Lost(loss));
    }

    fn gap(&self) {}
}

struct Line {
    remote: Remote,
    news: mpsc::UnboundedReceiver<News>,
    _told: mpsc::Receiver<Event>,
    resumed: Arc<AtomicUsize>,
}

fn event(id: &str, text: &str) -> String {
    format!(
        "id: {id}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{text}\"}}\n\n"
    )
}

fn result() -> String {
    "id: end\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n".to_owned()
}

/// A server that answers a call with these events, and a request to go on behind one with what `resume` makes of its number.
async fn resumes(first: String, resume: impl Fn(usize) -> String + Send + Sync + 'static) -> Line {
    let (resume, resumed) = (Arc::new(resume), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&resumed);
    let serve = move |_, mut stream: TcpStream| {
        let (first, resume, count) = (first.clone(), Arc::clone(&resume), Arc::clone(&count));
        async move {
            while let Some(request) = read_request(&mut stream).await {
                if request.contains("tools/call") {
                    return answer(&mut stream, &format!("{STREAM}{first}")).await;
                }
                if request.to_ascii_lowercase().contains("last-event-id") {
                    let events = resume(count.fetch_add(1, Ordering::SeqCst));
                    return answer(&mut stream, &format!("{STREAM}{events}")).await;
                }
                let said = if request.starts_with("GET") {
                    NO_STREAM.to_owned()
                } else if request.contains("notifications/") {
                    ACCEPTED.to_owned()
                } else {
                    ok(INITIALIZED)
                };
                answer(&mut stream, &said).await;
            }
        }
    };
    let (at, _): (SocketAddr, _) = server(serve).await;
    let ((tell, news), (events, told)) = (mpsc::unbounded_channel(), mpsc::channel(100));
    let remote = Remote::launch(approach(at), Arc::new(Ears(tell)), events);
    Line { remote, news, _told: told, resumed }
}

impl Line {
    fn say(&self, what: Outgoing) {
        self.remote.outbox().send(what).unwrap();
    }

    async fn news(&mut self) -> News {
        timeout(SOON, self.news.recv()).await.expect("something is heard in time").unwrap()
    }

    /// Makes a call: what its caller is told on the way, how it ends, and how often the stream was resumed.
    async fn call(mut self) -> (Vec<String>, Option<Loss>, usize) {
        self.say(Outgoing::frame(frame::request(1, "initialize", Some("{}")), None));
        assert!(matches!(self.news().await, News::Answer));
        self.say(Outgoing::text(frame::notification("notifications/initialized", None), None));
        self.say(Outgoing::frame(frame::request(2, "tools/call", Some(r#"{"name":"t"}"#)), None));
        let mut notices = Vec::new();
        let loss = loop {
            match self.news().await {
                News::Notice(text) => notices.push(text.trim_matches('"').to_owned()),
                News::Answer => break None,
                News::Lost(loss) => break Some(loss),
            }
        };
        (notices, loss, self.resumed.load(Ordering::SeqCst))
    }
}

fn is_unknown(loss: Option<&Loss>) -> bool {
    loss.is_some_and(|loss| loss.report == LossReport::Nothing && matches!(*loss.seen, Seen::Unusable { .. }))
}

#[tokio::test]
async fn h28_a_stream_that_is_resumed_with_the_same_event_for_ever_is_given_up_and_the_event_passed_on_once()
{
    let line = resumes(event("e1", "one"), |_| event("e1", "one")).await;
    let (notices, loss, resumed) = line.call().await;
    assert_eq!((notices, resumed), (vec!["one".to_owned()], 3));
    assert!(is_unknown(loss.as_ref()), "{loss:?}");
}

#[tokio::test]
async fn h28_a_stream_that_begins_anew_for_ever_is_given_up_and_each_event_passed_on_once() {
    let all = || ["1", "2", "3"].map(|id| event(id, id)).concat();
    let line = resumes(event("1", "1"), move |_| all()).await;
    let (notices, loss, resumed) = line.call().await;
    // The first time there was something new.
    assert_eq!((notices, resumed), (["1", "2", "3"].map(str::to_owned).to_vec(), 4));
    assert!(is_unknown(loss.as_ref()), "{loss:?}");
}

#[tokio::test]
async fn h28_a_server_that_sends_the_last_event_again_and_goes_on_is_heard_to_the_end() {
    let going_on = |number: usize| {
        let (last, next) = (number.to_string(), (number + 1).to_string());
        let end = if number == 6 { result() } else { String::new() };
        event(&last, &last) + &event(&next, &next) + &end
    };
    let line = resumes(event("0", "0"), going_on).await;
    let (notices, loss, resumed) = line.call().await;
    assert_eq!((notices, resumed), ((0..=7).map(|id| id.to_string()).collect(), 7));
    assert!(loss.is_none(), "{loss:?}");
}

/// Their ids tell nothing, so nothing is hidden because of them, and nothing counts as progress.
#[tokio::test]
async fn h28_a_server_with_one_id_for_all_events_loses_none_of_them_and_is_given_up() {
    let line = resumes(event("x", "a") + &event("x", "b"), |number| event("x", &format!("c{number}"))).await;
    let (notices, loss, resumed) = line.call().await;
    assert_eq!((notices, resumed), (["a", "b", "c0", "c1", "c2"].map(str::to_owned).to_vec(), 3));
    assert!(is_unknown(loss.as_ref()), "{loss:?}");
}

/// A server with news whenever it is asked, and never the answer, decides neither how often it is asked.
#[tokio::test]
async fn h28_a_server_that_never_comes_to_the_answer_is_asked_ever_more_seldom() {
    let line = resumes(event("new", "n"), |number| format!("retry: 0\nid: {number}\ndata:\n\n")).await;
    let resumed = Arc::clone(&line.resumed);
    let ended = timeout(Duration::from_secs(4), line.call()).await;
    assert!(ended.is_err(), "it goes on");
    // Eight waits of 100 ms, then eight of 200 ms, then of 400 ms.
    let resumed = resumed.load(Ordering::SeqCst);
    assert!((3..=21).contains(&resumed), "{resumed}");
}

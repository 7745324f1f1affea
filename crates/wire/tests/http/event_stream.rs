//! HTTP+SSE of 2024-11-05: what is heard on the stream, and which calls are lost with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linetender_core::LossReport;
use linetender_wire::http::{Remote, Way};
use linetender_wire::seam::{Event, Listener, Loss, Outgoing};
use linetender_wire::{Item, Seen, frame};
use tokio::sync::{broadcast, mpsc};
use tokio::time::timeout;

use crate::peer::{SOON, answer, approach, read_request, server};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const ENDPOINT: &str = "event: endpoint\ndata: /messages?session_id=1\n\n";
const TAKEN: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted";

/// What the listener hears of.
#[derive(Debug)]
enum News {
    Heard(Item),
    Lost(u64, Loss),
}

struct Ears {
    news: mpsc::UnboundedSender<News>,
    signs: Arc<AtomicUsize>,
}

impl Listener for Ears {
    fn hear(&self, item: Item) {
        let _ = self.news.send(News::Heard(item));
    }

    fn heard(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self, id: u64, loss: Loss) {
        let _ = self.news.send(News::Lost(id, loss));
    }

    fn gap(&self) {}
}

/// A generation whose handshake is done, and the hand that writes on its stream.
struct Held {
    remote: Remote,
    says: broadcast::Sender<String>,
    news: mpsc::UnboundedReceiver<News>,
    told: mpsc::Receiver<Event>,
    /// The requests that were posted, in any order.
    posted: mpsc::UnboundedReceiver<String>,
    signs: Arc<AtomicUsize>,
}

/// Says this on the stream; nothing is its end.
async fn held() -> Held {
    let says = broadcast::Sender::<String>::new(64);
    let (saw, posted) = mpsc::unbounded_channel();
    let speaks = says.clone();
    let (at, _) = server(move |_, mut stream| {
        let (mut said, saw) = (speaks.subscribe(), saw.clone());
        async move {
            while let Some(request) = read_request(&mut stream).await {
                if request.starts_with("GET") {
                    answer(&mut stream, &format!("{STREAM}{ENDPOINT}")).await;
                    while let Ok(text) = said.recv().await
                        && !text.is_empty()
                    {
                        answer(&mut stream, &text).await;
                    }
                    return;
                }
                answer(&mut stream, TAKEN).await;
                let _ = saw.send(request);
            }
        }
    })
    .await;
    let ((tell, news), (events, told)) = (mpsc::unbounded_channel(), mpsc::channel(1000));
    let signs = Arc::new(AtomicUsize::new(0));
    let ears = Arc::new(Ears { news: tell, signs: Arc::clone(&signs) });
    let mut approach = approach(at);
    approach.way = Way::EventStream;
    let remote = Remote::launch(approach, ears, events);
    let mut held = Held { remote, says, news, told, posted, signs };
    held.ask(1, "initialize").await;
    held.answers(1);
    assert!(
        matches!(held.next().await, News::Heard(Item::Frame(frame)) if frame.response_number() == Some(1))
    );
    let initialized = frame::notification("notifications/initialized", None);
    held.remote.outbox().send(Outgoing::text(initialized, None)).unwrap();
    held.posts("notifications/initialized").await;
    held
}

fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

impl Held {
    /// Asks something, and waits until it was taken.
    async fn ask(&mut self, id: u64, method: &str) {
        let outgoing = Outgoing::frame(frame::request(id, method, None), None);
        self.remote.outbox().send(outgoing).unwrap();
        self.posts(&format!(r#""id":{id},"#)).await;
    }

    /// Until something was posted that holds this. Our own pings are among what is posted.
    async fn posts(&mut self, what: &str) -> String {
        loop {
            let posted = timeout(SOON, self.posted.recv()).await.expect("posted in time").unwrap();
            if posted.contains(what) {
                return posted;
            }
        }
    }

    fn say(&self, text: &str) {
        self.says.send(text.to_owned()).unwrap();
    }

    fn answers(&self, id: u64) {
        self.say(&format!("event: message\r\ndata: {}\r\n\r\n", result(id)));
    }

    fn end(&self) {
        self.say("");
    }

    async fn next(&mut self) -> News {
        timeout(SOON, self.news.recv()).await.expect("heard in time").unwrap()
    }

    async fn hears(&mut self, id: u64) {
        let news = self.next().await;
        let News::Heard(Item::Frame(frame)) = &news else { panic!("{id}: {news:?}") };
        assert_eq!(frame.response_number(), Some(id), "{news:?}");
    }

    /// How it ended.
    async fn ended(&mut self) -> Seen {
        loop {
            match timeout(SOON, self.told.recv()).await.expect("told in time").unwrap() {
                Event::Lost(seen) => return seen,
                Event::FirstByte => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn only_what_was_taken_and_not_answered_is_lost_with_the_stream() {
    let mut held = held().await;
    for id in [2, 3, 4, 5] {
        held.ask(id, "tools/call").await;
    }
    for id in [4, 2] {
        held.answers(id);
        held.hears(id).await;
    }
    held.end();
    assert!(matches!(held.ended().await, Seen::StreamEnded { .. }));
    let mut lost = Vec::new();
    for _ in 0..2 {
        let News::Lost(id, loss) = held.next().await else { panic!("nothing more is said") };
        assert_eq!(loss.report, LossReport::Nothing, "it may have run");
        lost.push(id);
    }
    lost.sort_unstable();
    assert_eq!(lost, [3, 5]);
    assert!(held.news.try_recv().is_err(), "each is told once, and those that were answered are over");
}

#[tokio::test]
async fn messages_go_where_the_stream_says_and_our_own_pings_are_heard_by_nobody() {
    let mut held = held().await;
    let ping = held.posts(r#""method":"ping""#).await;
    assert!(ping.starts_with("POST /messages?session_id=1 HTTP/1.1\r\n"), "{ping}");
    let id: u64 = ping.rsplit_once(r#""id":"#).unwrap().1.split(',').next().unwrap().parse().unwrap();
    held.answers(id);
    // Another place is not gone to.
    held.say("event: endpoint\ndata: /elsewhere\n\n");
    // Only events that are messages are.
    held.say(&format!("event: note\ndata: {}\n\n", result(2)));
    let outgoing = Outgoing::frame(frame::request(2, "tools/list", None), None);
    held.remote.outbox().send(outgoing).unwrap();
    let posted = held.posts("tools/list").await;
    assert!(posted.starts_with("POST /messages?session_id=1 "), "{posted}");
    held.answers(2);
    held.hears(2).await;
    held.end();
    held.ended().await;
    assert!(held.news.try_recv().is_err(), "nothing else was heard");
}

#[tokio::test]
async fn comments_are_no_sign_of_life_and_pieces_of_a_message_are() {
    let mut held = held().await;
    held.ask(2, "tools/call").await;
    let signs = held.signs.load(Ordering::Relaxed);
    for _ in 0..20 {
        held.say(": ping\n\n");
    }
    let text = format!("data: {}\n\n", result(2));
    let (piece, rest) = text.split_at(20);
    held.say(piece);
    timeout(SOON, async {
        while held.signs.load(Ordering::Relaxed) == signs {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("half a message is a sign");
    assert_eq!(held.signs.load(Ordering::Relaxed), signs + 1, "twenty comments are none");
    held.say(rest);
    held.hears(2).await;
}

#[tokio::test]
async fn a_server_that_was_cut_behind_its_answer_has_answered() {
    let mut held = held().await;
    held.ask(2, "tools/call").await;
    held.ask(3, "tools/call").await;
    held.say(&format!("data: {}", result(2)));
    held.end();
    held.hears(2).await;
    held.ended().await;
    let News::Lost(3, _) = held.next().await else { panic!("the other one has no answer") };
    assert!(held.news.try_recv().is_err());
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_nobody_elses() {
    let mut held = held().await;
    held.ask(2, "tools/call").await;
    held.say("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\n\n");
    let news = held.next().await;
    assert!(matches!(&news, News::Heard(Item::Unreadable { .. })), "{news:?}");
    held.end();
    held.ended().await;
    assert!(held.news.try_recv().is_err(), "it was told once");
}

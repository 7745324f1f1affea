//! H21, H22, H26: what a server says that is about no call, exchanges that no caller waits for, and cookies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linetender_core::Extent;
use linetender_wire::Item;
use linetender_wire::frame::{self, Message};
use linetender_wire::http::Remote;
use linetender_wire::seam::{Event, Listener, Loss, Outgoing, Ticket};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::peer::{SOON, answer, approach, ok, read_request, server};

struct Ears(mpsc::UnboundedSender<Item>);

impl Listener for Ears {
    fn hear(&self, item: Item) {
        let _ = self.0.send(item);
    }

    fn heard(&self) {}

    fn lost(&self, id: u64, loss: Loss) {
        panic!("{id} was lost: {}", loss.seen);
    }

    fn gap(&self) {}
}

const STRAY: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"about nobody"}}"#;
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

fn launch(at: std::net::SocketAddr) -> (Remote, mpsc::UnboundedReceiver<Item>, mpsc::Receiver<Event>) {
    let approach = approach(at);
    let ((tell, heard), (events, told)) = (mpsc::unbounded_channel(), mpsc::channel(1000));
    (Remote::launch(approach, Arc::new(Ears(tell)), events), heard, told)
}

fn say(remote: &Remote, id: u64, method: &str) {
    remote.outbox().send(Outgoing::frame(frame::request(id, method, None), None)).unwrap();
}

fn notify(remote: &Remote, method: &str) {
    remote.outbox().send(Outgoing::text(frame::notification(method, None), None)).unwrap();
}

async fn next(heard: &mut mpsc::UnboundedReceiver<Item>) -> Item {
    timeout(SOON, heard.recv()).await.expect("something is heard in time").unwrap()
}

fn answers(item: &Item, id: u64) -> bool {
    matches!(item, Item::Frame(frame) if frame.response_number() == Some(id))
}

#[tokio::test]
async fn h21_an_error_without_an_id_on_the_servers_own_stream_is_about_no_call() {
    let (at, _server) = server(|_, mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            let said = if request.starts_with("GET") {
                format!("{STREAM}data: {STRAY}\n\n")
            } else if request.contains("notifications/") {
                "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned()
            } else if request.contains(r#""method":"initialize""#) {
                ok(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#)
            } else {
                // A call's own stream: an error without an id there is about that call.
                format!("{STREAM}data: {STRAY}\n\n")
            };
            answer(&mut stream, &said).await;
        }
    })
    .await;
    let (remote, mut heard, _told) = launch(at);
    say(&remote, 1, "initialize");
    assert!(answers(&next(&mut heard).await, 1));
    notify(&remote, "notifications/initialized");
    let stray = next(&mut heard).await;
    assert!(matches!(&stray, Item::Noise(text) if text.ends_with(STRAY.as_bytes())), "{stray:?}");
    say(&remote, 2, "tools/call");
    let item = next(&mut heard).await;
    assert!(answers(&item, 2), "{item:?}");
    assert!(
        !matches!(&item, Item::Frame(frame) if matches!(frame.message(), Message::Response { id: None, .. }))
    );
}

#[tokio::test]
async fn h22_notifications_that_are_never_answered_hold_a_bounded_number_of_connections_for_a_bounded_time() {
    let open = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    let (counted, all) = (Arc::clone(&open), Arc::clone(&begun));
    let (at, _server) = server(move |_, mut stream| {
        let (open, begun) = (Arc::clone(&counted), Arc::clone(&all));
        async move {
            while let Some(request) = read_request(&mut stream).await {
                if request.contains("notifications/") {
                    open.fetch_add(1, Ordering::SeqCst);
                    begun.fetch_add(1, Ordering::SeqCst);
                    // It says nothing until its client hangs up.
                    read_request(&mut stream).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                    return;
                }
                answer(&mut stream, &ok(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#)).await;
            }
        }
    })
    .await;
    let (remote, mut heard, _told) = launch(at);
    for _ in 0..60 {
        notify(&remote, "notifications/cancelled");
    }
    say(&remote, 7, "tools/call");
    assert!(answers(&next(&mut heard).await, 7), "calls pass by");
    wait_until(|| open.load(Ordering::SeqCst) == 8).await;
    assert_eq!(begun.load(Ordering::SeqCst), 8, "the others wait");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    wait_until(|| begun.load(Ordering::SeqCst) == 16 && open.load(Ordering::SeqCst) == 8).await;
}

#[tokio::test]
async fn h26_a_session_sends_back_the_cookies_that_keep_it_at_its_server() {
    let (at, _server) = server(|_, mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            let said = if request.contains(r#""method":"initialize""#) {
                assert!(!request.contains("cookie"), "{request}");
                ok(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#)
                    .replace("\r\n\r\n", "\r\nSet-Cookie: route=a1; Path=/; HttpOnly\r\n\r\n")
            } else if request.contains("cookie: route=a1\r\n") {
                ok(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
            } else {
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()
            };
            answer(&mut stream, &said).await;
        }
    })
    .await;
    let (remote, mut heard, _told) = launch(at);
    say(&remote, 1, "initialize");
    assert!(answers(&next(&mut heard).await, 1));
    say(&remote, 2, "tools/call");
    assert!(answers(&next(&mut heard).await, 2));
}

/// A call whose caller went away before it was written.
struct Withdrawn;

impl Ticket for Withdrawn {
    fn writing(&self, _: Extent) -> bool {
        false
    }

    fn flushed(&self) {}
}

#[tokio::test]
async fn a_caller_that_goes_away_while_a_connection_is_made_makes_no_server_suspect() {
    let (at, _server) = server(|_, mut stream| async move {
        while read_request(&mut stream).await.is_some() {
            answer(&mut stream, &ok(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#)).await;
        }
    })
    .await;
    let (remote, mut heard, mut told) = launch(at);
    let withdrawn = Outgoing::frame(frame::request(5, "tools/call", None), Some(Arc::new(Withdrawn)));
    remote.outbox().send(withdrawn).unwrap();
    say(&remote, 7, "tools/call");
    assert!(answers(&next(&mut heard).await, 7));
    remote.kill();
    while let Some(event) = timeout(SOON, told.recv()).await.expect("it ends in time") {
        assert!(!matches!(event, Event::Trouble(_)), "{event:?}");
        if event == Event::Gone {
            break;
        }
    }
}

async fn wait_until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, waiting).await.expect("in time");
}

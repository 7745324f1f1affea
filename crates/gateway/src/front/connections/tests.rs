//! Peers who are slow, idle or deaf, over real sockets and in virtual time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{ASKS, Entrance, PING, serve};
use crate::budget::{Budget, Owner};
use crate::config::Settings;
use crate::front::activity::{BUFFER, HEAD, IDLE, UNREAD};
use crate::front::doors::Doors;
use crate::front::places::Places;
use crate::front::sent::Unread;
use crate::front::{body, reply, upload};

/// How large one is that gives way to nobody by itself.
const SMALL: usize = 50 * 1024;

/// How large an answer is that no socket takes whole.
const LARGE: usize = 64 * 1024 * 1024;

/// A house with so many places. It stands for as long as what is returned.
async fn house(places: usize) -> (JoinSet<()>, watch::Sender<bool>, SocketAddr) {
    house_within(places, usize::MAX).await
}

/// The same with so much memory for answers.
async fn house_within(places: usize, bytes: usize) -> (JoinSet<()>, watch::Sender<bool>, SocketAddr) {
    house_drawing_on(places, Budget::new(bytes)).await
}

/// The same on this budget.
async fn house_drawing_on(places: usize, memory: Budget) -> (JoinSet<()>, watch::Sender<bool>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (closing, closes) = watch::channel(false);
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/large", get(async || vec![b'x'; LARGE]))
        .route("/late", get(late))
        .route("/counted", get(counted))
        .route("/small", get(async || vec![b'x'; SMALL]))
        .route("/never", get(std::future::pending::<String>).post(std::future::pending::<String>))
        .route(
            "/",
            post(async |request: axum::extract::Request| {
                let budget = Budget::new(usize::MAX);
                let read = upload::whole(request.into_body(), 1024 * 1024, &budget, Owner::default()).await;
                read.map_or_else(|cut| format!("{cut:?}"), |(body, _)| format!("{} bytes", body.len()))
            }),
        );
    let mut tasks = JoinSet::new();
    let settings = Settings::default();
    let entrance = Entrance::new(&settings, None, router, memory, ASKS);
    let doors = Doors::over(&settings, listener).unwrap().open;
    tasks.spawn(serve(doors, Places::new(places), entrance, closes));
    (tasks, closing, at)
}

/// Waits for sockets while the clock stands still. A paused clock runs ahead to the next timer whenever nothing is ready, and
/// what the kernel is still moving from one socket to the other is not: on a busy machine that timer is the one under test.
async fn in_no_time<T>(socket: impl Future<Output = T>) -> T {
    let (done, waits) = std::sync::mpsc::channel::<()>();
    // No paused clock runs ahead of a blocking task.
    let holds = tokio::task::spawn_blocking(move || waits.recv());
    let result = socket.await;
    drop(done);
    let _ = holds.await;
    result
}

/// How many answers of a kilobyte were made.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

async fn counted() -> Vec<u8> {
    COUNTED.fetch_add(1, Ordering::Relaxed);
    vec![b'x'; 1024]
}

/// A stream, on which something is said at once.
async fn late(request: axum::extract::Request) -> axum::response::Response {
    let (out, body) = body::stream();
    let piece = Unread::of(request.extensions()).counts(Bytes::from(vec![b'x'; SMALL]).into());
    out.send(piece).await.unwrap();
    reply::events(body)
}

async fn asks(stream: &mut TcpStream) -> bool {
    if stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.is_err() {
        return false;
    }
    let mut answer = Vec::new();
    while !answer.ends_with(b"here") {
        if !matches!(stream.read_buf(&mut answer).await, Ok(read) if read > 0) {
            return false;
        }
    }
    true
}

async fn is_hung_up_on(stream: &mut TcpStream) {
    let read = stream.read(&mut [0]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "it was not hung up on");
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_now_and_then_keeps_a_place() {
    let (_tasks, _closing, at) = house(1).await;
    let mut agent = TcpStream::connect(at).await.unwrap();
    for _ in 0..4 {
        tokio::time::sleep(IDLE * 3 / 4).await;
        assert!(asks(&mut agent).await, "it was hung up on");
    }
    let begun = Instant::now();
    is_hung_up_on(&mut agent).await;
    assert!(begun.elapsed() >= IDLE, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn o08_idle_connections_give_way_at_once() {
    let (_tasks, _closing, at) = house(4).await;
    let begun = Instant::now();
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(TcpStream::connect(at).await.unwrap());
    }
    for _ in 0..8 {
        assert!(asks(&mut TcpStream::connect(at).await.unwrap()).await);
    }
    assert!(begun.elapsed() < HEAD, "{:?}", begun.elapsed());
    is_hung_up_on(&mut idle[0]).await;
}

#[tokio::test(start_paused = true)]
async fn o08_a_call_under_way_keeps_its_place() {
    let (_tasks, _closing, at) = house(2).await;
    let mut waits = TcpStream::connect(at).await.unwrap();
    waits.write_all(b"POST /never HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    for _ in 0..8 {
        assert!(asks(&mut TcpStream::connect(at).await.unwrap()).await);
    }
    let read = tokio::time::timeout(IDLE * 5, waits.read(&mut [0])).await;
    assert!(read.is_err(), "nobody hung up on it");
}

#[tokio::test(start_paused = true)]
async fn o08_streams_of_notifications_lock_nobody_out() {
    let get = "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let post = "POST /never HTTP/1.1\r\nHost: localhost\r\nMcp-Method: subscriptions/listen\r\nContent-Length: 0\r\n\r\n";
    for listen in [get, post] {
        let (_tasks, _closing, at) = house(4).await;
        let mut streams = Vec::new();
        for _ in 0..4 {
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(listen.as_bytes()).await.unwrap();
            streams.push(stream);
        }
        let asked =
            tokio::time::timeout(HEAD, async { asks(&mut TcpStream::connect(at).await.unwrap()).await });
        assert_eq!(asked.await, Ok(true), "{listen}");
    }
}

#[tokio::test(start_paused = true)]
async fn o08_a_header_that_drips_is_cut() {
    for begins in ["GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "P", "PRI * HTTP/2.0\r\n"] {
        let (_tasks, _closing, at) = house(2).await;
        let mut drips = TcpStream::connect(at).await.unwrap();
        let begun = Instant::now();
        drips.write_all(begins.as_bytes()).await.unwrap();
        let dripping = async {
            loop {
                tokio::time::sleep(HEAD / 20).await;
                if begins.len() > 30 && drips.write_all(b"a").await.is_err() {
                    return;
                }
                if matches!(tokio::time::timeout(HEAD / 20, drips.read(&mut [0])).await, Ok(Ok(0) | Err(_))) {
                    return;
                }
            }
        };
        tokio::time::timeout(HEAD * 3, dripping).await.unwrap_or_else(|_| panic!("it drips on: {begins}"));
        assert!(begun.elapsed() >= HEAD, "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn x15_headers_that_do_not_end_draw_on_the_memory_budget_and_give_it_back() {
    const ROOM: usize = 8;
    let budget = Budget::new(ROOM * BUFFER);
    let (_tasks, _closing, at) = house_drawing_on(256, budget.clone()).await;
    let header = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "a".repeat(BUFFER - 2048));
    // A header block of HTTP/2 that does not end is no other case: settings, then a block that goes on and on.
    let mut block =
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82".to_vec();
    for _ in 0..3 {
        block.extend_from_slice(&[0, 0x3f, 0xff, 9, 0, 0, 0, 0, 1]);
        block.extend(std::iter::repeat_n(0x82, 0x3fff));
    }
    for begins in [header.as_bytes(), &block] {
        let mut open = Vec::new();
        for _ in 0..ROOM * 8 {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let _ = stream.write_all(begins).await;
            open.push(stream);
        }
        let (mut piece, mut told) = ([0; 1024], 0);
        let ends = in_no_time(async {
            while open.len() > ROOM {
                open.retain(|stream| match stream.try_read(&mut piece) {
                    Ok(0) => false,
                    Ok(read) => {
                        let said = String::from_utf8_lossy(&piece[..read]);
                        told +=
                            usize::from(said.starts_with("HTTP/1.1 503") && said.contains("gateway.memory"));
                        true
                    }
                    Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
                });
                tokio::task::yield_now().await;
            }
        });
        ends.await;
        assert!(budget.used() <= ROOM * BUFFER, "{}", budget.used());
        if begins == header.as_bytes() {
            assert_eq!(told, ROOM * 7, "each of the others was told why");
        }
        assert!(asks(&mut TcpStream::connect(at).await.unwrap()).await, "others are served");
        drop(open);
        in_no_time(async {
            while budget.used() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn x17_whoever_asks_on_and_reads_nothing_is_answered_no_faster_than_it_reads() {
    const ASKED: usize = 400;
    // What lies in both sockets and in between, in answers of a kilobyte.
    const AHEAD: usize = 80;
    let (_tasks, _closing, at) = house(8).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(at).await.unwrap();
    let ask = "GET /counted HTTP/1.1\r\nHost: localhost\r\n\r\n";
    deaf.write_all(ask.repeat(ASKED).as_bytes()).await.unwrap();
    // Others ask meanwhile, far more often than it could be answered.
    let mut other = TcpStream::connect(at).await.unwrap();
    for _ in 0..ASKED * 2 {
        assert!(asks(&mut other).await);
    }
    let ahead = COUNTED.load(Ordering::Relaxed);
    assert!((1..AHEAD).contains(&ahead), "{ahead} of {ASKED} are answered");
    // It has them all as soon as it reads.
    let mut all = Vec::new();
    while COUNTED.load(Ordering::Relaxed) < ASKED {
        assert!(deaf.read_buf(&mut all).await.unwrap() > 0, "it was hung up on");
    }
}

#[tokio::test(start_paused = true)]
async fn o08_a_body_that_does_not_come_is_cut() {
    const BEGIN: &[u8] = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";
    let (_tasks, _closing, at) = house(1).await;
    let mut slow = TcpStream::connect(at).await.unwrap();
    let begun = Instant::now();
    slow.write_all(BEGIN).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("Late"), "{answer}");
    assert!(begun.elapsed() < upload::PAUSE * 2, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn o08_an_answer_that_nobody_reads_is_cut_and_a_slow_reader_is_not() {
    let (_tasks, _closing, at) = house(2).await;
    let mut deaf = TcpStream::connect(at).await.unwrap();
    deaf.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut slow = TcpStream::connect(at).await.unwrap();
    slow.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let (mut read, mut piece) = (0, vec![0; LARGE / 8]);
    while read < LARGE {
        let some = slow.read_exact(&mut piece[..(LARGE / 8).min(LARGE - read)]);
        read += in_no_time(some).await.unwrap();
        tokio::time::sleep(UNREAD / 2).await;
    }
    // What its socket holds is all it gets.
    let mut all = Vec::new();
    let _ = deaf.read_to_end(&mut all).await;
    assert!(all.len() < LARGE, "it was cut");
}

#[tokio::test(start_paused = true)]
async fn o08_a_stream_of_http2_that_is_not_read_ends_its_connection() {
    let (_tasks, _closing, at) = house(2).await;
    let mut peer = TcpStream::connect(at).await.unwrap();
    // The preface, no settings, and a GET of /large.
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    request.extend_from_slice(&get_frame(1, "/large"));
    peer.write_all(&request).await.unwrap();
    let (begun, mut got) = (Instant::now(), Vec::new());
    // It answers pings, and grants no more than the first window.
    let ends = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = peer.read(&mut buffer).await {
            got.extend_from_slice(&buffer[..read]);
            while let Some(frame) = next_frame(&mut got) {
                if frame[3] == 6 && frame[4] == 0 {
                    let mut pong = frame.clone();
                    pong[4] = 1;
                    peer.write_all(&pong).await.unwrap();
                }
            }
        }
    };
    tokio::time::timeout(UNREAD * 3, ends).await.expect("it is kept for ever");
    assert!(begun.elapsed() >= UNREAD, "{:?}", begun.elapsed());
}

/// A GET over HTTP/2, on this stream (HPACK: indexed :method GET, :scheme http; literal :path, :authority).
fn get_frame(stream: u8, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend_from_slice(path.as_bytes());
    block.extend_from_slice(b"\x01\x09localhost");
    let mut frame = vec![0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, stream];
    frame.extend_from_slice(&block);
    frame
}

#[tokio::test(start_paused = true)]
async fn x05_small_answers_that_a_peer_gives_no_window_for_end_its_connection_when_they_are_too_many() {
    is_cut_without_a_window("/small").await;
}

#[tokio::test(start_paused = true)]
async fn x05_what_is_said_on_a_stream_counts_before_its_connection_asks_for_it() {
    is_cut_without_a_window("/late").await;
}

async fn is_cut_without_a_window(path: &str) {
    let (_tasks, _closing, at) = house_within(2, 20 * SMALL).await;
    let mut peer = TcpStream::connect(at).await.unwrap();
    // The preface, and settings with an initial window of nothing.
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0".to_vec();
    let streams = (0..30_u8).map(|stream| stream * 2 + 1);
    streams.for_each(|stream| request.extend_from_slice(&get_frame(stream, path)));
    let begun = Instant::now();
    peer.write_all(&request).await.unwrap();
    let mut said = Vec::new();
    let _ = tokio::time::timeout(UNREAD * 2, peer.read_to_end(&mut said)).await;
    assert!(begun.elapsed() < PING, "{:?} {said:?}", begun.elapsed());
    assert!(asks(&mut TcpStream::connect(at).await.unwrap()).await, "others are served");
}

fn next_frame(got: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = usize::from(*got.get(1)?) << 8 | usize::from(*got.get(2)?);
    (got.len() >= 9 + length).then(|| got.drain(..9 + length).collect())
}

#[tokio::test(start_paused = true)]
async fn o08_an_http2_peer_that_answers_no_pings_is_gone() {
    let (_tasks, _closing, at) = house(2).await;
    let mut peer = TcpStream::connect(at).await.unwrap();
    // A header block that does not end.
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    request.extend_from_slice(&[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]);
    peer.write_all(&request).await.unwrap();
    let mut all = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), peer.read_to_end(&mut all)).await;
    assert!(ended.is_ok(), "it is kept");
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_is_answered_once_more_at_the_end_and_told_that_it_was_the_last_time() {
    let (mut tasks, closing, at) = house(2).await;
    let (mut kept, mut idle) = (TcpStream::connect(at).await.unwrap(), TcpStream::connect(at).await.unwrap());
    assert!(asks(&mut kept).await && asks(&mut idle).await);
    let begun = Instant::now();
    closing.send_replace(true);
    tokio::time::sleep(ASKS / 2).await;
    kept.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    in_no_time(kept.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.to_lowercase().contains("connection: close\r\n") && answer.ends_with("here"), "{answer}");
    assert!(begun.elapsed() < ASKS, "{:?}", begun.elapsed());
    // One that does not ask holds nobody up for longer.
    is_hung_up_on(&mut idle).await;
    while tasks.join_next().await.is_some() {}
    assert!(begun.elapsed() >= ASKS && begun.elapsed() < ASKS * 2, "{:?}", begun.elapsed());
}

/// Connects again and again until nobody listens any more; how often it was let in and then not answered.
async fn cut_off(at: SocketAddr) -> usize {
    let mut cut_off = 0;
    loop {
        match tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(at)).await {
            Ok(Ok(mut stream)) => cut_off += usize::from(!asks(&mut stream).await),
            // Refused, or never answered.
            Ok(Err(_)) | Err(_) => return cut_off,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_let_in_while_a_door_closes_is_answered() {
    for _ in 0..20 {
        let (_tasks, closing, at) = house(64).await;
        let mut agents = JoinSet::new();
        for _ in 0..16 {
            agents.spawn(cut_off(at));
        }
        assert!(asks(&mut TcpStream::connect(at).await.unwrap()).await);
        closing.send_replace(true);
        let all: usize = agents.join_all().await.into_iter().sum();
        assert_eq!(all, 0, "let in, and not answered");
    }
}

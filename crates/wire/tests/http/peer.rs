//! Servers made by hand, one script per connection.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use linetender_core::{ClosePolicy, Limits};
use linetender_wire::http::{Approach, Begun, Endpoint, Pings, Pool, Request, Settings, Surroundings, Way};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Nothing in these tests takes longer.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

pub(crate) fn post() -> Request {
    Request {
        method: Method::POST,
        headers: HeaderMap::new(),
        body: Bytes::from_static(BODY.as_bytes()),
        begun: Begun::default(),
    }
}

pub(crate) fn pool(at: SocketAddr) -> Pool {
    pool_with(at, Settings::default())
}

pub(crate) fn pool_with(at: SocketAddr, settings: Settings) -> Pool {
    let endpoint = Endpoint::new(&format!("http://{at}/mcp")).unwrap();
    Pool::new(endpoint, Surroundings::bare(), settings)
}

/// How a generation reaches a server there.
pub(crate) fn approach(at: SocketAddr) -> Approach {
    Approach {
        key: None,
        way: Way::Streamable,
        endpoint_within: SOON,
        endpoint: Endpoint::new(&format!("http://{at}/mcp")).unwrap(),
        headers: HeaderMap::new(),
        around: Surroundings::bare(),
        settings: Settings::default(),
        sizes: Limits::default(),
        close: ClosePolicy::default(),
        refusal_within: Duration::from_secs(1),
        redirects_calls: true,
        repeats_after_auth: true,
        seed: 0,
        pings: Pings::default(),
    }
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// A server whose connections are served by `serve`, with their number.
pub(crate) async fn server<F>(
    serve: impl Fn(usize, TcpStream) -> F + Send + 'static,
) -> (SocketAddr, JoinHandle<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, at) = listen().await;
    let task = spawn(async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            spawn(serve(number, stream));
        }
    });
    (at, task)
}

#[expect(clippy::disallowed_methods, reason = "a peer in a test ends with its runtime")]
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

/// One request, head and body; `None` at the end of the stream.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(text).unwrap();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(head + std::str::from_utf8(&body).unwrap())
}

pub(crate) async fn answer(stream: &mut TcpStream, response: &str) {
    let _ = stream.write_all(response.as_bytes()).await;
}

/// A whole response.
pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

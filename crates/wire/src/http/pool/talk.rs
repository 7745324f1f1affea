//! One exchange on one connection, and what its failure proves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use linetender_core::{LossReport, ServerRefusal};
use tokio::time::Instant;

use super::{Inner, Pool, Request, lock, message};
use crate::http::broken::{Broken, Chain, Phase};
use crate::http::connect::network::Quiet;
use crate::http::connect::{Connected, Target, WATCHES, Written};
use crate::http::endpoint::Endpoint;
use crate::tasks::{self, Owned};

// HTTP/2 finds a dead peer by asking, while it has something to wait for. Where what lies below looks at what the peer
// acknowledges, that is quicker, and can tell a network that is away from a peer that is gone: this must not.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(if WATCHES { 120 } else { 5 });
/// Longest time that a shared connection is kept for the next request.
const IDLE_LONGEST: Duration = Duration::from_secs(30);
/// How much one HTTP/2 stream, and all of them, may send ahead of their readers.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// A connection that carries one exchange at a time.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    pub(super) tcp: Arc<dyn Quiet>,
    task: Owned<()>,
    written: Written,
    target: Target,
}

/// A connection that carries many.
pub(super) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    _task: Owned<()>,
    /// When a request was last begun on it.
    used: Mutex<Instant>,
}

/// A connection to use.
pub(super) enum Line {
    One(Http1),
    Many(Arc<Http2>),
}

/// What a response holds on to while it is read. Dropped, it ends the exchange.
pub(super) enum Lease {
    One { connection: Http1, written: u64 },
    Many { _shared: Arc<Http2> },
}

/// The head of a response, what it holds on to, and how long after the request's last byte it came. A shared connection
/// cannot tell when that byte was written: there the time counts from before the first.
type Exchanged = (http::Response<Incoming>, Lease, Duration);

impl Http1 {
    pub(super) async fn new(connected: Connected, target: Target) -> Result<Self, Broken> {
        let Connected { io, tcp, written, .. } = connected;
        let (sender, mut connection) = http1::Builder::new()
            .max_headers(Pool::HEADERS_MOST)
            .max_buf_size(Pool::HEAD_LIMIT)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| Broken::unsent(Phase::Connect, Chain(&error)))?;
        // How it ends is told to whoever waits for a response on it. By reference: awaiting the value would make room for it twice.
        let task = Owned::spawn(async move {
            let _ = (&mut connection).await;
        });
        Ok(Self { sender, tcp, task, written, target })
    }

    async fn send(mut self, to: &Endpoint, request: &Request) -> Result<Exchanged, Broken> {
        let before = self.written.bytes();
        let message = message(to, request, Some(&self.target));
        match self.sender.try_send_request(message).await {
            Ok(response) => {
                let written = self.written.bytes() - before;
                let took = self.written.since_last();
                Ok((response, Lease::One { connection: self, written }, took))
            }
            Err(error) => {
                // A reader's error may come before the writer's last try: only when its task is over does the count stand.
                self.task.end();
                let _ = (&mut self.task).await;
                let written = self.written.bytes() - before;
                let phase = if written <= request.body.len() as u64 { Phase::Request } else { Phase::Head };
                Err(Broken::sent(phase, Some(written), Chain(error.error())))
            }
        }
    }
}

impl Http2 {
    pub(super) async fn new(connected: Connected) -> Result<Self, Broken> {
        let head_limit = u32::try_from(Pool::HEAD_LIMIT).unwrap_or(u32::MAX);
        let (sender, connection) = http2::Builder::new(Spawner)
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_header_list_size(head_limit)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(connected.io))
            .await
            .map_err(|error| Broken::unsent(Phase::Connect, Chain(&error)))?;
        let task = Owned::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, _task: task, used: Mutex::new(Instant::now()) })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// True if nothing was sent on it for long, by nobody who still waits for something. It may have died unseen since: nobody asks
    /// while it is idle, and a call on a dead connection has an unknown outcome.
    pub(super) fn is_stale(self: &Arc<Self>) -> bool {
        // A call that waits for a response, or reads one, holds it too.
        Arc::strong_count(self) == 1 && lock(&self.used).elapsed() >= IDLE_LONGEST
    }
}

impl Line {
    pub(super) async fn send(
        self,
        pool: &Inner,
        to: &Endpoint,
        request: &Request,
    ) -> Result<Exchanged, Broken> {
        match self {
            Self::One(connection) => connection.send(to, request).await,
            Self::Many(shared) => {
                let mut sender = shared.sender.clone();
                let began = Instant::now();
                *lock(&shared.used) = began;
                match sender.try_send_request(message(to, request, None)).await {
                    Ok(response) => Ok((response, Lease::Many { _shared: shared }, began.elapsed())),
                    Err(error) => {
                        let (broken, spent) = refused(error);
                        if spent || shared.is_closed() {
                            pool.retire(&shared);
                        }
                        Err(broken)
                    }
                }
            }
        }
    }
}

/// What a failed exchange over HTTP/2 proves, and whether its connection is spent.
fn refused(mut error: TrySendError<http::Request<Full<Bytes>>>) -> (Broken, bool) {
    // It comes back only if the connection never took it.
    let untouched = error.take_message().is_some();
    let error = error.into_error();
    let reason = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
        .find_map(|error| error.downcast_ref::<h2::Error>());
    // RFC 9113, 8.7: both say that the stream was not processed. The library reports another side's GOAWAY only to the
    // streams above the last one it names. Both are the server's word, or a proxy's: HAProxy sends REFUSED_STREAM for a
    // request on a reused backend connection that closed before an answer, whether it was executed or not.
    let by_peer = |error: &&h2::Error| error.is_remote();
    let went_away = reason.filter(by_peer).is_some_and(h2::Error::is_go_away);
    let refusal = reason.filter(by_peer).and_then(|error| match error.reason() {
        Some(h2::Reason::NO_ERROR) if error.is_go_away() => Some(ServerRefusal::Goaway),
        Some(h2::Reason::REFUSED_STREAM) if error.is_reset() => Some(ServerRefusal::RefusedStream),
        _ => None,
    });
    let phase = if untouched { Phase::Request } else { Phase::Head };
    let broken = match refusal.filter(|_| !untouched) {
        Some(refusal) => {
            let words = match refusal {
                ServerRefusal::Goaway => "the server closed the HTTP/2 connection (GOAWAY)",
                _ => "the server, or a proxy before it, refused the HTTP/2 stream (REFUSED_STREAM)",
            };
            Broken { report: LossReport::Refused(refusal), ..Broken::sent(phase, None, words) }
        }
        None => Broken::sent(phase, untouched.then_some(0), Chain(&error)),
    };
    (broken, went_away || untouched)
}

/// Runs what HTTP/2 does beside its streams; it ends with the connection.
#[derive(Clone, Copy)]
struct Spawner;

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, work: F) {
        tasks::spawn_last(async move {
            work.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use linetender_core::LossReport;
    use tokio::net::TcpListener;

    use super::super::Begun;
    use super::{Endpoint, Http1, Request};
    use crate::http::connect::{self, Speaks, Surroundings, Waits};

    /// Should the check before use have lost its race, the count still stands.
    #[tokio::test]
    async fn a_connection_that_died_unseen_took_no_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = Endpoint::new(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let connected = connect::connect(
            &to,
            &Surroundings::bare(),
            Waits::default(),
            false,
            &connect::Winner::default(),
        )
        .await
        .unwrap();
        let Speaks::Http1 { target } = &connected.speaks else { panic!("not HTTP/1.1") };
        let target = target.clone();
        let connection = Http1::new(connected, target).await.unwrap();
        drop(listener.accept().await.unwrap());
        while !connection.sender.is_closed() {
            tokio::task::yield_now().await;
        }
        let request = Request {
            method: http::Method::POST,
            headers: http::HeaderMap::new(),
            body: "{}".into(),
            begun: Begun::default(),
        };
        let Err(broken) = connection.send(&to, &request).await else { panic!("answered by nobody") };
        assert_eq!((broken.written, broken.report), (Some(0), LossReport::NoByteWritten), "{broken}");
    }
}

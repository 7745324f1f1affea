//! One request to somebody who is no MCP server (an authorization server, most often), with a bound on everything.
//!
//! It goes the way that all others go: the same proxies, roots and TLS. Only 307 and 308 within the origin are followed, so
//! what is sent never reaches anybody but the one who was asked.

use std::fmt;
use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::{Instant, timeout, timeout_at};

use super::broken::{Broken, Phase};
use super::connect::Surroundings;
use super::endpoint::Endpoint;
use super::pool::{Begun, Pool, Request, Settings};

/// A deadline that is noticed this much later than it was passed while the process was stopped.
const LATE: Duration = Duration::from_millis(500);

/// How long a process that was stopped reads what has arrived meanwhile.
const CATCH_UP: Duration = Duration::from_secs(2);

/// Asks. Cheap to clone; it keeps no connection.
#[derive(Clone, Debug)]
pub struct Asker {
    around: Surroundings,
}

/// An answer, read to its end.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Asker {
    /// The longest body that is read.
    pub const BODY_LIMIT: usize = 1024 * 1024;

    /// Through these proxies, trusting these roots.
    pub const fn new(around: Surroundings) -> Self {
        Self { around }
    }

    /// As this machine is set up. Reads the environment and the roots once.
    pub fn of_this_machine() -> Self {
        static AROUND: OnceLock<Surroundings> = OnceLock::new();
        Self::new(AROUND.get_or_init(Surroundings::read).clone())
    }

    /// Sends one request, once, and reads all of its answer, no longer than `within`.
    ///
    /// # Errors
    /// If there is no answer in time, or one that is too long: with what is known of it. If [`Broken::report`] says so,
    /// no byte of the request was written.
    pub async fn ask(
        &self,
        method: Method,
        to: &Endpoint,
        headers: HeaderMap,
        body: Bytes,
        within: Duration,
    ) -> Result<Reply, Broken> {
        self.bounded(to, Request { method, headers, body, begun: Begun::default() }, true, within).await
    }

    /// Looks at what is at an address, as a browser does that follows redirects itself: one comes back as it is.
    ///
    /// # Errors
    /// As with [`ask`](Self::ask).
    pub async fn look(&self, at: &Endpoint, headers: HeaderMap, within: Duration) -> Result<Reply, Broken> {
        let request = Request { method: Method::GET, headers, body: Bytes::new(), begun: Begun::default() };
        self.bounded(at, request, false, within).await
    }

    async fn bounded(
        &self,
        to: &Endpoint,
        request: Request,
        follow: bool,
        within: Duration,
    ) -> Result<Reply, Broken> {
        let settings = Settings { pooling: false, ..Settings::default() };
        let pool = Pool::new(to.clone(), self.around.clone(), settings);
        let begun = request.begun.clone();
        let asking = async {
            let sent = if follow { pool.send(&request).await } else { pool.send_unfollowed(&request).await };
            let mut response = sent?;
            let body = response.body.all(Self::BODY_LIMIT).await?;
            Ok(Reply { status: response.status, headers: response.headers, body })
        };
        let mut asking = pin!(asking);
        let deadline = Instant::now() + within;
        if let Ok(answered) = timeout_at(deadline, asking.as_mut()).await {
            return answered;
        }
        // The answer may have arrived in time, and nobody could read it.
        if Instant::now() > deadline + LATE
            && let Ok(answered) = timeout(CATCH_UP, asking).await
        {
            return answered;
        }
        let words = format_args!("no answer within {within:?}");
        Err(if begun.get() {
            Broken::sent(Phase::Head, None, words)
        } else {
            Broken::unsent(Phase::Connect, words)
        })
    }
}

// Bodies hold tokens.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::time::Duration;

    use bytes::Bytes;
    use http::{HeaderMap, Method};

    use super::Asker;
    use crate::http::{Endpoint, Surroundings};

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a stopped process does not run other tasks either")]
    async fn an_answer_that_arrived_while_the_process_was_stopped_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = Endpoint::new(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let ((asked, was_asked), (go, went)) = (mpsc::channel(), mpsc::channel::<()>());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            asked.send(()).unwrap();
            went.recv().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        });
        let within = Duration::from_secs(2);
        let asker = Asker::new(Surroundings::bare());
        let asking = asker.ask(Method::POST, &to, HeaderMap::new(), Bytes::from_static(b"x"), within);
        let stopped = async {
            while was_asked.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
            // This is what a stopped process does: nothing, until long after the deadline.
            std::thread::sleep(within + Duration::from_secs(1));
        };
        let (reply, ()) = tokio::join!(asking, stopped);
        assert_eq!(reply.unwrap().status, 200);
        server.join().unwrap();
    }
}

//! One request to somebody who is no MCP server (an authorization server, most often), with a bound on everything.
//!
//! It goes the way that all others go: the same proxies, roots and TLS. Only 307 and 308 within the origin are followed, so
//! what is sent never reaches anybody but the one who was asked.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::timeout;

use super::broken::{Broken, Phase};
use super::connect::Surroundings;
use super::endpoint::Endpoint;
use super::pool::{Begun, Pool, Request, Settings};

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
    /// If there is no answer in time, or one that is too long: with what is known of it. If [`Broken::proof`] is there, no
    /// byte of the request was written.
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
        timeout(within, asking).await.unwrap_or_else(|_| {
            let words = format_args!("no answer within {within:?}");
            Err(if begun.get() {
                Broken::sent(Phase::Head, None, words)
            } else {
                Broken::unsent(Phase::Connect, words)
            })
        })
    }
}

// Bodies hold tokens.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

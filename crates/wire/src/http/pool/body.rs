//! A response's body, read with a cap.

use std::sync::Weak;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use linetender_core::LossReport;
use tokio::time::timeout;

use super::Inner;
use super::talk::Lease;
use crate::http::BYTE_ORDER_MARK;
use crate::http::broken::{Broken, Chain, Phase};
use crate::room::Unfinished;

/// How much may follow behind an answer, and how long that may take. It should be the mark of the end, and nothing else.
const REST_MOST: u64 = 4096;
const REST_WAIT: Duration = Duration::from_millis(500);

/// What follows the head of a response. Dropping it before its end closes the connection (or resets the stream), which
/// a modern server takes as a cancellation.
pub struct Body {
    incoming: Incoming,
    /// What it came on.
    lease: Option<Lease>,
    /// It came to its end: the connection can be used again.
    over: bool,
    /// Who takes the connection back, if anybody does.
    home: Option<Weak<Inner>>,
    received: u64,
    written: Option<u64>,
}

impl Body {
    pub(super) fn new(incoming: Incoming, lease: Lease, home: Option<Weak<Inner>>) -> Self {
        let written = match &lease {
            Lease::One { written, .. } => Some(*written),
            Lease::Many { .. } => None,
        };
        let mut body = Self { incoming, lease: Some(lease), over: false, home, received: 0, written };
        body.over = body.incoming.is_end_stream();
        body
    }

    /// The next bytes; `None` at the end. Nothing is buffered beyond what the connection holds.
    ///
    /// # Errors
    /// If it breaks off before its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        loop {
            match self.incoming.frame().await {
                None => {
                    self.over = true;
                    return Ok(None);
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.received += data.len() as u64;
                        return Ok(Some(data));
                    }
                    // Trailers say nothing to us.
                    Ok(_) | Err(_) => {}
                },
                Some(Err(error)) => return Err(self.broken(Phase::Body, Chain(&error))),
            }
        }
    }

    /// All of it, if it is no longer than `limit`.
    ///
    /// # Errors
    /// If it is longer, or breaks off.
    pub async fn all(&mut self, limit: usize) -> Result<Bytes, Broken> {
        self.all_in(limit, &mut Unfinished::uncounted()).await
    }

    /// The same, with room for it.
    pub(crate) async fn all_in(
        &mut self,
        limit: usize,
        unfinished: &mut Unfinished<'_>,
    ) -> Result<Bytes, Broken> {
        let too_large =
            |body: &Self| body.broken(Phase::TooLarge { limit }, format_args!("longer than {limit} bytes"));
        if self.incoming.size_hint().lower() > limit as u64 {
            return Err(too_large(self));
        }
        // Mostly it is one chunk, which is then not copied.
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else {
            return if first.len() > limit { Err(too_large(self)) } else { Ok(first) };
        };
        // Room for what the head announced: an announcement costs nothing until it is kept.
        let announced = usize::try_from(self.incoming.size_hint().lower()).unwrap_or(0);
        let whole = first.len() + second.len() + announced;
        let mut all = BytesMut::with_capacity(whole);
        all.extend_from_slice(&first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if all.len() + chunk.len() > limit {
                return Err(too_large(self));
            }
            all.extend_from_slice(&chunk);
            // Room for all that was announced, before it comes: of several, each would otherwise wait for the others with half of it.
            next = self.chunk_in(whole.max(all.len()), unfinished).await?;
        }
        Ok(all.freeze())
    }

    /// The next bytes, with room for so many that are kept.
    async fn chunk_in(
        &mut self,
        kept: usize,
        unfinished: &mut Unfinished<'_>,
    ) -> Result<Option<Bytes>, Broken> {
        if unfinished.now(kept).is_err() {
            unfinished.settled().await.map_err(|no_room| self.broken(Phase::NoRoom, no_room))?;
        }
        tokio::select! {
            biased;
            chunk = self.chunk() => chunk,
            Err(no_room) = unfinished.settled() => Err(self.broken(Phase::NoRoom, no_room)),
        }
    }

    /// Its beginning, at most `most` bytes: for what is shown, not understood. A body that breaks off has one too.
    pub async fn head(&mut self, most: usize) -> Bytes {
        let mut head = BytesMut::new();
        while head.len() < most
            && let Ok(Some(chunk)) = self.chunk().await
        {
            head.extend_from_slice(&chunk[..chunk.len().min(most - head.len())]);
        }
        head.freeze()
    }

    /// All of it if it looks like JSON, else its beginning: an answer may come under any content type.
    ///
    /// # Errors
    /// If it looks like JSON, and is longer than `limit` or breaks off.
    pub(crate) async fn all_if_json(
        &mut self,
        most: usize,
        limit: usize,
        unfinished: &mut Unfinished<'_>,
    ) -> Result<Bytes, Broken> {
        let mut all = BytesMut::new();
        // How much of it is blank, or a mark: that says nothing, and is looked at once.
        let mut blank = 0;
        loop {
            if blank == 0 && all.starts_with(BYTE_ORDER_MARK) {
                blank = BYTE_ORDER_MARK.len();
            }
            blank += all[blank..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let is_json = matches!(all.get(blank), Some(b'{' | b'['));
            if is_json && all.len() > limit {
                return Err(self.broken(Phase::TooLarge { limit }, format_args!("longer than {limit} bytes")));
            }
            let is_enough = !is_json && all.len() - blank >= most;
            let next = if is_enough || blank > limit {
                Ok(None)
            } else {
                self.chunk_in(all.len(), unfinished).await
            };
            match next {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                Err(broken) if is_json => return Err(broken),
                // What is shown, not understood, may have broken off.
                Ok(None) | Err(_) if is_json => return Ok(all.freeze()),
                Ok(None) | Err(_) => {
                    let mut shown = all.split_off(blank);
                    shown.truncate(most);
                    return Ok(shown.freeze());
                }
            }
        }
    }

    /// Nobody wants the rest. If it is as short as it should be the connection is kept; else it is closed.
    pub async fn forget(mut self) {
        if self.home.is_none() {
            return;
        }
        let most = self.received + REST_MOST;
        let short = async { while self.received <= most && matches!(self.chunk().await, Ok(Some(_))) {} };
        let _ = timeout(REST_WAIT, short).await;
    }

    /// How many bytes of it have come.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// How many bytes its request had; `None` where a shared connection cannot tell.
    pub const fn request_written(&self) -> Option<u64> {
        self.written
    }

    /// Whatever it came on is not used again.
    pub fn close(&mut self) {
        self.home = None;
    }

    /// A response had begun: that its request was written is beyond doubt.
    fn broken(&self, phase: Phase, words: impl std::fmt::Display) -> Broken {
        Broken {
            report: LossReport::Nothing,
            received: self.received,
            ..Broken::sent(phase, self.written, words)
        }
    }
}

/// The connection goes home when whoever read the body is done with it, and not before: it may have been found unfit.
impl Drop for Body {
    fn drop(&mut self) {
        let home = self.home.take().and_then(|home| home.upgrade()).filter(|_| self.over);
        if let (Some(Lease::One { connection, .. }), Some(home)) = (self.lease.take(), home) {
            home.idle.put(connection);
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("received", &self.received).finish_non_exhaustive()
    }
}

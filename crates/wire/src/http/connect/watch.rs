//! A peer that acknowledges nothing any more: is it gone, or is the network away for a while?
//!
//! A server that is busy acknowledges what it is sent, or that it has no room for more; so long as it does, its connection is
//! left alone. Where nothing is acknowledged, a second connection to the same address tells which of the two it is. If it comes about,
//! the network is there: then the first one is over, if what is sent on it again goes unanswered too. If nothing answers, the network is
//! away (a train in a tunnel, a VPN that changes its keys), and what was sent may still arrive: the call waits.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep, timeout};

use super::network::{Quiet, Silence};

/// A peer that is silent for this long, while it owes an acknowledgement, is looked at.
const SILENT: Duration = Duration::from_secs(10);

/// A peer that can be connected to has at least this long for its acknowledgement.
const LOST: Duration = Duration::from_secs(15);

/// Longest time without any packet, wherever the network is.
pub(super) const AWAY: Duration = Duration::from_secs(120);

/// Interval between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// How long the answer to something that was sent again may take.
const ROUND_TRIP: Duration = Duration::from_secs(2);

/// Longest try of a second connection.
const KNOCK: Duration = Duration::from_secs(3);

/// A second connection to the same address, in the making. Nothing is said on it.
pub(super) type Knock = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A stream whose peer is watched while somebody waits for it.
pub(super) struct Watched<T> {
    io: T,
    watch: Pin<Box<dyn Future<Output = io::Error> + Send>>,
    over: Option<(io::ErrorKind, String)>,
}

impl<T> Watched<T> {
    pub(super) fn new(io: T, tcp: Arc<dyn Quiet>, knock: impl Fn() -> Knock + Send + Sync + 'static) -> Self {
        Self { io, watch: Box::pin(watch(tcp, knock)), over: None }
    }

    /// True if the peer is given up: of what is under way nothing more will come.
    fn given_up(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.over.is_none() {
            let Poll::Ready(error) = self.watch.as_mut().poll(context) else { return Poll::Pending };
            self.over = Some((error.kind(), error.to_string()));
        }
        let (kind, words) = self.over.clone().unwrap_or((io::ErrorKind::TimedOut, String::new()));
        Poll::Ready(io::Error::new(kind, words))
    }

    /// What the stream says, unless it says nothing and the peer is given up.
    fn or_given_up<R>(
        &mut self,
        said: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if said.is_ready() {
            return said;
        }
        self.given_up(context).map(Err)
    }
}

/// Watches for as long as the connection lives.
async fn watch(tcp: Arc<dyn Quiet>, knock: impl Fn() -> Knock) -> io::Error {
    loop {
        let Some(seen) = tcp.silence() else { return std::future::pending().await };
        if !seen.owes || seen.lasts < SILENT {
            sleep(SILENT.saturating_sub(seen.lasts).max(LOOK)).await;
            continue;
        }
        tokio::select! {
            biased;
            error = given_up(&*tcp, &knock) => return error,
            () = heard(&*tcp) => {}
        }
    }
}

/// Until something comes from the peer after all.
async fn heard(tcp: &dyn Quiet) {
    while tcp.silence().is_some_and(|seen| seen.owes && seen.lasts >= SILENT) {
        sleep(LOOK).await;
    }
}

/// Until it is clear that nothing will come from the peer.
async fn given_up(tcp: &dyn Quiet, knock: impl Fn() -> Knock) -> io::Error {
    let since = Instant::now();
    let words = |words: &str| {
        let silent = SILENT.saturating_add(since.elapsed()).as_secs();
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the peer acknowledged nothing for {silent} s; {words}"),
        )
    };
    let away = AWAY.saturating_sub(SILENT);
    match timeout(away, answered(&knock)).await {
        Err(_) => return words("nor was there an answer to a new connection to its address"),
        Ok(Err(error)) => return words(&format!("a new connection to its address: {error}")),
        Ok(Ok(())) => {}
    }
    // The network is there. What goes unacknowledged has to be sent again before that says something: the pauses of TCP grow
    // while nothing answers.
    let tries = |seen: Option<Silence>| seen.map_or(0, |seen| seen.tries);
    let before = tries(tcp.silence());
    while tries(tcp.silence()) <= before && since.elapsed() < away {
        sleep(LOOK).await;
    }
    sleep(ROUND_TRIP.max(LOST.saturating_sub(SILENT).saturating_sub(since.elapsed()))).await;
    words("a new connection to its address succeeded")
}

/// Until a second connection comes about, or is refused.
async fn answered(knock: impl Fn() -> Knock) -> io::Result<()> {
    loop {
        match timeout(KNOCK, knock()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(error),
            // The network is away, or this machine has no room for a connection.
            Ok(Err(_)) | Err(_) => sleep(LOOK).await,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.io).poll_read(context, buffer);
        self.or_given_up(said, context)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.io).poll_write(context, bytes);
        self.or_given_up(said, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.or_given_up(said, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.io).poll_flush(context);
        self.or_given_up(said, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;

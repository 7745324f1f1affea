//! No more connections at once than were agreed on: who comes later waits in the listener.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long to wait when the machine has no descriptors left: nothing that runs is harmed, and nothing spins.
const BREATH: Duration = Duration::from_millis(100);

/// A socket that lets in so many.
pub(super) struct Bounded {
    listener: TcpListener,
    room: Arc<Semaphore>,
    /// Whether it was told that nobody can be let in.
    told: AtomicBool,
}

/// A connection that has its place.
pub(super) struct Connection {
    stream: TcpStream,
    stirs: Stirs,
    _place: OwnedSemaphorePermit,
}

/// Whether anything went through a connection, in either direction, since somebody looked.
#[derive(Clone, Debug, Default)]
pub(super) struct Stirs(Arc<AtomicBool>);

impl Stirs {
    pub(super) fn since_last(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    fn if_ready<T>(&self, went: Poll<T>) -> Poll<T> {
        if went.is_ready() {
            self.0.store(true, Ordering::Relaxed);
        }
        went
    }
}

impl Connection {
    pub(super) fn stirs(&self) -> Stirs {
        self.stirs.clone()
    }
}

impl Bounded {
    pub(super) fn new(listener: TcpListener, connections: usize) -> Self {
        let room = Arc::new(Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS)));
        Self { listener, room, told: AtomicBool::new(false) }
    }

    /// The next one, as soon as there is room.
    pub(super) async fn accept(&self) -> (Connection, SocketAddr) {
        loop {
            let Ok(place) = Arc::clone(&self.room).acquire_owned().await else {
                // The semaphore is never closed; an endpoint that lets nobody in is what that would mean.
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    self.told.store(false, Ordering::Relaxed);
                    // A small answer must not wait for the acknowledgement of the one before it.
                    let _ = stream.set_nodelay(true);
                    return (Connection { stream, stirs: Stirs::default(), _place: place }, from);
                }
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    // It may be so for hours, and one line says it all.
                    if !self.told.swap(true, Ordering::Relaxed) {
                        tracing::warn!(%error, "cannot accept connections; retrying");
                    }
                    tokio::time::sleep(BREATH).await;
                }
            }
        }
    }
}

/// Whoever came went again before it was let in: that is nobody else's business.
fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.stirs.if_ready(read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.stirs.if_ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.stirs.if_ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

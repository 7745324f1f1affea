//! Listeners, and what they let in: each connection with its caller, its place and its activity.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::activity::Activity;
use super::caller::Admission;
use super::places::{Place, Places};
use super::post;
use super::socket::{self, Socket};
use super::tls::Tls;

/// How long to wait when the machine has no descriptors left: nothing that runs is harmed, and nothing spins.
const BREATH: Duration = Duration::from_millis(100);

/// How many bytes the system takes of a connection that it cannot send yet.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 16 * 1024;

/// For the kernel: drops the first packet of every new connection, and no other.
#[cfg(target_os = "linux")]
const NO_SYN: [socket2::SockFilter; 4] = {
    use socket2::SockFilter;
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 2;
    [
        // The byte of the TCP header with the flags; if SYN is among them, nothing is taken, else everything.
        SockFilter::new(0x30, 0, 0, FLAGS_AT),
        SockFilter::new(0x45, 0, 1, SYN),
        SockFilter::new(0x06, 0, 0, 0),
        SockFilter::new(0x06, 0, 0, u32::MAX),
    ]
};

/// Where agents come in.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(Socket),
}

/// A listener, and whom it admits.
#[derive(Debug)]
pub(super) struct Door {
    listener: Listener,
    admission: Admission,
    /// What it speaks TLS with.
    tls: Option<Arc<Tls>>,
    /// Whether it was told that nobody can be let in.
    told: AtomicBool,
}

/// A connection that has its place.
pub(super) struct Connection {
    stream: Stream,
    /// What its handshake is still to be done with.
    tls: Option<Arc<Tls>>,
    activity: Arc<Activity>,
    /// What is still to be said of a header that is refused.
    refusal: Option<Bytes>,
    _place: Place,
}

enum Stream {
    Tcp(TcpStream, IpAddr),
    Tls(Box<TlsStream<TcpStream>>, IpAddr),
    Unix(socket::Stream),
}

/// What a connection reads and writes.
trait Io: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Io for S {}

/// By which kind of door a connection came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By {
    /// From this address. A browser can come this way.
    Tcp(IpAddr),
    /// From a program that can open the socket.
    Unix,
}

impl Connection {
    pub(super) fn activity(&self) -> Arc<Activity> {
        Arc::clone(&self.activity)
    }

    pub(super) const fn by(&self) -> By {
        match self.stream {
            Stream::Tcp(_, from) | Stream::Tls(_, from) => By::Tcp(from),
            Stream::Unix(_) => By::Unix,
        }
    }

    /// Whether there has to be a handshake before anything can be asked.
    pub(super) const fn needs_handshake(&self) -> bool {
        self.tls.is_some()
    }

    /// The same after its handshake. It keeps its place meanwhile.
    pub(super) async fn secured(self) -> io::Result<Self> {
        let Self { stream, tls, activity, refusal, _place: place } = self;
        let stream = match (stream, tls) {
            (Stream::Tcp(stream, from), Some(tls)) => {
                Stream::Tls(Box::new(tls.handshake(stream, &activity).await?), from)
            }
            (stream, _) => stream,
        };
        Ok(Self { stream, tls: None, activity, refusal, _place: place })
    }

    fn io(&mut self) -> Pin<&mut (dyn Io + 'static)> {
        match &mut self.stream {
            Stream::Tcp(stream, _) => Pin::new(stream),
            Stream::Tls(stream, _) => Pin::new(&mut **stream),
            Stream::Unix(stream) => Pin::new(stream),
        }
    }

    /// Tells the peer that its header is not read, and ends: whatever comes is thrown away until the peer has read that and goes. An
    /// end before that would take back what it was told.
    fn poll_refused(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // In the middle of an answer nothing else can be said.
        if self.activity.is_stuck() {
            return Poll::Ready(());
        }
        let mut left = self.refusal.take().unwrap_or_else(post::unread_head);
        while !left.is_empty() {
            match self.io().poll_write(context, &left) {
                Poll::Ready(Ok(written)) if written > 0 => left.advance(written),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    self.refusal = Some(left);
                    return Poll::Pending;
                }
            }
        }
        self.refusal = Some(left);
        if ready!(self.io().poll_shutdown(context)).is_err() {
            return Poll::Ready(());
        }
        let mut scratch = [0; 4096];
        loop {
            let mut piece = ReadBuf::new(&mut scratch);
            match ready!(self.io().poll_read(context, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }
}

impl Door {
    pub(super) fn new(listener: Listener, admission: Admission) -> Self {
        Self { listener, admission, tls: None, told: AtomicBool::new(false) }
    }

    /// One that speaks TLS, and nothing else.
    pub(super) fn speaking(self, tls: Option<Arc<Tls>>) -> Self {
        Self { tls, ..self }
    }

    /// Nobody new is let in from now on; who is being let in, still is. A listener that is closed resets whoever the system let in
    /// meanwhile, and a balancer then does not know whether its request was read; one whom nobody answered tries again, elsewhere.
    ///
    /// Where the system cannot do that, nothing happens.
    #[cfg_attr(not(target_os = "linux"), allow(clippy::unused_self, reason = "the system cannot do it"))]
    pub(super) fn lets_nobody_in(&self) {
        #[cfg(target_os = "linux")]
        if let Listener::Tcp(listener) = &self.listener
            && let Err(error) = socket2::SockRef::from(listener).attach_filter(&NO_SYN)
        {
            tracing::debug!(%error, "a connection that comes while the listener is closed will be reset");
        }
    }

    /// The next connection, as soon as there is a place for it.
    pub(super) async fn accept(&self, places: &Places) -> Connection {
        loop {
            let accepted = match &self.listener {
                Listener::Tcp(listener) => self.over_tcp(listener).await,
                Listener::Unix(socket) => self.over_unix(socket).await,
            };
            match accepted {
                Ok((stream, activity)) => {
                    self.told.store(false, Ordering::Relaxed);
                    let place = places.take(&activity).await;
                    let tls = self.tls.clone();
                    return Connection { stream, tls, activity, refusal: None, _place: place };
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

    async fn over_tcp(&self, listener: &TcpListener) -> io::Result<(Stream, Arc<Activity>)> {
        let (stream, from) = listener.accept().await?;
        // A small answer must not wait for the acknowledgement of the one before it.
        let _ = stream.set_nodelay(true);
        // What a peer does not read lies here, where the next request on its connection waits for it, and not in the system (X17).
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        let caller = self.admission.over_tcp(stream.local_addr().ok(), from).await;
        // One that was reset while it waited to be accepted can still be read from, and its addresses may belong to another
        // user's connection by now. If it is still connected after we asked, they were its own when we did.
        stream.peer_addr()?;
        Ok((Stream::Tcp(stream, from.ip()), Activity::new(caller)))
    }

    async fn over_unix(&self, socket: &Socket) -> io::Result<(Stream, Arc<Activity>)> {
        let stream = socket.accept().await?;
        let caller = self.admission.over_unix(socket::owner(&stream));
        Ok((Stream::Unix(stream), Activity::new(caller)))
    }
}

/// Whoever came went again before it was let in: that is nobody else's business.
fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | NotConnected)
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.activity.is_refused() {
            return self.poll_refused(context).map(Ok);
        }
        let before = buffer.filled().len();
        let read = self.io().poll_read(context, buffer);
        if let Some(came) = buffer.filled().get(before..).filter(|came| !came.is_empty()) {
            self.activity.came(came);
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.io().poll_write(context, bytes);
        self.activity.writes(written.is_pending());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.io().poll_write_vectored(context, slices);
        self.activity.writes(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::{Admission, By, Door, Listener, Places};
    use crate::front::caller::Caller;

    #[tokio::test]
    async fn x04_a_connection_that_was_reset_before_it_was_accepted_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut gone = std::net::TcpStream::connect(at).unwrap();
        gone.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
        socket2::SockRef::from(&gone).set_linger(Some(Duration::ZERO)).unwrap();
        drop(gone);
        let stays = std::net::TcpStream::connect(at).unwrap();
        let door = Door::new(Listener::Tcp(listener), Admission::everybody());
        let connection = door.accept(&Places::new(2)).await;
        assert_eq!(connection.by(), By::Tcp(at.ip()));
        assert_eq!(connection.activity().caller(), Caller::Anybody(at.ip()));
        let super::Stream::Tcp(stream, _) = &connection.stream else { panic!("it came over TCP") };
        assert_eq!(stream.peer_addr().unwrap(), stays.local_addr().unwrap());
    }
}

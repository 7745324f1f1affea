//! TCP: one of a name's addresses, with the options that find a dead peer below MCP.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
#[cfg(windows)]
use windows_sys::Win32::Networking::WinSock;

use super::Waits;
use super::acks;
use super::network::{Quiet, Silence};
use super::race::{self, Winner};
use super::watch::{AWAY, Knock};
use crate::http::broken::{Broken, Phase};
use crate::stdio::EXHAUSTED;

/// How many addresses of one name are tried.
const ADDRESSES_MOST: usize = 8;

// A peer behind dropped packets is found within 20 s: by our own look at what it acknowledges, or, on a system that does not tell us
// that, by the system's keepalive. A limit for bytes under way (TCP_USER_TIMEOUT) would also end the connection of a server that is
// busy, and acknowledges that it has no room.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
/// Where we look ourselves, the system must not be quicker.
const KEEPALIVE_TRIES: u32 = if WATCHES { 41 } else { 3 };
const _: () = assert!(!WATCHES || KEEPALIVE_TRIES as u64 * KEEPALIVE_INTERVAL.as_secs() > AWAY.as_secs());

/// True if the system tells what a peer acknowledges.
pub(crate) const WATCHES: bool = cfg!(all(target_os = "linux", not(linetender_portable)));

/// Whether what comes is acknowledged at once. A kept connection else delays that by up to 40 ms, and a server without
/// `TCP_NODELAY` waits for it with the next small packet.
pub(crate) const ACKS_AT_ONCE: bool = cfg!(all(target_os = "linux", not(linetender_portable)));

/// A socket that can be looked at while somebody else reads from it.
pub(crate) struct Tcp(TcpStream);

/// The one who reads and writes.
pub(super) struct Shared(pub(super) Arc<Tcp>);

/// Connects to one of the addresses of `host`: the one that was connected to before, else whichever answers first.
pub(super) async fn connect(host: &str, port: u16, waits: Waits, winner: &Winner) -> Result<Tcp, Broken> {
    let mut addresses = look_up(host, port, waits.dns).await?;
    race::order(&mut addresses, winner.get());
    if addresses.is_empty() {
        return Err(Broken::unsent(Phase::Connect, format_args!("{host} resolves to no address")));
    }
    let late = || {
        Broken::unsent(
            Phase::Connect,
            format_args!(
                "connect timeout: no address of {host} accepted a connection within {:?}",
                waits.connect
            ),
        )
    };
    let racing = race::run(addresses, waits.each);
    let (address, stream) = timeout(waits.connect, racing).await.unwrap_or_else(|_| Err(late()))?;
    winner.set(address.ip());
    set_options(&stream);
    Ok(Tcp(stream))
}

async fn look_up(host: &str, port: u16, wait: Duration) -> Result<Vec<SocketAddr>, Broken> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("timed out after {wait:?}"));
    match timeout(wait, tokio::net::lookup_host((host, port))).await.unwrap_or_else(|_| Err(late())) {
        Ok(addresses) => Ok(addresses.take(ADDRESSES_MOST).collect()),
        Err(error) if is_of_this_machine(&error) => Err(Broken::unsent(Phase::Machine, error)),
        Err(error) => {
            let no_such_host = is_no_such_host(&error);
            Err(Broken::unsent(Phase::Dns { no_such_host }, format_args!("{host}: {error}")))
        }
    }
}

/// Whether it says something about this machine, and nothing about the other: that has done nothing to be charged for.
pub(super) fn is_of_this_machine(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.contains(&code))
}

/// On Windows the words are in the user's language.
fn is_no_such_host(error: &io::Error) -> bool {
    #[cfg(windows)]
    const CODES: [i32; 2] = [WinSock::WSAHOST_NOT_FOUND, WinSock::WSANO_DATA];
    #[cfg(not(windows))]
    const CODES: [i32; 0] = [];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code)) || says_no_such_host(&error.to_string())
}

/// Elsewhere the resolver's code is lost on its way through the standard library; its words are not.
fn says_no_such_host(words: &str) -> bool {
    const WORDS: [&str; 5] = [
        "Name or service not known",
        "nodename nor servname provided",
        "No address associated with hostname",
        "Name does not resolve",
        "No such host is known",
    ];
    WORDS.iter().any(|known| words.contains(known))
}

/// TCP lets a socket connect to itself, if it happens to be given the very port that it wants to reach. It would hear its
/// own words, and keep the server that is about to start from its port.
pub(super) fn is_itself(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(ours), Ok(theirs)) if ours == theirs)
}

/// Options are a help, not a condition: a system that refuses one still connects.
fn set_options(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_TRIES);
    let _ = socket.set_tcp_keepalive(&keepalive);
}

/// The kernel forgets this wish by itself, so it is told after every read.
fn acknowledge(stream: &TcpStream) {
    #[cfg(all(target_os = "linux", not(linetender_portable)))]
    let _ = SockRef::from(stream).set_tcp_quickack(true);
    #[cfg(not(all(target_os = "linux", not(linetender_portable))))]
    let _ = stream;
}

impl Quiet for Tcp {
    fn is_quiet(&self) -> bool {
        let socket = SockRef::from(&self.0);
        let clean = matches!(socket.take_error(), Ok(None));
        // The socket never blocks; it was registered with the runtime.
        let peeked = socket.peek(&mut [MaybeUninit::uninit()]);
        clean && peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn silence(&self) -> Option<Silence> {
        acks::silence(&self.0)
    }
}

impl Tcp {
    /// What connects to the same address once more, and says nothing there.
    pub(super) fn knock(&self) -> impl Fn() -> Knock + Send + Sync + 'static + use<> {
        let peer = self.0.peer_addr();
        move || {
            let peer = peer.as_ref().copied().map_err(io::Error::kind);
            Box::pin(async move { TcpStream::connect(peer?).await.map(drop) })
        }
    }
}

impl AsyncRead for Shared {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &self.0.0;
        loop {
            ready!(stream.poll_read_ready(context))?;
            match stream.try_read_buf(buffer) {
                Ok(_) => {
                    acknowledge(stream);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Shared {
    fn poll_try(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.0.poll_write_ready(context))?;
            match write(&self.0.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncWrite for Shared {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_try(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(context, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.0.0).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use socket2::SockRef;
    use tokio::net::{TcpListener, TcpStream};

    use super::{Quiet as _, Tcp, Waits, Winner, connect, says_no_such_host};

    async fn connected() -> (Tcp, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tcp = connect("127.0.0.1", port, Waits::default(), &Winner::default()).await;
        let tcp = tcp.unwrap_or_else(|broken| panic!("{broken}"));
        (tcp, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_dead_peer_is_found_below_mcp() {
        let (tcp, _peer) = connected().await;
        let socket = SockRef::from(&tcp.0);
        assert!(socket.keepalive().unwrap() && tcp.0.nodelay().unwrap());
        // A limit for bytes under way would end the connection of a server that is only busy (H31).
        #[cfg(all(target_os = "linux", not(linetender_portable)))]
        assert_eq!(socket.tcp_user_timeout().unwrap(), None);
    }

    /// H31: a server that works reads nothing, and its system says that there is no room, for as long as it is asked.
    #[cfg(all(target_os = "linux", not(linetender_portable)))]
    #[tokio::test]
    async fn h31_a_peer_that_does_not_read_acknowledges_all_the_same() {
        use std::time::Duration;
        use tokio::time::{Instant, sleep, timeout};

        let (tcp, peer) = connected().await;
        // Until nothing more goes into it, for a while.
        while timeout(Duration::from_millis(200), tcp.0.writable()).await.is_ok() {
            let _ = tcp.0.try_write(&[0; 16_384]);
        }
        // The system asks whether there is room after 200 ms, 400 ms, 800 ms …
        let (until, mut heard) = (Instant::now() + Duration::from_secs(20), 0);
        let mut last = Duration::ZERO;
        while heard < 3 {
            assert!(Instant::now() < until, "it is heard again and again");
            let now = tcp.silence().expect("Linux tells").lasts;
            heard += u32::from(now < last);
            last = now;
            sleep(Duration::from_millis(50)).await;
        }
        drop(peer);
    }

    #[tokio::test]
    async fn a_connection_is_quiet_until_something_comes_or_it_ends() {
        let (tcp, peer) = connected().await;
        assert!(tcp.is_quiet());
        drop(peer);
        tcp.0.readable().await.unwrap();
        assert!(!tcp.is_quiet());
    }

    #[tokio::test]
    async fn a_socket_that_reached_itself_reached_nobody() {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let own = socket.local_addr().unwrap();
        assert!(super::is_itself(&socket.connect(own).await.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(!super::is_itself(&other));
    }

    #[test]
    fn no_such_host_is_told_from_a_resolver_that_is_busy() {
        assert!(says_no_such_host("failed to lookup address information: Name or service not known"));
        assert!(!says_no_such_host(
            "failed to lookup address information: Temporary failure in name resolution"
        ));
    }

    /// Whatever this system calls it in the language of its user.
    #[cfg(windows)]
    #[test]
    fn a_name_that_is_not_known_is_known_by_its_code() {
        for code in [11_001, 11_004] {
            let error = std::io::Error::from_raw_os_error(code);
            println!("{error}");
            assert!(super::is_no_such_host(&error), "{error}");
        }
        // The resolver is out of reach: that passes.
        assert!(!super::is_no_such_host(&std::io::Error::from_raw_os_error(11_002)));
    }
}

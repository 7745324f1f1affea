//! A Unix socket in the place of a TCP connection: a server of this machine, below a path of its own.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Stream;
use super::network::Quiet;
use super::socket::is_of_this_machine;
use crate::http::broken::{Broken, Phase};

/// A socket that can be looked at while somebody else reads from it.
struct Unix(UnixStream);

/// The one who reads and writes.
struct Shared(Arc<Unix>);

/// Connects to whoever listens at this path.
pub(super) async fn connect(
    path: &Path,
    wait: Duration,
) -> Result<(Box<dyn Stream>, Arc<dyn Quiet>), Broken> {
    let unix = Arc::new(connect_to(path, wait).await?);
    Ok((Box::new(Shared(Arc::clone(&unix))), unix))
}

async fn connect_to(path: &Path, wait: Duration) -> Result<Unix, Broken> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("timed out after {wait:?}"));
    let connected = timeout(wait, UnixStream::connect(path)).await.unwrap_or_else(|_| Err(late()));
    connected.map(Unix).map_err(|error| {
        let phase = match error.kind() {
            _ if is_of_this_machine(&error) => Phase::Machine,
            // Without a file nobody listens there either.
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Phase::Refused,
            _ => Phase::Connect,
        };
        Broken::unsent(phase, format_args!("{}: {error}", path.display()))
    })
}

impl Quiet for Unix {
    fn is_quiet(&self) -> bool {
        let socket = SockRef::from(&self.0);
        let clean = matches!(socket.take_error(), Ok(None));
        let peeked = socket.peek(&mut [MaybeUninit::uninit()]);
        clean && peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
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
                Ok(_) => return Poll::Ready(Ok(())),
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
        write: impl Fn(&UnixStream) -> io::Result<usize>,
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
    use super::connect_to;
    use crate::http::connect::network::Quiet as _;
    use std::time::Duration;

    #[tokio::test]
    async fn a_socket_is_quiet_until_its_peer_is_gone_and_a_missing_one_is_nobody() {
        let path = std::env::temp_dir().join(format!("linetender-unix-{}.sock", std::process::id()));
        let wait = Duration::from_secs(10);
        let nobody = connect_to(&path, wait).await.err().expect("nobody listens there");
        assert!(nobody.to_string().contains(&path.display().to_string()), "{nobody}");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let unix = connect_to(&path, wait).await.unwrap_or_else(|broken| panic!("{broken}"));
        let (peer, _) = listener.accept().await.unwrap();
        assert!(unix.is_quiet());
        drop(peer);
        unix.0.readable().await.unwrap();
        assert!(!unix.is_quiet());
        std::fs::remove_file(path).unwrap();
    }
}

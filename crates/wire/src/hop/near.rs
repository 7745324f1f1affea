//! An owner on this machine.
//!
//! On Linux the asker brings two pipes along with its order. The socket itself would do, and is what is left where pipes cannot be
//! had; but each end of a socket is woken whenever the other has read, only to be told that it may write, which it might before:
//! two wakeups of a process for each call.

mod ask;
mod tally;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

use super::ask::Taken;
use super::asker::{Owner, Reached};
use super::carrier::{self, Carrier};
use super::owner::{Stand, serve_on};
use crate::frame::{Limits, Passed};
use crate::queue;
use crate::readable::read_now;

pub use ask::{ask, asked};
pub(super) use tally::Tally;

/// What is read from.
pub(super) enum Input {
    Socket(OwnedReadHalf),
    Pipe(Receiver),
}

/// What is written to.
pub(super) enum Output {
    Socket(OwnedWriteHalf),
    Pipe(Sender),
}

impl Reached {
    /// With a stream from where the answer to the order ended, and what was offered with the order. `owner` is its process.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(stream: UnixStream, offer: Option<Offer>, taken: &Taken, owner: Arc<dyn Owner>) -> Self {
        let (carrier, tally) = match offer {
            Some(offer) => offer.answered(taken.pipes, stream),
            None => (socket(stream), None),
        };
        Self::near(carrier, tally, owner)
    }
}

/// Serves an asker until it goes, the line lets go of it, or the owner [leaves](Stand::Leaves).
///
/// `to` and `from` are one agent's ends of the line; `offered` came with the order, over `stream`.
///
/// # Errors
/// If the stream breaks.
pub async fn serve(
    stream: UnixStream,
    offered: Offered,
    limits: Limits,
    to: mpsc::Sender<Passed>,
    from: queue::Receiver<Passed>,
    stand: watch::Receiver<Stand>,
) -> io::Result<()> {
    let ((input, output), tally) = offered.carrier(stream);
    serve_on(tokio::io::join(input, output), limits, to, from, stand, tally, None).await
}

/// Over the socket that the order went over.
fn socket(stream: UnixStream) -> Carrier {
    let (input, output) = stream.into_split();
    carrier(Input::Socket(input), Output::Socket(output))
}

fn carrier(input: Input, output: Output) -> Carrier {
    (carrier::Input::Near(input), carrier::Output::Near(output))
}

/// What an asker hands over with its order: its tally, and the owner's ends of two pipes.
#[derive(Debug)]
pub struct Offer {
    tally: Tally,
    input: Receiver,
    output: Sender,
    /// What the owner reads from, and what it writes to.
    lent: (OwnedFd, OwnedFd),
}

impl Offer {
    /// A new one; `None` where there are no such things, or no descriptors left.
    pub fn new() -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            use rustix::pipe::{PipeFlags, pipe_with};
            let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
            let (down, up) = (pipe_with(flags).ok()?, pipe_with(flags).ok()?);
            Some(Self {
                tally: Tally::new()?,
                input: Receiver::from_owned_fd(up.0).ok()?,
                output: Sender::from_owned_fd(down.1).ok()?,
                lent: (down.0, up.1),
            })
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    fn fds(&self) -> [BorrowedFd<'_>; 3] {
        [self.tally.as_fd(), self.lent.0.as_fd(), self.lent.1.as_fd()]
    }

    /// What is left of it when the owner has answered: our own ends, if it took its, and the tally.
    fn answered(self, taken: bool, stream: UnixStream) -> (Carrier, Option<Tally>) {
        let carrier =
            if taken { carrier(Input::Pipe(self.input), Output::Pipe(self.output)) } else { socket(stream) };
        (carrier, Some(self.tally))
    }
}

/// What came with an order.
#[derive(Debug, Default)]
pub struct Offered {
    tally: Option<Tally>,
    pipes: Option<(Receiver, Sender)>,
}

impl Offered {
    /// Each of them, if it is what it ought to be: others might wait when they are written to.
    fn of(mut fds: impl Iterator<Item = OwnedFd>) -> Self {
        let tally = fds.next().and_then(Tally::handed);
        let pipes = fds.next().zip(fds.next()).and_then(|(input, output)| {
            if !are_ends_of_two(&input, &output) {
                return None;
            }
            Some((Receiver::from_owned_fd(input).ok()?, Sender::from_owned_fd(output).ok()?))
        });
        Self { tally, pipes }
    }

    /// Whether its pipes are taken: whoever asked is to be told.
    pub const fn has_pipes(&self) -> bool {
        self.pipes.is_some()
    }

    fn carrier(self, stream: UnixStream) -> (Carrier, Option<Tally>) {
        let carrier = match self.pipes {
            Some((input, output)) => carrier(Input::Pipe(input), Output::Pipe(output)),
            None => socket(stream),
        };
        (carrier, self.tally)
    }
}

/// Whoever held both ends of a pipe would never see that the other is gone.
fn are_ends_of_two(input: &OwnedFd, output: &OwnedFd) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fstat};
    let only = |fd, mode| fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE == mode);
    let differ = match (fstat(input), fstat(output)) {
        (Ok(input), Ok(output)) => (input.st_dev, input.st_ino) != (output.st_dev, output.st_ino),
        _ => false,
    };
    only(input, OFlags::RDONLY) && only(output, OFlags::WRONLY) && differ
}

impl Input {
    pub(super) fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => read_now(socket.as_ref(), buffer),
            Self::Pipe(pipe) => read_now(pipe, buffer),
        }
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// A pipe ends when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Pipe(_) => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Offer, Offered};
    use std::os::fd::OwnedFd;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    fn lent(offer: &Offer) -> Vec<OwnedFd> {
        offer.fds().iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect()
    }

    #[tokio::test]
    async fn what_is_written_at_one_end_is_read_at_the_other_and_so_is_its_end() {
        let (asker, owner) = UnixStream::pair().unwrap();
        let offer = Offer::new().unwrap();
        let offered = Offered::of(lent(&offer).into_iter());
        assert!(offered.has_pipes());
        let ((mut in_asker, mut out_asker), _) = offer.answered(true, asker);
        let ((mut in_owner, mut out_owner), tally) = offered.carrier(owner);
        assert!(tally.is_some());
        out_asker.write_all(b"down").await.unwrap();
        out_owner.write_all(b"up").await.unwrap();
        drop((out_asker, out_owner));
        let (mut down, mut up) = (String::new(), String::new());
        in_owner.read_to_string(&mut down).await.unwrap();
        in_asker.read_to_string(&mut up).await.unwrap();
        assert_eq!((down.as_str(), up.as_str()), ("down", "up"));
    }

    /// Whoever has no descriptors left gets some of them, or none.
    #[tokio::test]
    async fn half_an_offer_is_not_taken() {
        let offer = Offer::new().unwrap();
        let mut fds = lent(&offer);
        fds.pop();
        let offered = Offered::of(fds.into_iter());
        assert!(!offered.has_pipes() && offered.tally.is_some());
        assert!(!Offered::of(lent(&offer).into_iter().rev()).has_pipes(), "neither of the right kind");
        let (read, write) = rustix::pipe::pipe().unwrap();
        let both = lent(&offer).into_iter().take(1).chain([read, write]);
        assert!(!Offered::of(both).has_pipes(), "both ends of one");
    }
}

//! A pipe of which a kqueue tells.
//!
//! It tells that nobody reads any more as an end of file, in the direction that was asked for, and never as an error: whoever waits
//! for an error waits for ever, and the direction that we write in is ready most of the time. So a second descriptor of the same end
//! is watched as if it were to be read. It cannot be, so that all that can happen to it is its end.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWrite, Interest, Ready};
use tokio::net::unix::pipe::Sender;

use crate::readable::watched;
use crate::stdio::platform::Stdin;

/// The write end of a pipe.
pub(in super::super) struct Told {
    pipe: Sender,
    /// `None` if there was no descriptor left: then it is known from the next write, and from the other pipes.
    end: Option<AsyncFd<OwnedFd>>,
}

/// What is asked for: the direction that nothing comes from, and errors, which other systems tell.
const ASKED: Interest = Interest::READABLE.add(Interest::ERROR);

impl Told {
    pub(super) fn of(pipe: Sender) -> Self {
        let end = pipe.as_fd().try_clone_to_owned().ok().and_then(|end| watched(end, ASKED));
        Self { pipe, end }
    }
}

/// Whether what is told is the end.
fn is_end(told: Ready) -> bool {
    told.is_read_closed() || told.is_write_closed() || told.is_error()
}

impl Stdin for Told {
    async fn broken(&self) {
        if let Some(end) = &self.end {
            while let Ok(mut told) = end.ready(ASKED).await {
                if is_end(told.ready()) {
                    return told.retain_ready();
                }
                told.clear_ready();
            }
        }
        std::future::pending::<()>().await;
    }

    fn unread(&self) -> Option<Vec<u8>> {
        None
    }
}

impl AsyncWrite for Told {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.pipe.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt as _, Ready};
    use tokio::net::unix::pipe;
    use tokio::time::timeout;

    use super::{Told, is_end};
    use crate::stdio::platform::Stdin as _;

    /// What the runtime makes of a kqueue's event: the filter is the direction, `EV_EOF` is its end, and an error is only told with a
    /// number, which pipes have none of.
    #[test]
    fn the_end_of_a_pipe_is_known_by_the_words_of_a_kqueue() {
        assert!(is_end(Ready::READABLE | Ready::READ_CLOSED));
        assert!(is_end(Ready::WRITABLE | Ready::WRITE_CLOSED));
        assert!(is_end(Ready::ERROR), "by those of others too");
        assert!(!is_end(Ready::WRITABLE) && !is_end(Ready::READABLE) && !is_end(Ready::EMPTY));
    }

    #[tokio::test]
    async fn a_server_that_closes_its_stdin_is_noticed_and_one_that_reads_slowly_is_not_taken_for_it() {
        let (to, from) = pipe::pipe().unwrap();
        let mut to = Told::of(to);
        to.write_all(b"one").await.unwrap();
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, to.broken()).await.is_err(), "it is full of unread words, and open");
        let mut room = [0; 8];
        assert_eq!(from.try_read(&mut room).unwrap(), 3);
        assert!(timeout(soon, to.broken()).await.is_err(), "it was read, and is open");
        drop(from);
        for _ in 0..2 {
            timeout(Duration::from_secs(10), to.broken()).await.expect("nobody reads any more");
        }
        assert!(to.write_all(b"two").await.is_err());
    }

    #[tokio::test]
    async fn nothing_of_it_holds_the_pipe_open_when_it_is_dropped() {
        let (to, from) = pipe::pipe().unwrap();
        drop(Told::of(to));
        from.readable().await.unwrap();
        assert_eq!(from.try_read(&mut [0; 8]).unwrap(), 0, "the server sees the end of its stdin");
    }
}

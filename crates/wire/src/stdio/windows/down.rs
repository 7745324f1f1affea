//! Our end of a server's stdin.
//!
//! The runtime takes whatever is written to a named pipe into a buffer of its own, and says that it is written. Then a call would be in
//! doubt of which no byte has left this process; so a write here is over when the system has put it into the pipe.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, Interest};
use tokio::net::windows::named_pipe::NamedPipeServer;

use super::pipes::HOLDS;
use crate::stdio::platform::Stdin;

/// A pipe that we write to.
pub(super) struct Down {
    pipe: Arc<NamedPipeServer>,
    under_way: Option<UnderWay>,
}

/// So many bytes were handed over, and are not in the pipe yet.
struct UnderWay {
    bytes: usize,
    done: Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>,
}

impl Down {
    pub(super) fn new(pipe: NamedPipeServer) -> Self {
        Self { pipe: Arc::new(pipe), under_way: None }
    }

    /// Hands bytes over. `None` if those before them are not in the pipe yet.
    fn hand_over(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let bytes = &bytes[..bytes.len().min(HOLDS as usize)];
        let mut handed = Ok(None);
        // The runtime is told that the pipe is full, and learns by itself when it is not: when these are in it. Should it have learnt that
        // before it is told, then what it is told is about an earlier state, and does not count.
        let _ = self.pipe.try_io(Interest::WRITABLE, || {
            handed = self.pipe.try_write(bytes).map(Some);
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
        match handed {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            handed => handed,
        }
    }
}

impl AsyncWrite for Down {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(under_way) = &mut self.under_way {
                let (written, done) = (under_way.bytes, ready!(under_way.done.as_mut().poll(context)));
                self.under_way = None;
                done?;
                if written > 0 {
                    return Poll::Ready(Ok(written));
                }
            }
            // Whoever reads would take nothing for the end.
            if bytes.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let bytes = self.hand_over(bytes)?.unwrap_or(0);
            let pipe = Arc::clone(&self.pipe);
            self.under_way = Some(UnderWay { bytes, done: Box::pin(async move { pipe.writable().await }) });
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// It ends when it is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Stdin for Down {
    async fn broken(&self) {
        loop {
            let ready = self.pipe.ready(Interest::READABLE).await;
            match self.pipe.try_read(&mut [0]) {
                Err(error) if ready.is_ok() && error.kind() == io::ErrorKind::WouldBlock => {}
                // Their end cannot be written to.
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// The pipe goes with its last reader, and what was in it too: nobody can tell what was read.
    fn unread(&self) -> Option<Vec<u8>> {
        None
    }
}

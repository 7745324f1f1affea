//! A pipe that knows what was written, what was consumed, and who is left: as the kernel does.
//!
//! It has a capacity, small writes are whole or not at all, end of file comes when the last writer is gone, and what the
//! last reader left unread can be counted, as FIONREAD does after POLLERR.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Writes up to this much are whole or not at all, as with the kernel's `PIPE_BUF`.
const WHOLE: usize = 4096;

/// A write end. A clone is a second holder of it.
pub(crate) struct Writer(Arc<Mutex<State>>);

/// A read end. A clone is a second holder of it.
pub(crate) struct Reader(Arc<Mutex<State>>);

struct State {
    bytes: VecDeque<u8>,
    capacity: usize,
    readers: usize,
    writers: usize,
    /// Whoever waits for anything to change: readers, writers, those who watch for the last reader.
    waiting: Vec<Waker>,
}

/// A pipe that holds so many bytes.
pub(crate) fn pipe(capacity: usize) -> (Writer, Reader) {
    let state = State { bytes: VecDeque::new(), capacity, readers: 1, writers: 1, waiting: Vec::new() };
    let state = Arc::new(Mutex::new(state));
    (Writer(Arc::clone(&state)), Reader(state))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn wait(&mut self, context: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            self.waiting.push(context.waker().clone());
        }
    }

    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Writer {
    /// What will never be read: known once no reader is left.
    pub(crate) fn unread(&self) -> Option<Vec<u8>> {
        let state = lock(&self.0);
        (state.readers == 0).then(|| state.bytes.iter().copied().collect())
    }

    /// Returns when the last reader is gone.
    pub(crate) async fn broken(&self) {
        std::future::poll_fn(|context| {
            let mut state = lock(&self.0);
            if state.readers == 0 {
                return Poll::Ready(());
            }
            state.wait(context);
            Poll::Pending
        })
        .await;
    }
}

impl Reader {
    /// Whether a read would return at once.
    pub(crate) fn is_ready(&self) -> bool {
        let state = lock(&self.0);
        !state.bytes.is_empty() || state.writers == 0
    }

    /// Takes what is there, up to so much.
    pub(crate) fn take(&self, most: usize) -> Vec<u8> {
        let mut state = lock(&self.0);
        let taken = most.min(state.bytes.len());
        let bytes = state.bytes.drain(..taken).collect();
        state.wake();
        bytes
    }

    /// Looks at what is there.
    pub(crate) fn peek(&self, looks: impl FnOnce(&VecDeque<u8>) -> usize) -> usize {
        looks(&lock(&self.0).bytes)
    }

    /// Returns when there is something to read, or nobody is left to write.
    pub(crate) async fn ready(&self) {
        std::future::poll_fn(|context| {
            if self.is_ready() {
                return Poll::Ready(());
            }
            lock(&self.0).wait(context);
            Poll::Pending
        })
        .await;
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_ready() {
            lock(&self.0).wait(context);
            return Poll::Pending;
        }
        buffer.put_slice(&self.take(buffer.remaining()));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.0);
        if state.readers == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = state.capacity - state.bytes.len();
        let whole = bytes.len() <= WHOLE.min(state.capacity);
        if room == 0 || whole && room < bytes.len() {
            state.wait(context);
            return Poll::Pending;
        }
        let taken = room.min(bytes.len());
        state.bytes.extend(&bytes[..taken]);
        state.wake();
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Clone for Writer {
    fn clone(&self) -> Self {
        lock(&self.0).writers += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Clone for Reader {
    fn clone(&self) -> Self {
        lock(&self.0).readers += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.writers -= 1;
        state.wake();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.readers -= 1;
        state.wake();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::pipe;

    #[tokio::test]
    async fn what_is_unread_is_known_once_the_last_reader_is_gone() {
        let (mut writer, reader) = pipe(10);
        let survivor = reader.clone();
        writer.write_all(b"0123456").await.unwrap();
        assert_eq!(reader.take(3), b"012");
        drop(reader);
        assert_eq!(writer.unread(), None, "somebody may still read it");
        drop(survivor);
        assert_eq!(writer.unread().map(|unread| unread.len()), Some(4));
        assert!(writer.write_all(b"x").await.is_err());
    }

    #[tokio::test]
    async fn a_small_write_is_whole_or_not_at_all() {
        let (mut writer, reader) = pipe(8);
        writer.write_all(b"012345").await.unwrap();
        let mut second = crate::tasks::spawn(async move { writer.write_all(b"6789").await });
        tokio::task::yield_now().await;
        assert_eq!(reader.take(100), b"012345");
        (&mut second).await.unwrap().unwrap();
        assert_eq!(reader.take(100), b"6789");
    }
}

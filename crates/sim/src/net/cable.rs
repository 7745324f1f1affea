//! One connection: two ways, each with a window, in order, as late as the link is.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use linetender_wire::http::network::{Quiet, Silence, Socket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::Net;

/// How much may be under way.
const WINDOW: usize = 65_536;

// What our sockets do about a silent peer: see the wire's own. Until what is watched there gives a connection up, TCP goes on.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);

/// We are on this side.
const OURS: usize = 0;

/// A connection.
pub(crate) struct Cable {
    net: Arc<Net>,
    state: Mutex<State>,
}

struct State {
    /// By the side that writes.
    ways: [Way; 2],
    reset: bool,
    waiting: Vec<Waker>,
}

struct Way {
    chunks: VecDeque<(Instant, VecDeque<u8>)>,
    bytes: usize,
    /// When the last of it arrives.
    last: Instant,
    /// Nothing more will be written.
    closed: bool,
    /// Its writer is gone.
    left: bool,
}

/// One end of it.
pub(crate) struct End {
    cable: Arc<Cable>,
    side: usize,
    timer: Option<Pin<Box<Sleep>>>,
}

/// What a look at the way in comes to.
enum Look {
    Bytes(VecDeque<u8>),
    End,
    Error(io::ErrorKind),
    /// Nothing yet; at that time there may be.
    Nothing(Option<Instant>),
}

impl Cable {
    pub(super) fn lay(net: &Arc<Net>) -> (End, End) {
        let way =
            || Way { chunks: VecDeque::new(), bytes: 0, last: Instant::now(), closed: false, left: false };
        let state = State { ways: [way(), way()], reset: false, waiting: Vec::new() };
        let cable = Arc::new(Self { net: Arc::clone(net), state: Mutex::new(state) });
        let end = |side| End { cable: Arc::clone(&cable), side, timer: None };
        (end(OURS), end(1 - OURS))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.state().wake();
    }

    pub(super) fn reset(&self) {
        let mut state = self.state();
        state.reset = true;
        state.wake();
    }

    /// What the one on this side finds; it takes no more than so much.
    fn look(&self, side: usize, most: usize) -> Look {
        let (sky, now) = (self.net.sky(), Instant::now());
        let mut state = self.state();
        if sky.cut_since.is_some() {
            return Look::Nothing(None);
        }
        if state.reset {
            return Look::Error(io::ErrorKind::ConnectionReset);
        }
        let way = &mut state.ways[1 - side];
        match way.chunks.front_mut() {
            Some((at, _)) if *at > now => Look::Nothing(Some(*at)),
            Some((_, chunk)) => {
                let rest = chunk.split_off(most.min(chunk.len()));
                let taken = std::mem::replace(chunk, rest);
                if chunk.is_empty() && most > 0 {
                    way.chunks.pop_front();
                }
                way.bytes -= taken.len();
                if !taken.is_empty() {
                    state.wake();
                }
                Look::Bytes(taken)
            }
            None if way.closed && way.last <= now => Look::End,
            None if way.closed => Look::Nothing(Some(way.last)),
            None => Look::Nothing(None),
        }
    }
}

impl State {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl End {
    pub(super) fn cable(&self) -> Weak<Cable> {
        Arc::downgrade(&self.cable)
    }

    fn close(&self, leaves: bool) {
        let delay = self.cable.net.delay();
        let mut state = self.cable.state();
        let way = &mut state.ways[self.side];
        if !way.closed {
            way.closed = true;
            way.last = way.last.max(Instant::now() + delay);
        }
        way.left |= leaves;
        state.wake();
    }
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.cable.look(self.side, buffer.remaining()) {
                Look::Bytes(mut bytes) => {
                    buffer.put_slice(bytes.make_contiguous());
                    return Poll::Ready(Ok(()));
                }
                Look::End => return Poll::Ready(Ok(())),
                Look::Error(kind) => return Poll::Ready(Err(kind.into())),
                Look::Nothing(next) => {
                    self.cable.state().waiting.push(context.waker().clone());
                    let Some(next) = next else { return Poll::Pending };
                    let mut timer = Box::pin(tokio::time::sleep_until(next));
                    let due = timer.as_mut().poll(context);
                    self.timer = Some(timer);
                    if due.is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl AsyncWrite for End {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let delay = self.cable.net.delay();
        let (sky, now) = (self.cable.net.sky(), Instant::now());
        let mut state = self.cable.state();
        let their = &state.ways[1 - self.side];
        if sky.cut_since.is_none() && (state.reset || their.left && their.last <= now) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let way = &mut state.ways[self.side];
        let room = WINDOW.saturating_sub(way.bytes);
        if room == 0 {
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        let taken = room.min(bytes.len());
        way.last = way.last.max(now + delay);
        way.bytes += taken;
        let chunk = (way.last, bytes[..taken].iter().copied().collect());
        way.chunks.push_back(chunk);
        state.wake();
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close(false);
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.close(true);
    }
}

impl Socket for End {
    fn look(&self) -> Arc<dyn Quiet> {
        Arc::clone(&self.cable) as Arc<dyn Quiet>
    }
}

impl Quiet for Cable {
    fn is_quiet(&self) -> bool {
        matches!(self.look(OURS, 0), Look::Nothing(_))
    }

    fn silence(&self) -> Option<Silence> {
        let Some(since) = self.net.sky().cut_since else { return Some(Silence::default()) };
        let (lasts, sent) = (since.elapsed(), self.state().ways[OURS].bytes > 0);
        let tries = lasts.as_secs() / KEEPALIVE_INTERVAL.as_secs();
        let tries = u32::try_from(tries).unwrap_or(u32::MAX);
        Some(Silence { lasts, owes: sent || lasts >= KEEPALIVE_IDLE, tries })
    }
}

//! Reads a server's stdout, and hands what it finds to whoever listens.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Notify, mpsc, oneshot};

use super::platform::{Output, PIPE_MAX_BYTES};
use crate::frame::Limits;
use crate::lines::Lines;
use crate::room::Unfinished;
use crate::seam::{Event, Listener};
use crate::seen::Pipe;
use crate::test_hooks;

/// Asks a reader to take what is there.
#[derive(Clone)]
pub(super) struct Drain(mpsc::Sender<oneshot::Sender<()>>);

impl Drain {
    pub(super) fn new() -> (Self, mpsc::Receiver<oneshot::Sender<()>>) {
        let (asks, asked) = mpsc::channel(1);
        (Self(asks), asked)
    }

    /// Returns when it is taken, or when there is nobody who would.
    pub(super) async fn all(&self) {
        let (done, drained) = oneshot::channel();
        if self.0.send(done).await.is_ok() {
            let _ = drained.await;
        }
    }
}

/// Reads until end of file, or until it is told to take what is there and stop.
pub(super) async fn read(
    mut stdout: impl Output,
    limits: Limits,
    listener: Arc<dyn Listener>,
    mut drain: mpsc::Receiver<oneshot::Sender<()>>,
    events: mpsc::Sender<Event>,
    heard: Arc<Notify>,
) {
    let mut lines = Lines::new(limits);
    let mut first = true;
    let mut unfinished = Unfinished::new(listener.as_ref());
    loop {
        let waits = unfinished.now(lines.unfinished()).is_err();
        tokio::select! {
            biased;
            settled = unfinished.settled() => if settled.is_err() {
                give_up(&mut lines, &mut unfinished, listener.as_ref());
            },
            read = stdout.read_buf(lines.buffer()), if !waits => {
                let bytes = read.unwrap_or(0);
                test_hooks::point("reader");
                take(&mut lines, listener.as_ref(), bytes);
                heard.notify_one();
                if bytes > 0 && std::mem::take(&mut first) {
                    let _ = events.send(Event::FirstByte).await;
                }
                if bytes == 0 {
                    while let Some(item) = lines.finish() {
                        listener.hear(item);
                    }
                    let _ = events.send(Event::Closed(Pipe::Stdout)).await;
                    // Whoever wants a drain gets one: there is nothing left.
                    if let Some(done) = drain.recv().await {
                        let _ = done.send(());
                    }
                    return;
                }
            }
            Some(done) = drain.recv() => {
                let mut drained = 0;
                while drained < PIPE_MAX_BYTES
                    && let Ok(bytes @ 1..) = stdout.read_now(lines.buffer()).await
                {
                    take(&mut lines, listener.as_ref(), bytes);
                    drained += bytes;
                }
                while let Some(item) = lines.finish() {
                    listener.hear(item);
                }
                let _ = done.send(());
                drop(drain);
                return swallow(stdout, lines.buffer()).await;
            }
        }
    }
}

/// Nobody listens any more; but a server that is asked to go must be able to say its last words without being broken off.
async fn swallow(mut stdout: impl Output, buffer: &mut BytesMut) {
    loop {
        buffer.clear();
        if !matches!(stdout.read_buf(buffer).await, Ok(1..)) {
            return;
        }
    }
}

/// There is no room for the line that is being read: whoever waits for it is told.
fn give_up(lines: &mut Lines, unfinished: &mut Unfinished<'_>, listener: &dyn Listener) {
    unfinished.none();
    if let Some(item) = lines.give_up() {
        listener.hear(item);
    }
}

fn take(lines: &mut Lines, listener: &dyn Listener, bytes: usize) {
    if bytes > 0 {
        listener.heard();
    }
    while let Some(item) = lines.take() {
        listener.hear(item);
    }
}

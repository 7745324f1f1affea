//! One agent on two pipes, all servers behind it.

use linetender::session::{Agent, Ended};
use linetender_wire::{Item, Lines, frame};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::board::Door;
use crate::gateway::{Gateway, Stay};
use crate::mux;

/// How deep a message may be nested.
const DEPTH: usize = 128;

/// Serves all servers to one agent on these pipes, until it goes or `stop`.
pub async fn serve<R, W>(
    gateway: &Gateway,
    mut input: R,
    mut output: W,
    stop: impl Future<Output = ()>,
) -> Ended
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Agent { to, mut from } = mux::open(gateway.clone(), Door::All, Stay::Session);
    let limits = frame::Limits { length: gateway.settings().message, depth: DEPTH };
    let read = async {
        let mut lines = Lines::new(limits);
        loop {
            while let Some(item) = lines.take() {
                if let Item::Frame(frame) = item
                    && to.send(frame.text().clone()).await.is_err()
                {
                    return Ended::Stopped;
                }
            }
            if !matches!(input.read_buf(lines.buffer()).await, Ok(1..)) {
                return Ended::AgentGone;
            }
        }
    };
    let write = async {
        while let Some(text) = from.recv().await {
            let mut line = Vec::with_capacity(text.len() + 1);
            line.extend_from_slice(&frame::one_line(text));
            line.push(b'\n');
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                return Ended::AgentDeaf;
            }
        }
        Ended::Stopped
    };
    tokio::select! {
        ended = read => ended,
        ended = write => ended,
        () = stop => Ended::Stopped,
    }
}

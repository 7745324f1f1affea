//! One agent on two pipes, all servers behind it.

use std::time::Duration;

use bytes::Bytes;
use linetender::session::{Agent, Batches, Ended};
use linetender_wire::frame::{self, Frame, Message, Passed, Routing};
use linetender_wire::{About, Item, Lines};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::gateway::Gateway;
use crate::listing::Endpoint;
use crate::mux;
use crate::principal::{Principal, Stay, Visitor};

/// Answers of our own that wait to be written; the agent is not read while they do.
const REFUSALS: usize = 16;

/// How long it may take to write what the agent is still to hear.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long after an agent cannot be written to it may be seen that it is gone.
const OTHER_PIPE: Duration = Duration::from_millis(100);

/// Serves all servers to one agent on these pipes until the agent disconnects or `stop`.
pub async fn serve<R, W>(gateway: &Gateway, input: R, mut output: W, stop: impl Future<Output = ()>) -> Ended
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let visitor = Visitor { principal: Principal::this_user(), agent: 0, stay: Stay::Session };
    let Agent { to, mut from } = mux::open(gateway.clone(), Endpoint::All, visitor);
    let limits = gateway.settings().limits();
    let (refuse, mut refused) = mpsc::channel(REFUSALS);
    let batches = Batches::default();
    let lines = Lines::new(limits).with_batches();
    let mut read = Box::pin(read(input, (lines, &batches), to, refuse));
    let write = async {
        loop {
            let text = tokio::select! {
                text = batches.next(&mut from) => text,
                Some(text) = refused.recv() => match batches.pass(text) {
                    Some(text) => Some(text),
                    None => continue,
                },
            };
            let Some(text) = text else { return Ended::Broken };
            let mut line = Vec::with_capacity(text.text().len() + 1);
            line.extend_from_slice(text.one_line().text());
            line.push(b'\n');
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                return Ended::AgentDeaf;
            }
        }
    };
    let mut write = std::pin::pin!(write);
    let ended = tokio::select! {
        ended = &mut read => ended,
        // Whoever vanishes closes both pipes, and which of them is seen first is luck.
        ended = &mut write => return match tokio::time::timeout(OTHER_PIPE, read).await {
            Ok(Ended::AgentGone) => Ended::AgentGone,
            _ => ended,
        },
        () = stop => Ended::Stopped,
    };
    // Nothing more is asked.
    drop(read);
    // Whoever stopped asking, or is not heard any more, still hears what it asked for.
    let _ = tokio::time::timeout(mux::LAST_ANSWERS + LAST_WORDS, write).await;
    ended
}

/// Hands over what the agent says, until it goes.
async fn read(
    mut input: impl AsyncRead + Unpin,
    (mut lines, batches): (Lines, &Batches),
    to: mpsc::Sender<Passed>,
    refuse: mpsc::Sender<Passed>,
) -> Ended {
    let mut open = true;
    loop {
        while let Some(item) = {
            batches.room().await;
            let item = if open { lines.take() } else { lines.finish() };
            batches.read(&mut lines, item)
        } {
            let taken = match item {
                Item::Frame(frame) if mux::is_unasked(&frame) => true,
                Item::Frame(frame) => match ambiguous(&frame) {
                    Some(refusal) => refuse.send(refusal.into()).await.is_ok(),
                    None => to.send(frame.into()).await.is_ok(),
                },
                Item::Unreadable { about, bad, .. } => {
                    let id = match about {
                        About::Question(Some(id)) => id,
                        About::Question(None) | About::Answer(_) => continue,
                        About::Unknown => "null".to_owned(),
                    };
                    let error =
                        serde_json::json!({ "code": -32600, "message": format!("the message is {bad}") });
                    refuse.send(frame::error_reply(&id, &error.to_string()).into()).await.is_ok()
                }
                Item::Noise(_) => true,
            };
            if !taken {
                return Ended::Broken;
            }
        }
        if !open {
            return Ended::AgentGone;
        }
        open = matches!(input.read_buf(lines.buffer()).await, Ok(1..));
    }
}

/// The answer to a message in which two readers would read two different requests.
fn ambiguous(frame: &Frame) -> Option<Bytes> {
    let (id, method, params) = match frame.message() {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { method, params } => ("null", method, params),
        Message::Response { .. } => return None,
    };
    let ambiguous = Routing::of(method, params).err()?;
    let error = serde_json::json!({ "code": -32600, "message": format!("the params are {ambiguous}") });
    Some(frame::error_reply(id, &error.to_string()))
}

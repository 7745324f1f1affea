//! The owner's end: what comes from the asker goes to the line as one agent's words, and back.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};

use super::{ACKNOWLEDGED, GOES, MOVE};
use crate::frame::{self, Limits, Passed};
use crate::lines::{About, Item, Lines};
use crate::queue;

/// Small messages are gathered up to about this much.
const BATCH: usize = 64 * 1024;

/// What an asker is told besides what the line says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Stand {
    /// Nothing: it is served.
    #[default]
    Serves,
    /// It is to move on when its calls have ended, and why.
    Moves(String),
    /// Nothing more is taken from it: what it says now is not acknowledged, and goes to the next owner.
    Hands,
    /// The owner goes now.
    Leaves,
}

/// Serves an asker until it goes, the line lets go of it, or the owner [leaves](Stand::Leaves).
///
/// `to` and `from` are one agent's ends of the line.
///
/// # Errors
/// If the stream breaks.
pub async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    limits: Limits,
    to: mpsc::Sender<Passed>,
    mut from: queue::Receiver<Passed>,
    mut stand: watch::Receiver<Stand>,
) -> io::Result<()> {
    let mut lines = Lines::new(limits);
    let mut handed: VecDeque<Passed> = VecDeque::new();
    let (mut read, mut acknowledged) = (0_u64, 0);
    let mut out = Vec::new();
    let mut takes = true;
    // What it was told before it came holds for it too.
    stand.mark_changed();
    loop {
        tokio::select! {
            biased;
            // One after the other, as the line takes them; meanwhile the line is heard, or neither would ever move.
            place = to.reserve(), if !handed.is_empty() => {
                let Ok(place) = place else { break };
                if let Some(message) = handed.pop_front() {
                    place.send(message);
                }
            }
            text = from.recv() => {
                let Some(text) = text else { break };
                add(&mut out, &text);
                while out.len() < BATCH
                    && let Some(text) = from.try_recv()
                {
                    add(&mut out, &text);
                }
            }
            told = stand.changed() => {
                if told.is_err() {
                    break;
                }
                match &*stand.borrow_and_update() {
                    Stand::Serves => {}
                    Stand::Moves(why) => control(&mut out, MOVE, &frame::one_line(why.clone().into())),
                    Stand::Hands => takes = false,
                    Stand::Leaves => break,
                }
            }
            bytes = stream.read_buf(lines.buffer()), if takes && handed.is_empty() => {
                let bytes = bytes?;
                if bytes == 0 {
                    return Ok(());
                }
                read += bytes as u64;
                while let Some(item) = lines.take() {
                    take(item, &mut handed, &mut out);
                }
                let whole = read - lines.unfinished() as u64;
                if whole > std::mem::replace(&mut acknowledged, whole) {
                    control(&mut out, ACKNOWLEDGED, whole.to_string().as_bytes());
                }
            }
        }
        // Also before anything is handed to the line: what it runs was acknowledged.
        if !out.is_empty() {
            stream.write_all(&out).await?;
            out.clear();
        }
    }
    control(&mut out, GOES, b"");
    stream.write_all(&out).await?;
    stream.shutdown().await
}

fn take(item: Item, handed: &mut VecDeque<Passed>, out: &mut Vec<u8>) {
    match item {
        Item::Frame(frame) => handed.push_back(frame.into()),
        // An asker that wants to know whether somebody is there hears an acknowledgement.
        Item::Noise(_) => {}
        Item::Unreadable { about: About::Question(Some(id)), bad, .. } => {
            let error = serde_json::json!({ "code": -32600, "message": format!("the message is {bad}") });
            add(out, &frame::error_reply(&id, &error.to_string()).into());
        }
        Item::Unreadable { .. } => {}
    }
}

fn add(out: &mut Vec<u8>, text: &Passed) {
    match text {
        Passed::Frame(frame) => out.extend_from_slice(&frame::one_line(frame.text().clone())),
        Passed::Text(text) => out.extend_from_slice(&frame::one_line(text.clone())),
    }
    out.push(b'\n');
}

fn control(out: &mut Vec<u8>, kind: u8, words: &[u8]) {
    out.push(kind);
    out.extend_from_slice(words);
    out.push(b'\n');
}

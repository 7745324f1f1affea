//! The first line of either side: what is wanted, and whether it is given.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest order: a command line and an environment, which the system bounds too.
const LONGEST: usize = 4 * 1024 * 1024;

/// The longest answer.
const LONGEST_ANSWER: usize = 16 * 1024;

/// What an owner says to an order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It holds the line, and the hop begins.
    Taken(Taken),
    /// It does not share this server, and why: whoever asks has to run it.
    Private(String),
    /// Not now: it is about to go. Whoever asks finds another.
    Later,
}

/// Who has taken an order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Taken {
    /// The owner's number among all that ever owned the line: an older one is not believed.
    pub fence: u64,
    /// Which linetender it is.
    pub version: String,
}

/// Orders, and reads the answer: not one byte more.
///
/// # Errors
/// If the owner goes away, or says something else.
pub async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), order: &str) -> io::Result<Answer> {
    let line = format!("{order}\n");
    stream.write_all(line.as_bytes()).await?;
    let answer = line_of(stream, LONGEST_ANSWER).await?;
    serde_json::from_slice(&answer).map_err(io::Error::other)
}

/// An order, as the owner reads it: not one byte more.
///
/// # Errors
/// If whoever asks goes away, or says too much.
pub async fn asked(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    line_of(stream, LONGEST).await
}

/// A line, without its break. What comes after it is the next reader's, so it is read byte by byte from where the system has it;
/// that happens once for each connection.
async fn line_of(stream: &mut (impl AsyncRead + Unpin), longest: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await? {
            b'\n' => return Ok(line),
            _ if line.len() >= longest => return Err(io::ErrorKind::FileTooLarge.into()),
            byte => line.push(byte),
        }
    }
}

//! The first line of either side: what is wanted, and whether it is given.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;

use super::{Offer, Offered};
use crate::hop::ask::Answer;

/// The longest order: a command line and an environment, which the system bounds too.
const LONGEST: usize = 4 * 1024 * 1024;

/// The longest answer.
const LONGEST_ANSWER: usize = 16 * 1024;

/// A socket whose other end is gone is an error, and no signal; and what comes is kept from our children.
#[cfg(target_os = "linux")]
const QUIETLY: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_os = "linux")]
const CLOSED_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Not every other system has such flags. The standard library ignores that signal, and nobody there offers descriptors.
#[cfg(not(target_os = "linux"))]
const QUIETLY: SendFlags = SendFlags::empty();
#[cfg(not(target_os = "linux"))]
const CLOSED_ON_EXEC: RecvFlags = RecvFlags::empty();

/// Orders, and reads the answer: not one byte more.
///
/// # Errors
/// If the owner goes away, or says something else.
pub async fn ask(stream: &mut UnixStream, order: &str, offer: &mut Option<Offer>) -> io::Result<Answer> {
    let line = format!("{order}\n");
    let mut sent = 0;
    if let Some(offering) = offer {
        let with = stream.async_io(Interest::WRITABLE, || send_with(stream, line.as_bytes(), offering)).await;
        match with {
            Ok(bytes) => sent = bytes,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                return Err(error);
            }
            // Descriptors may not be sent now (a user may have only so many under way): it works without.
            Err(_) => *offer = None,
        }
    }
    stream.write_all(&line.as_bytes()[sent..]).await?;
    let answer = line_of(stream, Vec::new(), LONGEST_ANSWER).await?;
    serde_json::from_slice(&answer).map_err(io::Error::other)
}

/// An order, as the owner reads it: not one byte more; and what came with it.
///
/// # Errors
/// If whoever asks goes away, or says too much.
pub async fn asked(stream: &mut UnixStream) -> io::Result<(Vec<u8>, Offered)> {
    let (first, offered) = stream.async_io(Interest::READABLE, || first_with(stream)).await?;
    let begun = if first == b'\n' { return Ok((Vec::new(), offered)) } else { vec![first] };
    Ok((line_of(stream, begun, LONGEST).await?, offered))
}

fn send_with(stream: &UnixStream, text: &[u8], offer: &Offer) -> io::Result<usize> {
    let fds = offer.fds();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    with.push(SendAncillaryMessage::ScmRights(&fds));
    Ok(rustix::net::sendmsg(stream, &[IoSlice::new(text)], &mut with, QUIETLY)?)
}

/// The first byte, and what came with it.
fn first_with(stream: &UnixStream) -> io::Result<(u8, Offered)> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let read = rustix::net::recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut with, CLOSED_ON_EXEC)?;
    if read.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let fds = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    // What comes where nobody offers is closed at once.
    let fds = fds.flatten().filter(|_| cfg!(target_os = "linux"));
    Ok((byte[0], Offered::of(fds)))
}

/// A line, without its break. What comes after it is the next reader's, so it is read byte by byte from where the system has it;
/// that happens once for each connection.
async fn line_of(stream: &mut UnixStream, begun: Vec<u8>, longest: usize) -> io::Result<Vec<u8>> {
    let mut line = begun;
    loop {
        match stream.read_u8().await? {
            b'\n' => return Ok(line),
            _ if line.len() >= longest => return Err(io::ErrorKind::FileTooLarge.into()),
            byte => line.push(byte),
        }
    }
}

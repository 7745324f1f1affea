//! How a file ends: its last whole line, and what a crash left behind it.

use std::fs::File;
use std::io;

use aws_lc_rs::digest::{Context, SHA256};

use super::chain::{LONGEST_LINE, Link, Tip, finished, sha256};
use crate::files;

/// How much is read at once.
const CHUNK: u64 = 64 * 1024;

/// The end of a file.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) length: u64,
    /// Its last whole line, if it has one.
    pub(super) tip: Option<Tip>,
    /// What stands behind it, without a line break.
    pub(super) fragment: Option<Fragment>,
}

/// The beginning of a line.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) bytes: u64,
    pub(super) sha256: String,
    /// What it says, if nothing but its line break is missing, and where the chain then stands.
    pub(super) whole: Option<(Link, Tip)>,
}

impl Tail {
    /// Reads it from the end, whatever the length of the file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let last_break = last_break(file, length)?;
        let lines_end = last_break.map_or(0, |at| at + 1);
        let fragment = (lines_end < length).then(|| Fragment::of(file, lines_end, length)).transpose()?;
        let Some(last_break) = last_break else { return Ok(Self { length, tip: None, fragment }) };
        let begin = break_before(file, last_break)?;
        let line = read(file, begin, lines_end)?;
        let Some(link) = Link::read(&line) else { return Err(not_ours()) };
        Ok(Self { length, tip: Some(Tip { seq: link.seq, hash: sha256(&line) }), fragment })
    }
}

impl Fragment {
    fn of(file: &File, begin: u64, end: u64) -> io::Result<Self> {
        let mut hash = Context::new(&SHA256);
        let mut at = begin;
        while at < end {
            let part = read(file, at, end.min(at + CHUNK))?;
            hash.update(&part);
            at += part.len() as u64;
        }
        let bytes = end - begin;
        let whole = if bytes < LONGEST_LINE as u64 {
            let mut line = read(file, begin, end)?;
            line.push(b'\n');
            Link::read(&line).map(|link| {
                let seq = link.seq;
                (link, Tip { seq, hash: sha256(&line) })
            })
        } else {
            None
        };
        Ok(Self { bytes, sha256: finished(hash), whole })
    }
}

/// Where the last line break before this place is.
fn last_break(file: &File, before: u64) -> io::Result<Option<u64>> {
    let mut end = before;
    while end > 0 {
        let begin = end.saturating_sub(CHUNK);
        let part = read(file, begin, end)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(begin + at as u64));
        }
        end = begin;
    }
    Ok(None)
}

/// Where the line begins that ends here.
fn break_before(file: &File, last_break: u64) -> io::Result<u64> {
    let begin = last_break.saturating_sub(LONGEST_LINE as u64);
    let part = read(file, begin, last_break)?;
    match part.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => Ok(begin + at as u64 + 1),
        None if begin == 0 => Ok(0),
        None => Err(not_ours()),
    }
}

fn read(file: &File, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end - begin).unwrap_or(LONGEST_LINE)];
    files::read_at(file, &mut bytes, begin)?;
    Ok(bytes)
}

fn not_ours() -> io::Error {
    let why = "does not end with a line of an audit: it is another file, or damaged. Look at it with `linetender audit \
               verify`, then move it away; linetender begins a new one";
    io::Error::new(io::ErrorKind::InvalidData, why)
}

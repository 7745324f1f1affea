//! The file: appended to by many at once, put away when it is large.
//!
//! Nobody waits for anybody here. A line is one `write` to a file opened for appending, which needs no lock. Only putting
//! the file away does, and whoever finds that lock taken goes on appending: a holder that was stopped in the middle of it
//! holds up nobody.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{files, trusted};

/// Rotation settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rotation {
    /// Rotate at this size, in bytes.
    pub bytes: u64,
    /// Number of rotated files to keep.
    pub kept: u32,
    /// Maximum size while a rotation by another process is stuck; beyond it nothing is written.
    pub most: u64,
}

/// How often a line is written anew because the file went away under it.
const TRIES: u32 = 3;

impl Default for Rotation {
    fn default() -> Self {
        Self { bytes: 4 * 1024 * 1024, kept: 4, most: 16 * 1024 * 1024 }
    }
}

/// Where a journal is written.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    path: PathBuf,
    rotation: Rotation,
}

impl Pages {
    pub(super) fn new(path: PathBuf, rotation: Rotation) -> Self {
        Self { path, rotation }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line, its line break included.
    pub(super) fn append(&self, line: &str) -> io::Result<()> {
        for _ in 0..TRIES {
            let file = self.open()?;
            write_whole(&file, line)?;
            // A file that was put away in the meantime still has the line, unless it was the oldest and is gone.
            if files::is_named(&file)? {
                return Ok(());
            }
        }
        Err(io::Error::other("the journal is rotated faster than it can be written"))
    }

    /// The file to write, put away first if it is large.
    fn open(&self) -> io::Result<File> {
        let mut file = open(&self.path)?;
        if file.metadata()?.len() >= self.rotation.bytes {
            self.put_away()?;
            file = open(&self.path)?;
            if file.metadata()?.len() >= self.rotation.most {
                let why = if files::can_be_moved(&self.path)? {
                    "the journal is full, and the process that rotates it has stopped"
                } else {
                    "the journal is full, and another program has it open, so that it cannot be rotated"
                };
                return Err(io::Error::other(why));
            }
        }
        Ok(file)
    }

    /// Makes room for a new file, unless somebody is at it.
    fn put_away(&self) -> io::Result<()> {
        let lock = trusted::append(&self.path.with_extension("lock"))?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        // A move that failed half way would cost an old file each time.
        if !files::can_be_moved(&self.path)? {
            return Ok(());
        }
        // Somebody else may have done it a moment ago.
        if !fs::metadata(&self.path).is_ok_and(|now| now.len() >= self.rotation.bytes) {
            return Ok(());
        }
        make_room(&self.path, self.rotation.kept)
    }
}

/// Gives every file the next number; the oldest is gone if there are more than these.
pub(crate) fn make_room(path: &Path, kept: u32) -> io::Result<()> {
    for number in (0..kept).rev() {
        match fs::rename(page(path, number), page(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The files of a journal: the one that is written has the number 0, older ones higher numbers.
pub(crate) fn page(path: &Path, number: u32) -> PathBuf {
    match number {
        0 => path.to_owned(),
        number => path.with_extension(format!("{number}.jsonl")),
    }
}

/// Where others can put files, a journal is neither made nor written.
fn open(path: &Path) -> io::Result<File> {
    trusted::folder(path.parent().unwrap_or(Path::new("/")))?;
    trusted::append(path)
}

/// One write. A disk that fills up can take a part of it all the same: the next line then begins on a new one.
fn write_whole(mut file: &File, line: &str) -> io::Result<()> {
    let mut last = [b'\n'];
    let length = file.metadata()?.len();
    if length > 0 {
        let _ = files::read_at(file, &mut last, length - 1);
    }
    let torn = last != [b'\n'];
    let text = if torn { format!("\n{line}") } else { line.to_owned() };
    match file.write(text.as_bytes())? {
        written if written == text.len() => Ok(()),
        _ => Err(io::ErrorKind::StorageFull.into()),
    }
}

//! The files: one process writes them, lines are added whole or not at all, and a large file is put away.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::chain::{Body, Own, Tip};
use super::tail::{Fragment, Tail};
use crate::journal::{make_room, page};
use crate::{files, trusted};

/// How many times larger than it should be a file may get while it cannot be put away.
const HELD: u64 = 4;

/// When a file is put away, and how many are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rotation {
    /// Rotate at this size, in bytes.
    pub bytes: u64,
    /// Number of rotated files to keep: at least one.
    pub kept: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { bytes: 64 * 1024 * 1024, kept: 16 }
    }
}

/// The files of an audit, and where its chain stands.
#[derive(Debug)]
pub(super) struct Pages {
    path: PathBuf,
    rotation: Rotation,
    page: Page,
    tip: Tip,
    /// Nobody else writes as long as it is open.
    _lock: File,
}

/// The file that is written.
#[derive(Debug)]
struct Page {
    file: File,
    /// Its length, if nobody else has changed it.
    length: u64,
}

/// What is wrong with the file.
#[derive(Debug)]
pub(super) enum Lost {
    /// There is none any more, or it is empty.
    Removed,
    /// There is another, or somebody else has written to it.
    Changed,
    Failed(io::Error),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Pages {
    /// Continues the chain of the files that are there, or begins one.
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let (folder, name) = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if path.is_absolute() => (folder, name),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "needs an absolute path")),
        };
        trusted::folder(folder)?;
        // It is named so in the journal, whichever way leads there.
        let path = fs::canonicalize(folder)?.join(name);
        let lock = trusted::append(&lock_of(&path))?;
        if lock.try_lock().is_err() {
            let why = "is written by another linetender process (`linetender status` lists them); stop that \
                       process, or give this one another path in [gateway.audit]";
            return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
        }
        let file = trusted::append(&path)?;
        let tail = Tail::of(&file)?;
        let tip = match tail.tip {
            Some(tip) => tip,
            // It may have been put away a moment before a crash.
            None => match trusted::read(&page(&path, 1)) {
                Ok(before) => Tail::of(&before)?.tip.unwrap_or_else(Tip::before_all),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Tip::before_all(),
                Err(error) => return Err(error),
            },
        };
        let mut pages = Self { path, rotation, page: Page { file, length: tail.length }, tip, _lock: lock };
        pages.close(tail.fragment.as_ref())?;
        pages.append(&[Body::own(&Own::Open { pid: std::process::id() })])?;
        pages.sync()?;
        files::sync_folder(&pages.path)?;
        Ok(pages)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn tip(&self) -> &Tip {
        &self.tip
    }

    /// Adds lines: all of them, or none.
    pub(super) fn append(&mut self, bodies: &[Body]) -> io::Result<()> {
        if self.page.length >= self.rotation.bytes {
            self.put_away_if_free()?;
        }
        let (mut tip, mut text) = (self.tip.clone(), String::new());
        if self.page.length == 0 {
            tip.add(&Body::own(&Own::File { linetender: env!("CARGO_PKG_VERSION") }), &mut text);
        }
        for body in bodies {
            tip.add(body, &mut text);
        }
        self.page.add(text.as_bytes())?;
        self.tip = tip;
        Ok(())
    }

    /// Returns when everything that was added is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.page.file.sync_data()
    }

    /// Whether what was written is where others will look for it.
    pub(super) fn check(&self) -> Result<(), Lost> {
        let there = match fs::symlink_metadata(&self.path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Lost::Removed),
            Err(error) => return Err(error.into()),
        };
        if !self.is_at(&self.path)? || there.len() != self.page.length {
            return Err(if there.len() == 0 { Lost::Removed } else { Lost::Changed });
        }
        Ok(())
    }

    /// Takes the file at the path once more, if it ends as ours did: the same file, or one that was put back.
    pub(super) fn take_again(&mut self) -> Result<(), Lost> {
        match self.check() {
            Ok(()) => return Ok(()),
            // It could be put away, and the next one could not be begun.
            Err(Lost::Removed) if self.is_put_away() => return Ok(self.begin_anew()?),
            Err(Lost::Removed) => return Err(Lost::Removed),
            Err(Lost::Changed | Lost::Failed(_)) => {}
        }
        let file = trusted::append(&self.path)?;
        let tail = Tail::of(&file).map_err(|_| Lost::Changed)?;
        if tail.tip.as_ref() != Some(&self.tip) {
            return Err(Lost::Changed);
        }
        self.page = Page { file, length: tail.length };
        Ok(self.close(tail.fragment.as_ref())?)
    }

    /// Goes on in a new file, because the one before is lost.
    pub(super) fn begin_anew(&mut self) -> io::Result<()> {
        let file = trusted::append(&self.path)?;
        if file.metadata()?.len() > 0 {
            return Err(io::Error::other("somebody else writes to it"));
        }
        self.page = Page { file, length: 0 };
        files::sync_folder(&self.path)
    }

    fn is_put_away(&self) -> bool {
        self.is_at(&page(&self.path, 1)).unwrap_or(false)
    }

    /// Whether our file has this name.
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(files::number_at(path)? == files::number(&self.page.file)?)
    }

    /// Says what stands at the end of the file and is no line.
    fn close(&mut self, fragment: Option<&Fragment>) -> io::Result<()> {
        let Some(Fragment { bytes, sha256, whole }) = fragment else { return Ok(()) };
        let (mut tip, mut text) = (self.tip.clone(), "\n".to_owned());
        match whole {
            // Only its line break was not written.
            Some(line) if line.0.follows(&tip) => tip = line.1.clone(),
            _ => tip.add(&Body::own(&Own::Torn { bytes: *bytes, sha256: sha256.clone() }), &mut text),
        }
        self.page.add(text.as_bytes())?;
        self.tip = tip;
        Ok(())
    }

    /// While another program holds it, it grows: a move that fails half way would cost an old file each time.
    fn put_away_if_free(&mut self) -> io::Result<()> {
        if files::can_be_moved(&self.path)? {
            return self.put_away();
        }
        if self.page.length < self.rotation.bytes.saturating_mul(HELD) {
            return Ok(());
        }
        Err(io::Error::other(
            "another program has the file open, so that it cannot be rotated: close it there",
        ))
    }

    fn put_away(&mut self) -> io::Result<()> {
        self.sync()?;
        make_room(&self.path, self.rotation.kept.max(1))?;
        self.begin_anew()
    }
}

impl Page {
    /// Adds these bytes, all or none.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let added = (&self.file).write_all(bytes);
        match added {
            Ok(()) => self.length += bytes.len() as u64,
            // A full disk may have taken a part. It was promised to nobody yet.
            Err(_) => files::cut(&self.file, self.length)?,
        }
        added
    }
}

/// The file whose lock the writer holds.
pub(super) fn lock_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

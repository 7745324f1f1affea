//! Reading a configuration, keeping it as it was, and writing it so that nobody ever sees half of it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use linetender_holder::trusted;

use super::error::Error;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// No agent's configuration is larger; what is, is something else.
pub(super) const LARGEST: u64 = 16 << 20;

/// As often as a file can be wrapped and put back by hand before somebody has to tidy up.
pub(super) const MOST_BACKUPS: usize = 99;

/// Some editors put this before the text. It stays.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file as it was read.
#[derive(Debug)]
pub(super) struct Config {
    /// Where it really is: a link stays, what it points to is rewritten.
    pub(super) path: PathBuf,
    whole: String,
}

impl Config {
    pub(super) fn read(named: &Path) -> Result<Self, Error> {
        let (file, path) = trusted::read_named(named).map_err(Error::file(named))?;
        Self::of(file, path)
    }

    fn of(file: File, path: PathBuf) -> Result<Self, Error> {
        let bytes = bytes(file, &path)?;
        match String::from_utf8(bytes) {
            Ok(whole) => Ok(Self { path, whole }),
            Err(error) => Err(Error::NotText { path, at: error.utf8_error().valid_up_to() }),
        }
    }

    /// Without the mark before it.
    pub(super) fn text(&self) -> &str {
        self.whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.whole)
    }

    /// The newest backup, if there is one. What another user has put in the place of one is an error.
    pub(super) fn backup(&self) -> Result<Option<Self>, Error> {
        let mut newest = None;
        for path in self.backups() {
            match trusted::read(&path) {
                Ok(file) => newest = Some((file, path)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(Error::file(&path)(error)),
            }
        }
        newest.map(|(file, path)| Self::of(file, path)).transpose()
    }

    /// Keeps the file as it is, in a place that is free.
    pub(super) fn keep(&self) -> Result<PathBuf, Error> {
        for path in self.backups() {
            match self.create(&path, &self.whole) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("write the backup", &path)(error)),
            }
        }
        Err(Error::Backups(self.path.clone()))
    }

    /// Puts another text in the place of this one, whole or not at all.
    pub(super) fn replace(&self, text: &str) -> Result<(), Error> {
        let mark = if self.whole.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" };
        let new = self.beside(&format!("linetender-{}", std::process::id()));
        let written =
            self.create(&new, &format!("{mark}{text}")).map_err(Error::io("write", &new)).and_then(|()| {
                // An agent that runs may write its configuration at any time.
                let (now, _) = trusted::read_named(&self.path).map_err(Error::file(&self.path))?;
                if bytes(now, &self.path)? != self.whole.as_bytes() {
                    return Err(Error::Changed(self.path.clone()));
                }
                trusted::replace(&new, &self.path).map_err(Error::io("replace", &self.path))?;
                // Until its folder is on the disk too, a power cut may bring the old name back, or neither.
                system::sync_folder(&self.path).map_err(Error::io("sync the folder of", &self.path))
            });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn backups(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let ending = |number| if number == 1 { String::new() } else { format!(".{number}") };
        (1..=MOST_BACKUPS).map(move |number| self.beside(&format!("before-linetender{}", ending(number))))
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    }

    /// A new file with the mode, the owner and the group of this one, or none at all: with others, somebody could read it who
    /// may not, or its agent could not. Nobody else can read it before it has them.
    fn create(&self, path: &Path, text: &str) -> io::Result<()> {
        let file = trusted::create(path)?;
        let written = system::write_like(file, path, &self.path, text.as_bytes());
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written
    }
}

fn bytes(file: File, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if bytes.len() as u64 > LARGEST { Err(Error::TooLarge(path.to_owned())) } else { Ok(bytes) }
}

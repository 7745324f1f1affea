//! Files that are whole or not there: written beside their place, synced, and renamed into it.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linetender_holder::trusted;
use linetender_wire::test_hooks;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::VERSION;
use crate::encode::base64url;
use crate::error::{Error, ErrorKind};
use crate::system;

/// The longest file that is read.
const LONGEST: u64 = 1024 * 1024;

/// The most files of a folder that are read.
const MOST: usize = 4096;

/// After this time a file beside its place was left there.
const LEFT: Duration = Duration::from_secs(60);

/// What the name of a damaged file that was moved aside has after the name of its place.
const ASIDE: &str = ".damaged-";

/// The file that changes with every change.
pub(super) const CHANGED: &str = "changed";

/// What is in the place of a file.
pub(crate) enum Stored<T> {
    /// A record of this version.
    There(T),
    /// No file.
    NotThere,
    /// A file that holds no record. Nothing in it can be used, by any version.
    Damaged(Error),
    /// A file that may hold a good record: it cannot be opened or read now, or another version of linetender wrote it. Replacing it could
    /// lose logins.
    Unreadable(Error),
}

impl<T> Stored<T> {
    /// The record, if there is one.
    ///
    /// # Errors
    /// If there is a file without a record that can be used.
    pub(crate) fn record(self) -> Result<Option<T>, Error> {
        match self {
            Self::There(record) => Ok(Some(record)),
            Self::NotThere => Ok(None),
            Self::Damaged(error) | Self::Unreadable(error) => Err(error),
        }
    }

    /// The same, but a record that is not what the caller looks for counts as damage.
    pub(super) fn only_if(self, path: &Path, is_wanted: impl FnOnce(&T) -> bool) -> Self {
        match self {
            Self::There(record) if !is_wanted(&record) => {
                Self::Damaged(damaged(path, "it holds another login"))
            }
            other => other,
        }
    }
}

/// The part of a record that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads a file.
pub(super) fn look<T: DeserializeOwned>(path: &Path) -> Stored<T> {
    let unread = |error| {
        let doing = format_args!("read the login in {}", path.display());
        Stored::Unreadable(Error::store(doing, &error))
    };
    let mut text = Vec::new();
    match trusted::read(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text)) {
        Ok(read) if read as u64 > LONGEST => return unread(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Stored::NotThere,
        Err(error) => return unread(error),
    }
    // A record of another version need not have the fields of this one.
    if let Ok(Versioned { version }) = serde_json::from_slice(&text)
        && version != VERSION
    {
        let words = format_args!(
            "the login in {} was stored by another version of linetender (version {version} of the file, not {VERSION}); \
             update linetender, or delete that file and log in again",
            path.display()
        );
        return Stored::Unreadable(Error::new(ErrorKind::Store, words));
    }
    serde_json::from_slice(&text).map_or_else(
        |error| {
            // What stands there is a secret, so only the place is said.
            let (line, column) = (error.line(), error.column());
            Stored::Damaged(damaged(path, format_args!("line {line}, column {column}")))
        },
        Stored::There,
    )
}

fn damaged(path: &Path, why: impl Display) -> Error {
    let words = format_args!(
        "the login in {} is damaged ({why}); a new login moves that file aside, and a logout deletes it",
        path.display()
    );
    Error::new(ErrorKind::Store, words)
}

/// What all files of a folder hold. A file that is damaged or cannot be read is named and passed over.
pub(super) fn all<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>, Error> {
    let listed = fs::read_dir(folder)
        .map_err(|error| Error::store(format_args!("list the logins in {}", folder.display()), &error))?;
    let mut found = Vec::new();
    for entry in listed.take(MOST).flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            match look(&path).record() {
                Ok(read) => found.extend(read),
                Err(error) => tracing::warn!(%error, "login passed over"),
            }
        }
    }
    Ok(found)
}

/// Moves a damaged file out of its place and returns where it is now. A person may still get something out of it. The caller holds the
/// lock.
pub(super) fn move_aside(path: &Path) -> Result<PathBuf, Error> {
    let doing = || format!("move the damaged login in {} aside", path.display());
    let moved = (|| {
        let (folder, name) = parts(path)?;
        let aside = folder.join(format!("{name}{ASIDE}{}", unique()?));
        fs::rename(path, &aside)?;
        system::sync_folder(folder)?;
        Ok(aside)
    })();
    let aside = moved.map_err(|error| Error::store(doing(), &error))?;
    tracing::warn!(file = %aside.display(), "damaged login moved aside");
    Ok(aside)
}

/// Removes the damaged files that were moved aside from this place. True if there was one.
pub(super) fn remove_aside(path: &Path) -> Result<bool, Error> {
    let doing = |error: io::Error| {
        Error::store(format_args!("delete the damaged login of {}", path.display()), &error)
    };
    let (folder, name) = parts(path).map_err(doing)?;
    let begins = format!("{name}{ASIDE}");
    let mut found = false;
    for entry in fs::read_dir(folder).map_err(doing)?.take(MOST).flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begins) {
            remove(&entry.path())?;
            found = true;
        }
    }
    Ok(found)
}

/// Puts this into the place of a file, on the disk before it returns. Whoever calls holds the lock.
pub(super) fn replace<T: Serialize>(path: &Path, value: &T, stage: &'static str) -> Result<(), Error> {
    let doing = || format!("store the login in {}", path.display());
    let text = serde_json::to_vec_pretty(value).map_err(|error| Error::store(doing(), &error.into()))?;
    write(path, &text, stage).map_err(|error| Error::store(doing(), &error))
}

/// Puts this text into the place of a file of another kind. Whoever calls holds its lock.
pub(crate) fn replace_file(path: &Path, text: &[u8]) -> io::Result<()> {
    write(path, text, "file")
}

fn write(path: &Path, text: &[u8], stage: &'static str) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    sweep(folder, name);
    let beside = folder.join(format!(".{name}.{}.{}", std::process::id(), unique()?));
    let written = (|| {
        let mut file = trusted::create(&beside)?;
        test_hooks::point(&format!("{stage} opened"));
        file.write_all(text)?;
        file.sync_all()?;
        test_hooks::point(&format!("{stage} written"));
        trusted::replace(&beside, path)?;
        system::sync_folder(folder)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// What a process that was killed had begun to write. What another one is writing is not touched, lock or no lock.
fn sweep(folder: &Path, name: &str) {
    let begins = format!(".{name}.");
    for entry in fs::read_dir(folder).into_iter().flatten().take(MOST).flatten() {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let Some(rest) = found.strip_prefix(&begins) else { continue };
        if !rest.split_once('.').is_some_and(|(pid, _)| is_another(pid)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether this is the number of another process that lives.
fn is_another(pid: &str) -> bool {
    let pid = pid.parse().ok().filter(|pid: &u32| *pid != std::process::id());
    pid.is_some_and(system::lives)
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    let removed = fs::remove_file(path).and_then(|()| system::sync_folder(parts(path)?.0));
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::store(format_args!("delete the login in {}", path.display()), &error))
        }
        _ => Ok(()),
    }
}

/// Tells whoever watches. It need not survive a loss of power.
pub(super) fn announce(folder: &Path) -> io::Result<()> {
    let unique = unique()?;
    let beside = folder.join(format!(".{CHANGED}.{unique}"));
    trusted::create(&beside)?.write_all(unique.as_bytes())?;
    trusted::replace(&beside, &folder.join(CHANGED)).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// What was announced last. Something else in its place is not waited for.
pub(super) fn announced(folder: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    trusted::read(&folder.join(CHANGED)).ok()?.take(100).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The files of a folder that others can read.
pub(super) fn readable_by_others(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).into_iter().flatten().take(MOST).flatten();
    listed.filter(system::is_open_to_others).map(|entry| entry.path()).collect()
}

/// Removes what processes that were killed left of an announcement. Nobody else takes this long for one.
pub(super) fn tidy(folder: &Path) {
    let begins = format!(".{CHANGED}.");
    for entry in fs::read_dir(folder).into_iter().flatten().take(MOST).flatten() {
        let age = entry.metadata().and_then(|about| about.modified()).ok();
        let age = age.and_then(|at| linetender_wire::wall::wall_clock().duration_since(at).ok());
        let is_left = age.is_some_and(|age| age > LEFT);
        if is_left && entry.file_name().to_string_lossy().starts_with(&begins) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn parts(path: &Path) -> io::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    path.parent().zip(name).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn unique() -> io::Result<String> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(base64url(&bytes))
}

//! Files that are whole or not there: written beside their place, synced, and renamed into it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linetender_holder::trusted;
use linetender_wire::test_hooks;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::encode::base64url;
use crate::error::{Error, ErrorKind};
use crate::system;

/// The longest file that is read.
const LONGEST: u64 = 1024 * 1024;

/// The most files of a folder that are read.
const MOST: usize = 4096;

/// After this time a file beside its place was left there.
const LEFT: Duration = Duration::from_secs(60);

/// The file that changes with every change.
pub(super) const CHANGED: &str = "changed";

/// What a file holds; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let file = match trusted::read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::store(format_args!("read the login in {}", path.display()), &error)),
    };
    let mut text = Vec::new();
    let doing = format_args!("read the login in {}", path.display());
    file.take(LONGEST).read_to_end(&mut text).map_err(|error| Error::store(doing, &error))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        // What stands there is a secret, so only the place is said.
        let (line, column) = (error.line(), error.column());
        let words = format_args!(
            "the login in {} is damaged (line {line}, column {column}); delete that file and log in again",
            path.display()
        );
        Error::new(ErrorKind::Store, words)
    })
}

/// What all files of a folder hold. One that is damaged is passed over.
pub(super) fn all<T: DeserializeOwned>(folder: &Path) -> Result<Vec<T>, Error> {
    let listed = fs::read_dir(folder)
        .map_err(|error| Error::store(format_args!("list the logins in {}", folder.display()), &error))?;
    let mut found = Vec::new();
    for entry in listed.take(MOST).flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json")
            && let Ok(Some(read)) = read(&path)
        {
            found.push(read);
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

//! What is written down of a container, for the time after our own death: a file with its id, which its client writes, and a
//! file that whoever runs the server has locked.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::child::Program;
use super::super::system;

/// How the two files' names end.
const OWNER: &str = "owner";
const ID: &str = "cid";

/// The longest id that is read, and the shortest that could be one. docker and podman have 64 digits.
const LONGEST_ID: usize = 128;
const SHORTEST_ID: usize = 8;

/// How often a name is tried that is taken.
const TRIES: u32 = 100;

/// Variables that say which daemon is meant.
const DAEMON: [&str; 5] =
    ["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION"];

/// The records of one server.
pub(super) struct Records {
    folder: PathBuf,
    /// How the names of its files begin.
    key: String,
}

/// One record, held by this process.
#[derive(Debug)]
pub(super) struct Record {
    owner: PathBuf,
    cidfile: PathBuf,
    /// Locked for as long as it is open.
    _lock: File,
}

impl Records {
    /// Of the server that this program is: the same command line at the same daemon.
    pub(super) fn of(program: &Program) -> io::Result<Self> {
        let folder =
            system::record_folder().ok_or_else(|| io::Error::other("no folder for records is known"))?;
        system::make_private(&folder)?;
        let daemon = DAEMON.iter().map(|name| program.env.get(name).unwrap_or_default());
        let words = program.argv.iter().cloned().chain(daemon);
        Ok(Self { folder, key: format!("{:016x}", hash(words)) })
    }

    /// Takes those that nobody holds any more.
    pub(super) fn left_behind(&self) -> io::Result<Vec<Record>> {
        let mut left = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let is_ours =
                path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(&self.key));
            if is_ours && path.extension() == Some(OsStr::new(OWNER)) {
                left.extend(
                    OpenOptions::new()
                        .read(true)
                        .write(true)
                        .open(&path)
                        .ok()
                        .and_then(|file| hold(file, &path)),
                );
            }
        }
        Ok(left)
    }

    /// Makes a new one.
    pub(super) fn create(&self) -> io::Result<Record> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..TRIES {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{}-{number}.{OWNER}", self.key, std::process::id());
            let path = self.folder.join(name);
            let file = match system::create_private(&path) {
                // An earlier process had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            if let Some(record) = hold(file, &path) {
                // Its client refuses to write to a file that is there.
                remove(&record.cidfile)?;
                return Ok(record);
            }
        }
        Err(io::Error::other("no record can be locked: its file system may have no locks"))
    }
}

/// Takes a record, if nobody else holds it.
fn hold(file: File, path: &Path) -> Option<Record> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
    }
    // Somebody else may have dealt with it in between, and removed it.
    let is_there = fs::metadata(path)
        .is_ok_and(|there| file.metadata().is_ok_and(|held| system::is_same(&there, &held)));
    is_there.then(|| Record { owner: path.to_owned(), cidfile: path.with_extension(ID), _lock: file })
}

impl Record {
    /// Where the client is to write the container's id.
    pub(super) fn cidfile(&self) -> &Path {
        &self.cidfile
    }

    /// The container's id, once its client has made it. Only what can be an id is read: it becomes the argument of a command.
    pub(super) fn id(&self) -> Option<String> {
        let mut text = String::new();
        File::open(&self.cidfile).ok()?.take(LONGEST_ID as u64 + 1).read_to_string(&mut text).ok()?;
        let id = text.trim();
        let is_id =
            (SHORTEST_ID..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| id.to_owned())
    }

    /// Removes it: there is no such container any more.
    pub(super) fn forget(&self) {
        // The id first: a record without one leads to nothing.
        let _ = remove(&self.cidfile);
        let _ = remove(&self.owner);
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A number that these words have in every version of linetender (FNV-1a).
fn hash(words: impl Iterator<Item = impl AsRef<OsStr>>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut put = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for word in words {
        let bytes = word.as_ref().as_encoded_bytes();
        put(&bytes.len().to_le_bytes());
        put(bytes);
    }
    hash
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Records;
    use crate::stdio::system;

    #[test]
    fn a_record_that_a_process_holds_is_left_alone_and_then_found_by_the_same_server() {
        let folder = std::env::temp_dir().join(format!("lt-records-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        system::make_private(&folder).unwrap();
        let of = |key: &str| Records { folder: folder.clone(), key: key.to_owned() };
        let (mine, others) = (of("0123456789abcdef"), of("fedcba9876543210"));
        let record = mine.create().unwrap();
        assert_eq!(record.id(), None);
        assert!(mine.left_behind().unwrap().is_empty(), "it is in use");
        for (text, id) in
            [("3f2a91bc04d5\n", Some("3f2a91bc04d5")), ("", None), ("--help 12345", None), ("3f", None)]
        {
            fs::write(record.cidfile(), text).unwrap();
            assert_eq!(record.id().as_deref(), id, "{text}");
        }
        fs::write(record.cidfile(), "3f2a91bc04d5").unwrap();
        // As the kernel does it when its process is killed.
        drop(record);
        assert!(others.left_behind().unwrap().is_empty(), "another server's");
        let left = mine.left_behind().unwrap();
        assert_eq!(left.iter().filter_map(super::Record::id).collect::<Vec<_>>(), ["3f2a91bc04d5"]);
        assert!(mine.left_behind().unwrap().is_empty(), "one start deals with it");
        left[0].forget();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }
}

//! Logins on disk, shared by all processes of this user.
//!
//! One file per issuer and client, the user's alone (0600), replaced as a whole and synced; a small file per server that says
//! which of them is its own; a lock per credential that the system releases when its holder dies; and one file that changes
//! with every change, for those who watch.

mod files;
mod lock;
pub(crate) mod record;
mod unsaved;
mod watch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linetender_holder::trusted;
use linetender_wire::test_hooks;
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::encode::sha256;
use crate::error::{Error, ErrorKind};
use crate::secret::Secret;
pub(crate) use files::{Stored, replace_file};
pub(crate) use lock::{Lock, Taken, take as lock_file};
use record::{Credential, Granted};

/// The version of the files. A file of another version is not read.
const VERSION: u32 = 1;

/// How long to wait for another process that stores which credential is a server's own: a few writes to the disk.
const POINTER_WAIT: Duration = Duration::from_secs(10);

/// The logins of this user. Cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    watched: watch::Watched,
    unsaved: unsaved::Unsaved,
}

/// Which credential is a server's own.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Pointer {
    version: u32,
    pub(crate) server: String,
    pub(crate) issuer: String,
    pub(crate) client_id: String,
}

impl Pointer {
    pub(crate) fn new(server: &Address, issuer: &str, client_id: &str) -> Self {
        Self {
            version: VERSION,
            server: server.canonical(),
            issuer: issuer.to_owned(),
            client_id: client_id.to_owned(),
        }
    }

    /// What the files of its credential are called.
    fn name(&self) -> String {
        name(&format!("{}\n{}", self.issuer, self.client_id))
    }
}

impl Store {
    /// Opens the folder, or makes it.
    ///
    /// # Errors
    /// If it cannot be made, or others than this user could change it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = folder.into();
        for place in
            [folder.clone(), folder.join("credentials"), folder.join("servers"), folder.join("locks")]
        {
            let doing = format_args!("use the folder {} for logins", place.display());
            trusted::folder(&place).map_err(|error| Error::store(doing, &error))?;
        }
        files::tidy(&folder);
        for file in files::readable_by_others(&folder.join("credentials")) {
            let file = file.display();
            if cfg!(windows) {
                tracing::warn!(%file, "file with logins can be read by others; remove them from its access list (icacls)");
            } else {
                tracing::warn!(%file, "file with logins can be read by others; run chmod 600 on it");
            }
        }
        let watched = watch::Watched::new(&folder);
        Ok(Self(Arc::new(Inner { folder, watched, unsaved: unsaved::Unsaved::default() })))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Files with logins that others than this user can read. linetender makes none.
    pub fn readable_by_others(&self) -> Vec<PathBuf> {
        files::readable_by_others(&self.0.folder.join("credentials"))
    }

    /// A number that grows, within half a second, whenever a process of this user logged in or out or renewed a token. Has to
    /// be called within a tokio runtime.
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        watch::follow(&self.0)
    }

    /// Which credential is this server's own.
    pub(crate) fn find(&self, server: &Address) -> Result<Option<Pointer>, Error> {
        self.look_for(server).record()
    }

    /// What is in the place of that.
    pub(crate) fn look_for(&self, server: &Address) -> Stored<Pointer> {
        self.pointer(&server.canonical())
    }

    fn pointer(&self, canonical: &str) -> Stored<Pointer> {
        let file = self.server_file(canonical);
        // Two addresses have the same hash only if somebody copied files about.
        files::look(&file).only_if(&file, |pointer: &Pointer| pointer.server == canonical)
    }

    /// All servers that have one.
    pub(crate) fn all(&self) -> Result<Vec<Pointer>, Error> {
        files::all(&self.0.folder.join("servers"))
    }

    /// All credentials.
    pub(crate) fn credentials(&self) -> Result<Vec<Credential>, Error> {
        files::all(&self.0.folder.join("credentials"))
    }

    pub(crate) fn read(&self, pointer: &Pointer) -> Result<Option<Credential>, Error> {
        self.look(pointer).record()
    }

    /// What is in the place of a credential. Who replaces or deletes one decides by this.
    pub(crate) fn look(&self, pointer: &Pointer) -> Stored<Credential> {
        let mut found = self.on_disk(pointer);
        if let Stored::There(credential) = &mut found {
            self.0.unsaved.add_to(&pointer.name(), credential);
        }
        found
    }

    fn on_disk(&self, pointer: &Pointer) -> Stored<Credential> {
        let file = self.credential_file(pointer);
        files::look(&file).only_if(&file, |found: &Credential| {
            found.issuer == pointer.issuer && found.client.id == pointer.client_id
        })
    }

    /// Moves a damaged credential aside, under its lock, and returns where it is now.
    pub(crate) async fn move_aside(&self, _lock: &Lock, pointer: &Pointer) -> Result<PathBuf, Error> {
        let file = self.credential_file(pointer);
        off_thread(move || files::move_aside(&file)).await
    }

    /// Waits for the lock of a credential, no longer than `wait`.
    pub(crate) async fn lock(&self, pointer: &Pointer, wait: Duration) -> Result<Taken, Error> {
        lock::take(&self.0.folder.join("locks").join(format!("{}.lock", pointer.name())), wait).await
    }

    /// Replaces a credential, under its lock.
    pub(crate) async fn write(
        &self,
        _lock: &Lock,
        credential: Credential,
        stage: &'static str,
    ) -> Result<(), Error> {
        let store = self.clone();
        off_thread(move || {
            let pointer = Pointer {
                version: VERSION,
                server: String::new(),
                issuer: credential.issuer.clone(),
                client_id: credential.client.id.clone(),
            };
            files::replace(&store.credential_file(&pointer), &credential, stage)?;
            store.0.unsaved.saved(&pointer.name());
            test_hooks::point(&format!("{stage} stored"));
            store.announce();
            Ok(())
        })
        .await
    }

    /// Keeps what could not be written, for this process, in place of the grant with this refresh token.
    pub(crate) fn keep(&self, pointer: &Pointer, replaces: Option<Secret>, granted: Granted) {
        self.0.unsaved.keep(pointer.name(), pointer.server.clone(), replaces, granted);
    }

    /// Says which credential is a server's own, under that credential's lock. Which one was it before.
    ///
    /// Logins with two clients have two credentials and two locks: the pointer has one of its own, which is never held while
    /// anybody waits for something else.
    pub(crate) async fn point(&self, _lock: &Lock, pointer: Pointer) -> Result<Option<Pointer>, Error> {
        let lock = self.lock_server(&pointer.server).await?;
        let store = self.clone();
        off_thread(move || {
            let file = store.server_file(&pointer.server);
            let before = match store.pointer(&pointer.server) {
                Stored::There(before) => Some(before),
                Stored::NotThere => None,
                Stored::Damaged(_) => {
                    files::move_aside(&file)?;
                    None
                }
                Stored::Unreadable(error) => return Err(error),
            };
            files::replace(&file, &pointer, "auth pointer")?;
            drop(lock);
            store.announce();
            Ok(before)
        })
        .await
    }

    /// Forgets which credential is this server's own.
    pub(crate) async fn unpoint(&self, server: &Address) -> Result<(), Error> {
        let lock = self.lock_server(&server.canonical()).await?;
        let (store, file) = (self.clone(), self.server_file(&server.canonical()));
        off_thread(move || {
            files::remove(&file)?;
            files::remove_aside(&file)?;
            drop(lock);
            store.announce();
            Ok(())
        })
        .await
    }

    async fn lock_server(&self, canonical: &str) -> Result<Lock, Error> {
        let file = self.0.folder.join("locks").join(format!("server-{}.lock", name(canonical)));
        match lock::take(&file, POINTER_WAIT).await? {
            Taken::Ours(lock) => Ok(lock),
            Taken::Theirs(holder) => {
                let holder =
                    holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                let words = format_args!(
                    "{holder} has been storing a login to this server for {} s (is it stopped?); try again",
                    POINTER_WAIT.as_secs()
                );
                Err(Error::new(ErrorKind::Busy, words))
            }
        }
    }

    /// Forgets what a credential has for this server, and the credential itself if it is of no use to another. A damaged file goes, and
    /// what was moved aside before.
    pub(crate) async fn forget(&self, _lock: &Lock, pointer: Pointer) -> Result<(), Error> {
        let store = self.clone();
        off_thread(move || {
            let file = store.credential_file(&pointer);
            match store.on_disk(&pointer) {
                Stored::There(mut credential) => {
                    credential.grants.remove(&pointer.server);
                    if credential.grants.is_empty() {
                        files::remove(&file)?;
                    } else {
                        files::replace(&file, &credential, "auth forget")?;
                    }
                }
                Stored::NotThere => {}
                Stored::Damaged(error) => {
                    tracing::warn!(%error, "damaged login deleted");
                    files::remove(&file)?;
                }
                Stored::Unreadable(error) => return Err(error),
            }
            files::remove_aside(&file)?;
            store.announce();
            Ok(())
        })
        .await
    }

    /// Forgets what a credential has for this server. A client that has nothing left is kept: it can be presented again.
    pub(crate) async fn forget_grant(&self, lock: &Lock, pointer: &Pointer) -> Result<(), Error> {
        let Some(mut credential) = self.read(pointer)? else { return Ok(()) };
        credential.grants.remove(&pointer.server);
        self.write(lock, credential, "auth tidy").await
    }

    fn announce(&self) {
        // Whoever watches finds out by the folders too, a little less surely.
        if let Err(error) = files::announce(&self.0.folder) {
            tracing::debug!(%error, "change of logins not announced");
        }
    }

    fn server_file(&self, canonical: &str) -> PathBuf {
        self.0.folder.join("servers").join(format!("{}.json", name(canonical)))
    }

    fn credential_file(&self, pointer: &Pointer) -> PathBuf {
        self.0.folder.join("credentials").join(format!("{}.json", pointer.name()))
    }
}

/// A file name that says nothing, of fixed length.
fn name(of: &str) -> String {
    let (half, _) =
        sha256(of).split_first_chunk().map(|(half, rest)| (*half, rest.len())).unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(half))
}

/// Files are synced: that takes long on a busy disk, and no other task waits for it.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    linetender_wire::aside(work).await.unwrap_or_else(|| {
        Err(Error::new(ErrorKind::Store, "linetender failed while it stored a login (a bug)"))
    })
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.0.folder).finish()
    }
}

#[cfg(test)]
mod tests;

//! What was learnt of a server the last time, so that an agent need not wait for it to start.
//!
//! A server that is started by a package runner needs a second or ten before it says its first word, and agents that start
//! thirty of them wait for all. What it said of itself and which lists it had are known from the last time: an agent is
//! greeted with those while the server starts. If they were wrong, the agent is told as of any other change.
//!
//! One file per server *and* kind of agent: a server may offer other things to an agent that can do other things. The
//! file's name is a keyed hash, for what identifies a server includes its environment, and that holds secrets.

mod page;

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linetender::{Era, Server};
use linetender_wire::frame::Members;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::trusted;
use page::Page;

/// Where the key of the hashes is kept, beside the pages.
const KEY: &str = "key";

/// On-disk cache of server handshakes and lists, readable by its user only.
#[derive(Clone, Debug)]
pub struct Memory {
    folder: PathBuf,
    key: [u8; 16],
}

impl Memory {
    /// Opens or creates the cache in this folder.
    ///
    /// # Errors
    /// If the folder or the key in it can be neither read nor made, or belong to somebody else.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        trusted::folder(&folder)?;
        let key = match read_key(&folder) {
            Ok(key) => key,
            Err(_) => make_key(&folder)?,
        };
        Ok(Self { folder, key })
    }
}

impl linetender::Memory for Memory {
    fn page(&self, server: &Server, era: Era, introduction: Option<&str>) -> Arc<dyn linetender::Page> {
        let mut hash = SipHasher13::new_with_key(&self.key);
        hash.write(env!("CARGO_PKG_VERSION").as_bytes());
        server.identify(&mut hash);
        for word in what_it_can(era, introduction) {
            // The length first, so that no two lists of words are one text.
            hash.write_usize(word.len());
            hash.write(word.as_bytes());
        }
        let name = format!("{:032x}.json", hash.finish128().as_u128());
        Arc::new(Page::at(self.folder.join(name)))
    }
}

/// What of an agent's introduction may change what a server says: its revision and its capabilities, not its name.
fn what_it_can(era: Era, introduction: Option<&str>) -> Vec<String> {
    const META: &str = "io.modelcontextprotocol/";
    let member = |object: &str, name: &str| {
        Members::of(object).and_then(|members| members.get(name).map(|value| value.get().to_owned()))
    };
    let introduction = introduction.unwrap_or("{}");
    let (object, names) = match era {
        Era::Legacy => {
            (Some(introduction.to_owned()), ["protocolVersion".to_owned(), "capabilities".to_owned()])
        }
        Era::Modern => (
            member(introduction, "_meta"),
            [format!("{META}protocolVersion"), format!("{META}clientCapabilities")],
        ),
    };
    let object = object.unwrap_or_default();
    let values = names.iter().map(|name| member(&object, name).unwrap_or_default());
    std::iter::once(format!("{era:?}")).chain(values).collect()
}

/// A name beside a file's own that nobody else writes to now. What a dead process of the same number left there goes.
fn draft_of(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = path.with_extension(format!("{}-{number}.draft", std::process::id()));
    let _ = fs::remove_file(&draft);
    draft
}

fn read_key(folder: &Path) -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    trusted::read(&folder.join(KEY))?.read_exact(&mut key)?;
    Ok(key)
}

/// Makes the key whole before it gets its name: of several that begin at once, all go by the first.
fn make_key(folder: &Path) -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let draft = draft_of(&folder.join(KEY));
    trusted::create(&draft)?.write_all(&key)?;
    let made = fs::hard_link(&draft, folder.join(KEY));
    fs::remove_file(&draft)?;
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match read_key(folder) {
            // What is there is no key: what was hashed with it is lost, and that is all.
            Err(_) => fs::remove_file(folder.join(KEY)).and_then(|()| make_key(folder)),
            read => read,
        },
        made => made.map(|()| key),
    }
}

#[cfg(test)]
mod tests;

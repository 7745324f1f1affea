//! The lock of a credential: one process at a time renews a token.
//!
//! The system releases it when its holder dies, so that nobody has to guess whether a lock is stale. A holder that is stopped
//! keeps it; who waits for that is told whom to look at.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use linetender_holder::trusted;
use tokio::time::{Instant, sleep};

use crate::error::Error;

/// How often a lock that is taken is tried again: soon at first.
const FIRST: Duration = Duration::from_millis(2);
const LAST: Duration = Duration::from_millis(50);

/// A lock that is held. Dropping it releases it.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock is the open file")] File);

/// What came of waiting for one.
pub(crate) enum Taken {
    /// It is ours.
    Ours(Lock),
    /// This process has it still, if it can be told.
    Theirs(Option<u32>),
}

/// Takes the lock at this place, or waits for it so long.
pub(crate) async fn take(path: &Path, wait: Duration) -> Result<Taken, Error> {
    let doing = || format!("use the lock {}", path.display());
    let until = Instant::now() + wait;
    let mut pause = FIRST;
    // Lock files are never deleted: two processes could then hold two different ones.
    let file = open(path).map_err(|error| Error::store(doing(), &error))?;
    loop {
        match file.try_lock() {
            Ok(()) => {
                // A name that cannot be written is only missed in a text.
                let _ = sign(&file);
                return Ok(Taken::Ours(Lock(file)));
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(Error::store(doing(), &error)),
        }
        if Instant::now() >= until {
            return Ok(Taken::Theirs(holder(path)));
        }
        sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
        pause = (pause * 2).min(LAST);
    }
}

fn open(path: &Path) -> io::Result<File> {
    trusted::append(path)
}

fn sign(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.write_all(std::process::id().to_string().as_bytes())
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    let mut file = trusted::read(path).ok()?;
    file.rewind().ok()?;
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

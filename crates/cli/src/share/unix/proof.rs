//! Proof that a process is the keeper. Any program of this user can listen at the keeper's socket or hold the keeper's lock. Only a
//! process that is proven to be a keeper may be signalled, and only a lock of linetender's own is worth waiting for.
//!
//! A keeper writes its number into the lock file while it holds the lock, before it listens. So a keeper that listens is the process that
//! the file names, and the lock is held. On Linux the kernel also tells what the process was started with.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use linetender_holder::trusted;

use super::LOCK;
use super::reach::is_locked;

/// The longest text of the lock file that is read.
const LONGEST: u64 = 64;

/// The text of the lock file: which keeper has the lock, or had it last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Record {
    /// The keeper's number among all that had the lock.
    pub(super) fence: u64,
    /// The keeper's process.
    pid: Option<i32>,
}

impl Record {
    fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let fence = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
        Self { fence, pid: words.next().and_then(|word| word.parse().ok()) }
    }

    fn read(mut lock: &File) -> io::Result<Self> {
        let mut text = String::new();
        lock.rewind()?;
        lock.take(LONGEST).read_to_string(&mut text)?;
        Ok(Self::parse(&text))
    }

    /// Enters this process as the next keeper. The caller holds the lock.
    pub(super) fn enter(mut lock: &File) -> io::Result<Self> {
        let fence = Self::read(lock)?.fence + 1;
        let pid = std::process::id();
        lock.set_len(0)?;
        lock.write_all(format!("{fence} {pid}").as_bytes())?;
        Ok(Self { fence, pid: i32::try_from(pid).ok() })
    }
}

/// Who holds the keeper's lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LockHolder {
    Nobody,
    /// A keeper that runs, or the reaper of a server whose keeper has ended.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells"))]
    Linetender,
    /// Another process, or a keeper that was stopped by a signal.
    Other,
    /// The system does not tell.
    #[cfg_attr(target_os = "linux", expect(dead_code, reason = "Linux tells"))]
    Untold,
}

impl LockHolder {
    /// The holder of the lock in this folder.
    pub(super) fn of(folder: &Path) -> Self {
        match recorded(folder) {
            Ok(None) => Self::Nobody,
            Ok(Some(record)) => system::holder(record.pid),
            Err(_) => Self::Other,
        }
    }
}

/// True if the process with this number is the keeper of this folder. The caller holds a handle on the process, so that nobody else gets
/// the number meanwhile without being noticed.
pub(super) fn is_keeper(folder: &Path, pid: i32) -> bool {
    let record = recorded(folder).ok().flatten();
    record.is_some_and(|record| record.pid == Some(pid)) && system::was_started_as_keeper(pid)
}

/// What the lock file says, if the lock is held.
fn recorded(folder: &Path) -> io::Result<Option<Record>> {
    let lock = trusted::append(&folder.join(LOCK))?;
    // A lock that was free is let go with the file.
    if is_locked(&lock) { Ok(None) } else { Record::read(&lock).map(Some) }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use super::super::keeper::{DETACHED, SUBCOMMAND};
    use super::super::process::Handle;
    use super::LockHolder;

    /// The words of a process. Every process of this user can be asked for them, also if it hides the rest.
    fn words(pid: &str) -> Vec<Vec<u8>> {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    }

    fn is(words: &[Vec<u8>], at: usize, word: &str) -> bool {
        words.get(at).is_some_and(|there| there == word.as_bytes())
    }

    pub(super) fn was_started_as_keeper(pid: i32) -> bool {
        let words = words(&pid.to_string());
        is(&words, 1, SUBCOMMAND) && words.iter().any(|word| word == DETACHED.as_bytes())
    }

    pub(super) fn holder(keeper: Option<i32>) -> LockHolder {
        let Some(keeper) = keeper else { return LockHolder::Other };
        let lives = Handle::of(keeper).filter(Handle::lives);
        let holds = match lives.filter(|_| was_started_as_keeper(keeper)) {
            Some(handle) => !handle.is_stopped(),
            None => has_reaper(keeper),
        };
        if holds { LockHolder::Linetender } else { LockHolder::Other }
    }

    /// True if a reaper that this keeper started is still there. A reaper's words name the process that started it.
    fn has_reaper(keeper: i32) -> bool {
        let keeper = keeper.to_string();
        fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| {
            let name = entry.file_name();
            let pid = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
            pid.is_some_and(|pid| {
                let words = words(pid);
                is(&words, 1, linetender::reaper::SUBCOMMAND) && is(&words, 2, &keeper)
            })
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::LockHolder;

    /// The lock file is all that there is to go by.
    pub(super) fn was_started_as_keeper(_pid: i32) -> bool {
        true
    }

    pub(super) fn holder(_keeper: Option<i32>) -> LockHolder {
        LockHolder::Untold
    }
}

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn a_lock_file_without_a_process_proves_nobody() {
        assert_eq!(Record::parse("7 123"), Record { fence: 7, pid: Some(123) });
        assert_eq!(Record::parse("7"), Record { fence: 7, pid: None });
        assert_eq!(Record::parse("nonsense"), Record::default());
        assert_eq!(Record::parse(""), Record::default());
    }
}

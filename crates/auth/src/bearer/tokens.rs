//! Static tokens as the gateway uses them: found by their hash, and followed when the file changes.
//!
//! Nothing runs in the background. A request, or a gateway with open streams, that comes a quarter of a second after the last look
//! makes [`Tokens::is_due`] say so, and then looks at the file, on a thread where it holds up no other request.
//!
//! A file that is damaged, or that others could have written, changes nothing: the tokens that were read last stay, and a
//! warning says so. So a slip in an editor locks nobody out, and nobody gets in by it. A file that is gone holds no tokens.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use linetender_wire::aside;
use tokio::time::{Instant, timeout};

use super::cache::Hash;
use super::claims::invalid;
use super::file::{self, Unread};
use super::{By, Clock, Known, Refused};
use crate::encode::sha256;
use crate::system::Sight;

/// How often the file is looked at: what belongs to a token that was removed has to end within a second (G12).
const EVERY: Duration = Duration::from_millis(250);

/// How long a request waits for a look at the file: a disk may hang.
const PATIENCE: Duration = Duration::from_millis(500);

/// A file that changed so recently may change again without looking different: clocks of file systems are coarse.
const UNSETTLED: Duration = Duration::from_secs(2);

/// The tokens of a file.
pub(super) struct Tokens {
    path: PathBuf,
    clock: Clock,
    state: RwLock<State>,
    is_looking: AtomicBool,
    /// Counts what changed.
    changes: Arc<AtomicU64>,
}

struct State {
    table: Table,
    /// The same by their names: each has one token.
    names: Names,
    due: Instant,
    seen: Seen,
    /// The last warning, so that each is given once.
    warned: Option<String>,
}

type Table = HashMap<Hash, Arc<Known>>;
type Names = HashMap<String, Arc<Known>>;

/// What was seen of the file at the last look.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Seen {
    There(Sight),
    /// It may change without looking different.
    Unsettled,
    /// Once is not enough: some editors delete a file and write it anew.
    Missing,
}

impl Tokens {
    pub(super) fn read(path: &Path, clock: Clock, changes: Arc<AtomicU64>) -> Result<Self, String> {
        let seen = look_at(path, clock.now());
        let table = match file::read(path) {
            Ok(entries) => table(entries),
            Err(Unread::Missing) => {
                return Err(format!(
                    "the token file {0} does not exist; to make it, run: linetender token add NAME --file {0}",
                    path.display()
                ));
            }
            Err(Unread::Bad(words)) => return Err(words),
        };
        let names = names(&table);
        let state = State { table, names, due: Instant::now() + EVERY, seen, warned: None };
        Ok(Self {
            path: path.to_owned(),
            clock,
            state: RwLock::new(state),
            is_looking: AtomicBool::new(false),
            changes,
        })
    }

    /// Whether it is time for [`look_if_due`](Self::look_if_due).
    pub(super) fn is_due(&self) -> bool {
        let due = self.state.read().unwrap_or_else(PoisonError::into_inner).due;
        Instant::now() >= due && !self.is_looking.load(Ordering::Acquire)
    }

    /// Whose token this is.
    pub(super) fn find(&self, token: &str, now: SystemTime) -> Result<Arc<Known>, Refused> {
        let hash = sha256(token);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match state.table.get(&hash) {
            None => Err(invalid("The gateway does not know this token. It was removed, or never added.")),
            Some(known) if known.until.is_some_and(|until| now >= until) => {
                Err(invalid("The token has expired. Ask the gateway's operator for a new one."))
            }
            Some(known) => Ok(Arc::clone(known)),
        }
    }

    /// True if the token of this name is still the one with this stamp, has these groups, and has not expired.
    pub(super) fn has(&self, name: &str, stamp: u64, groups: &[impl AsRef<str>], now: SystemTime) -> bool {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.names.get(name).is_some_and(|known| {
            let is_same = known.stamp == stamp && known.until.is_none_or(|until| now < until);
            let known: HashSet<&str> = known.groups.iter().map(String::as_str).collect();
            is_same && known == groups.iter().map(AsRef::as_ref).collect()
        })
    }

    /// Reads the file again, if that is due and the file has changed.
    pub(super) async fn look_if_due(self: &Arc<Self>) {
        if !self.is_due() || self.is_looking.swap(true, Ordering::AcqRel) {
            return;
        }
        self.state.write().unwrap_or_else(PoisonError::into_inner).due = Instant::now() + EVERY;
        let looking = Looking(Arc::clone(self));
        // A look that takes longer goes on, and counts when it ends. There is no second one beside it.
        let _ = timeout(PATIENCE, aside(move || looking.0.look())).await;
    }

    fn look(&self) {
        let before = self.state.read().unwrap_or_else(PoisonError::into_inner).seen;
        let seen = look_at(&self.path, self.clock.now());
        if seen == before && !matches!(seen, Seen::Unsettled | Seen::Missing) {
            return;
        }
        let read = file::read(&self.path);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // A file that is bad may become good without looking different: a folder above it may be to blame.
        state.seen = match read {
            Err(Unread::Bad(_)) => Seen::Unsettled,
            _ => seen,
        };
        let shown = self.path.display();
        let warning = match read {
            Ok(entries) => {
                state.becomes(table(entries), &self.changes);
                None
            }
            Err(Unread::Missing) if before == Seen::Missing => {
                state.becomes(Table::new(), &self.changes);
                Some(format!("the token file {shown} is gone, and with it all tokens"))
            }
            Err(Unread::Missing) => None,
            Err(Unread::Bad(words)) => Some(format!("{words}; the tokens that were read last stay in use")),
        };
        if let Some(words) = warning.as_ref().filter(|words| state.warned.as_ref() != Some(words)) {
            tracing::warn!("{words}");
        }
        state.warned = warning;
    }
}

impl State {
    fn becomes(&mut self, table: Table, changes: &AtomicU64) {
        if self.table != table {
            (self.names, self.table) = (names(&table), table);
            changes.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// A look at the file, until it ends.
struct Looking(Arc<Tokens>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.is_looking.store(false, Ordering::Release);
    }
}

fn look_at(path: &Path, now: SystemTime) -> Seen {
    fs::metadata(path).map_or(Seen::Missing, |about| seen(Sight::of(&about), now))
}

fn seen(sight: Sight, now: SystemTime) -> Seen {
    let is_settled = now.duration_since(sight.changed()).is_ok_and(|age| age > UNSETTLED);
    if is_settled { Seen::There(sight) } else { Seen::Unsettled }
}

fn table(entries: Vec<file::Entry>) -> Table {
    let known = |entry: file::Entry| {
        let file::TokenEntry { name, groups, expires, .. } = entry.about;
        let stamp = entry.hash.first_chunk().map_or(0, |begin| u64::from_be_bytes(*begin));
        (entry.hash, Arc::new(Known { name, groups, until: expires, by: By::Token, stamp }))
    };
    entries.into_iter().map(known).collect()
}

fn names(table: &Table) -> Names {
    table.values().map(|known| (known.name.clone(), Arc::clone(known))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{Seen, Sight, seen};

    #[test]
    fn a_file_that_has_just_changed_is_read_again() {
        let sight = Sight::changed_at(100);
        let at = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        assert!(seen(sight, at(103)) == Seen::There(sight));
        // Also if the clock was set back since.
        for early in [100, 102, 7] {
            assert!(seen(sight, at(early)) == Seen::Unsettled, "{early}");
        }
    }
}

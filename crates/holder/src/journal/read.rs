//! Reading a journal: its last entries, over all of its files.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::hash::Hash;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use super::file::page;
use super::{Entry, LONGEST_LINE, What};
use crate::audit::Head;
use crate::files::{self, Number};
use crate::trusted;

/// The most files that are looked for. A number may be missing for a moment, while files are put away.
pub(super) const MOST_PAGES: u32 = 64;

/// The last entries of a journal.
#[derive(Debug, Default)]
pub struct Last {
    /// The entries, oldest first: each as it was written, and what it says.
    pub entries: VecDeque<(String, Entry)>,
    /// Number of unreadable lines: torn by a full disk, or of a newer version.
    pub unread: u64,
}

/// Entries of several writers, oldest first. Each writer's stay in the order in which it wrote them, also if its clock was set back
/// meanwhile.
pub fn in_order<W: Eq + Hash + Clone>(entries: impl IntoIterator<Item = (W, Entry)>) -> Vec<Entry> {
    let mut latest: HashMap<W, String> = HashMap::new();
    let timed = entries.into_iter().map(|(writer, entry)| {
        let latest = latest.entry(writer).or_default();
        // Times of one length and one zone sort as they are spelt.
        if entry.at > *latest {
            latest.clone_from(&entry.at);
        }
        (latest.clone(), entry)
    });
    let mut timed: Vec<_> = timed.collect();
    timed.sort_by(|(one, _), (other, _)| one.cmp(other));
    timed.into_iter().map(|(_, entry)| entry).collect()
}

/// The last `most` entries that are `wanted`.
///
/// # Errors
/// If a file is there and cannot be read. A journal that is not there is empty.
pub fn last(path: &Path, most: usize, mut wanted: impl FnMut(&Entry) -> bool) -> io::Result<Last> {
    let mut last = Last::default();
    // Younger files first, for a file may be put away while we look: then it is found twice, and not missed.
    let mut pages: Vec<(Number, File)> = Vec::new();
    for place in 0..MOST_PAGES {
        match trusted::read(&page(path, place)) {
            Ok(file) => {
                let number = files::number(&file)?;
                if pages.iter().all(|(other, _)| *other != number) {
                    pages.push((number, file));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    for (_, file) in pages.into_iter().rev() {
        last.read(BufReader::new(file), most, &mut wanted)?;
    }
    Ok(last)
}

/// The heads of an audit that a journal has kept, oldest first.
///
/// # Errors
/// If a file of the journal is there and cannot be read.
pub fn heads_of(path: &Path, audit: &str) -> io::Result<Vec<Head>> {
    let is_of = |entry: &Entry| matches!(&entry.what, What::AuditHead { file, .. } if file == audit);
    let entries = last(path, usize::MAX, is_of)?.entries.into_iter();
    let head = |entry: Entry| match entry.what {
        What::AuditHead { file, seq, hash, synced } => Some(Head { file, seq, hash, at: synced }),
        _ => None,
    };
    Ok(entries.filter_map(|(_, entry)| head(entry)).collect())
}

impl Last {
    fn read(
        &mut self,
        mut file: BufReader<File>,
        most: usize,
        wanted: &mut impl FnMut(&Entry) -> bool,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            // Nothing that we wrote is longer; the rest of what is comes as lines that cannot be read either.
            if file.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(());
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim();
            match serde_json::from_str::<Entry>(line) {
                Ok(entry) if wanted(&entry) => {
                    self.entries.push_back((line.to_owned(), entry));
                    if self.entries.len() > most {
                        self.entries.pop_front();
                    }
                }
                Ok(_) => {}
                Err(_) if line.is_empty() => {}
                Err(_) => self.unread += 1,
            }
        }
    }
}

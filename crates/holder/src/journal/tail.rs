//! Following a journal: every entry once, in order, over files that are put away and files that are not there yet.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use super::file::page;
use super::read::MOST_PAGES;
use super::{Entry, LONGEST_LINE};
use crate::files::{self, Number};
use crate::trusted;

/// Reads a journal from its oldest entry on, and later what was written since.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// The file that is being read, and its number for the system.
    current: Option<(Number, BufReader<File>)>,
    /// A line that is not finished.
    partial: Vec<u8>,
}

impl Tail {
    /// Follows the journal at this path, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), current: None, partial: Vec::new() }
    }

    /// Tells each entry that was not told before, as it was written and what it says. The number of lines that are not readable.
    ///
    /// # Errors
    /// If a file is there and cannot be read.
    pub fn poll(&mut self, mut told: impl FnMut(String, Entry)) -> io::Result<u64> {
        let mut unread = 0;
        loop {
            unread += self.read(&mut told)?;
            let newest = files::number_at(&self.path).ok();
            let current = self.current.as_ref().map(|(number, _)| *number);
            // Between two files there may be none for a moment.
            if newest.is_none() || newest == current {
                return Ok(unread);
            }
            let Some(next) = self.next(current)? else { return Ok(unread) };
            unread += u64::from(!self.partial.is_empty());
            self.partial.clear();
            self.current = Some(next);
        }
    }

    /// The file after the one that was read; the oldest, if that one is gone or none was.
    fn next(&self, current: Option<Number>) -> io::Result<Option<(Number, BufReader<File>)>> {
        let mut younger = None;
        // From the newest to the oldest: what is put away meanwhile is found twice, and not missed.
        for place in 0..MOST_PAGES {
            let file = match trusted::read(&page(&self.path, place)) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let number = files::number(&file)?;
            if Some(number) == current {
                break;
            }
            younger = Some((number, BufReader::new(file)));
        }
        Ok(younger)
    }

    fn read(&mut self, told: &mut impl FnMut(String, Entry)) -> io::Result<u64> {
        let Some((_, file)) = &mut self.current else { return Ok(0) };
        let mut unread = 0;
        loop {
            let room = LONGEST_LINE.saturating_sub(self.partial.len()) as u64;
            let read = file.by_ref().take(room).read_until(b'\n', &mut self.partial)?;
            let is_whole = self.partial.ends_with(b"\n") || self.partial.len() >= LONGEST_LINE;
            if is_whole {
                let line = String::from_utf8_lossy(&self.partial).trim().to_owned();
                match serde_json::from_str::<Entry>(&line) {
                    Ok(entry) => told(line, entry),
                    Err(_) => unread += u64::from(!line.is_empty()),
                }
                self.partial.clear();
            } else if read == 0 {
                return Ok(unread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::What;
    use super::super::file::{Pages, Rotation};
    use super::{Entry, Tail};

    fn entry(number: u64) -> Entry {
        Entry::now(7, "run", What::Gap { entries: number, why: "x".repeat(200) })
    }

    fn polled(tail: &mut Tail) -> Vec<u64> {
        let mut told = Vec::new();
        let unread = tail.poll(|_, entry| match entry.what {
            What::Gap { entries, .. } => told.push(entries),
            other => panic!("{other:?}"),
        });
        assert_eq!(unread.unwrap(), 0);
        told
    }

    #[cfg_attr(windows, ignore = "wine does not replace a file that is open")]
    #[test]
    fn every_entry_is_told_once_however_often_the_file_is_put_away() {
        let folder = std::env::temp_dir().join(format!("linetender-tail-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.join("journal.jsonl");
        let mut tail = Tail::new(&path);
        assert!(polled(&mut tail).is_empty(), "it is not there yet");
        let rotation = Rotation { bytes: 1000, kept: 4, most: 1 << 20 };
        let pages = Pages::new(path.clone(), rotation);
        let write = |numbers: std::ops::Range<u64>| {
            numbers.for_each(|number| pages.append(&entry(number).line()).unwrap());
        };
        write(0..3);
        assert_eq!(polled(&mut tail), [0, 1, 2]);
        assert!(polled(&mut tail).is_empty());
        write(3..12);
        assert!(folder.join("journal.2.jsonl").exists(), "it was put away more than once");
        assert_eq!(polled(&mut tail), (3..12).collect::<Vec<_>>());
        let line = entry(99).line();
        let (half, rest) = line.split_at(line.len() / 2);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(half.as_bytes()).unwrap();
        assert!(polled(&mut tail).is_empty(), "half a line is none");
        file.write_all(rest.as_bytes()).unwrap();
        assert_eq!(polled(&mut tail), [99]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

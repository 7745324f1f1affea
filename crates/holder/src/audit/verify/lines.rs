//! The lines of all files of an audit, oldest first, one at a time.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};

use super::super::chain::{LONGEST_LINE, Link, finished};
use crate::files::{self, Number};
use crate::journal::page;
use crate::trusted;

/// A line, as it stands in a file.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    /// Its text; of a line that is longer than any of ours, only the beginning.
    text: Vec<u8>,
    /// Its length without its line break.
    pub(super) length: u64,
    /// Its hash, line break included.
    pub(super) hash: String,
    pub(super) hash_without_break: String,
    /// It has no line break.
    pub(super) is_torn: bool,
}

/// Where a line stands: which of the files, and which line of it, counted from 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    file: usize,
    pub(super) line: u64,
}

impl Line {
    /// What it says, if it is a whole line of ours.
    pub(super) fn link(&self) -> Option<Link> {
        let is_ours = !self.is_torn && self.length < LONGEST_LINE as u64;
        if is_ours { Link::read(&self.text) } else { None }
    }
}

/// Reads line after line.
pub(super) struct Lines {
    names: Vec<PathBuf>,
    files: VecDeque<BufReader<File>>,
    place: Place,
    next: Option<Line>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut pages: Vec<(PathBuf, File, Number)> = Vec::new();
        // Younger files first, for a file may be put away while we look: then it is found twice, and not missed.
        for number in std::iter::once(0).chain(numbers(path)?) {
            let name = page(path, number);
            match trusted::read(&name) {
                Ok(file) => {
                    let same = files::number(&file)?;
                    if pages.iter().all(|(_, _, other)| *other != same) {
                        pages.push((name, file, same));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", name.display())));
                }
            }
        }
        if pages.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such file"));
        }
        let (names, files) =
            pages.into_iter().rev().map(|(name, file, _)| (name, BufReader::new(file))).unzip();
        Ok(Self { names, files, place: Place::default(), next: None })
    }

    pub(super) fn files(&self) -> Vec<String> {
        self.names.iter().map(|name| name.display().to_string()).collect()
    }

    pub(super) fn name(&self, place: &Place) -> String {
        self.names.get(place.file).map(|name| name.display().to_string()).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        match self.next.take() {
            Some(line) => Ok(Some(line)),
            None => self.read(),
        }
    }

    pub(super) fn peek(&mut self) -> io::Result<Option<&Line>> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        Ok(self.next.as_ref())
    }

    /// Whether a line of this number is still to come.
    pub(super) fn has_later(&mut self, seq: u64) -> io::Result<bool> {
        while let Some(line) = self.next()? {
            if line.link().is_some_and(|link| link.seq == seq) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn read(&mut self) -> io::Result<Option<Line>> {
        while let Some(file) = self.files.front_mut() {
            if !file.fill_buf()?.is_empty() {
                self.place.line += 1;
                return read_line(file, self.place.clone()).map(Some);
            }
            self.files.pop_front();
            self.place = Place { file: self.place.file + 1, line: 0 };
        }
        Ok(None)
    }
}

/// However long it is, no more of it is kept than a line of ours can have.
fn read_line(file: &mut BufReader<File>, place: Place) -> io::Result<Line> {
    let (mut hash, mut text, mut length) = (Context::new(&SHA256), Vec::new(), 0);
    let is_torn = loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            break true;
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let of_line = &part[..end.unwrap_or(part.len())];
        hash.update(of_line);
        length += of_line.len() as u64;
        text.extend_from_slice(&of_line[..of_line.len().min(LONGEST_LINE - text.len())]);
        let used = of_line.len() + usize::from(end.is_some());
        file.consume(used);
        if end.is_some() {
            break false;
        }
    };
    let hash_without_break = finished(hash.clone());
    hash.update(b"\n");
    Ok(Line { place, text, length, hash: finished(hash), hash_without_break, is_torn })
}

/// The numbers of the files that were put away, youngest first.
fn numbers(path: &Path) -> io::Result<Vec<u32>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let number = name.strip_prefix(&format!("{stem}.")).and_then(|rest| rest.strip_suffix(".jsonl"));
        // As it is spelt by `page`.
        let number =
            number.and_then(|text| text.parse::<u32>().ok().filter(|number| number.to_string() == text));
        numbers.extend(number.filter(|number| *number > 0));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

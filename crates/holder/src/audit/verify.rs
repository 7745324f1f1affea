//! Whether an audit is as it was written: every line of every file, one at a time.
//!
//! A chain shows that a line was changed, moved or removed, as long as a later line is there. Its end it cannot show: that is
//! compared with the heads that the journal has kept.

mod lines;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::Head;
use super::chain::{Link, Tip, VERSION};
use super::pages::lock_of;
use crate::trusted;
use lines::{Line, Lines, Place};

/// What was found in an audit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verified {
    /// Files that were read, oldest first.
    pub files: Vec<String>,
    /// Whole lines that hang together, up to the first damage.
    pub lines: u64,
    /// Of these, calls.
    pub calls: u64,
    /// Of these, gaps: places where calls have no line.
    pub gaps: u64,
    /// Calls that have no line, as the gaps say.
    pub missed: u64,
    /// Lines that a crash tore; each is closed by a line that says so.
    pub torn: u64,
    /// Number of the first line that is there. Not 1: older files were removed, as rotation does.
    pub first: Option<u64>,
    /// Number of the last line that hangs together with the first.
    pub last: Option<u64>,
    /// SHA-256 of that line.
    pub hash: Option<String>,
    /// A linetender process has it open.
    pub is_open: bool,
    /// Comparison with the heads in the journal, if it was asked for.
    pub heads: Option<Heads>,
    /// The first damage.
    pub bad: Option<Bad>,
}

/// How many heads of the journal could be compared.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Heads {
    /// Heads of this audit in the journal.
    pub known: u64,
    /// Heads whose line is there, and is the same.
    pub same: u64,
    /// Heads of lines in files that are not there any more.
    pub older: u64,
}

/// A damage, and where.
#[derive(Clone, Debug, Serialize)]
pub struct Bad {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u64,
    /// What kind of damage.
    pub damage: Damage,
    /// What is wrong, in words.
    pub what: String,
}

/// Kinds of damage.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Damage {
    /// A line is not as it was written.
    Edited,
    /// Lines are not in their order, or a line is there twice.
    Reordered,
    /// Lines are missing in the middle.
    Missing,
    /// A line is none of linetender's, or cannot be read any more.
    Foreign,
    /// The last line is not whole, as after a crash.
    TornEnd,
    /// Lines are missing at the end that the journal knows of.
    CutTail,
    /// Lines from some place on are others than the journal knows of.
    Replaced,
    /// A newer version of linetender has written it.
    Newer,
}

/// Reads an audit and all files that rotation has put away. With heads, it is compared with them: those of another file
/// are passed over.
///
/// # Errors
/// If there is no file, or one cannot be read or is not trusted.
pub fn verify(path: &Path, heads: Option<&[Head]>) -> io::Result<Verified> {
    let mut lines = Lines::open(path)?;
    let mut walk = Walk {
        found: Verified {
            files: lines.files(),
            is_open: is_open(path),
            heads: heads.map(|heads| Heads { known: heads.len() as u64, ..Heads::default() }),
            ..Verified::default()
        },
        heads: by_number(heads.unwrap_or_default()),
        at: None,
    };
    while walk.found.bad.is_none()
        && let Some(line) = lines.next()?
    {
        walk.step(line, &mut lines)?;
    }
    walk.end(&lines);
    Ok(walk.found)
}

struct Walk<'a> {
    found: Verified,
    /// By the number of their line. After a file was replaced, a line may have several.
    heads: BTreeMap<u64, Vec<&'a Head>>,
    /// The last line that is part of the chain.
    at: Option<(Tip, Place, Link)>,
}

impl Verified {
    fn count(&mut self, link: &Link) {
        self.first.get_or_insert(link.seq);
        self.lines += 1;
        match link.what.as_str() {
            "call" => self.calls += 1,
            "gap" => (self.gaps, self.missed) = (self.gaps + 1, self.missed.saturating_add(link.missed)),
            "torn" => self.torn += 1,
            _ => {}
        }
    }

    /// The last line was counted, and the next one shows that it is not as it was written.
    fn take_back(&mut self, link: &Link) {
        self.lines -= 1;
        match link.what.as_str() {
            "call" => self.calls -= 1,
            "gap" => (self.gaps, self.missed) = (self.gaps - 1, self.missed.saturating_sub(link.missed)),
            "torn" => self.torn -= 1,
            _ => {}
        }
        if self.lines == 0 {
            (self.first, self.last, self.hash) = (None, None, None);
        } else {
            (self.last, self.hash) = (Some(link.seq - 1), Some(link.prev.clone()));
        }
    }
}

impl Walk<'_> {
    fn step(&mut self, line: Line, lines: &mut Lines) -> io::Result<()> {
        let Some(link) = line.link() else { return self.no_link(&line, lines) };
        if link.v > VERSION {
            let what = "was written by a newer version of linetender: verify it with that version".to_owned();
            self.say(&line.place, lines, Damage::Newer, what);
            return Ok(());
        }
        let damage = match &self.at {
            None => first_line(&link),
            Some((tip, ..)) if link.follows(tip) => None,
            Some((tip, before, link_before)) => {
                let (damage, at_line_before, what) = broken(&line, &link, tip, lines)?;
                let place = if at_line_before { before.clone() } else { line.place.clone() };
                if at_line_before {
                    self.found.take_back(link_before);
                }
                self.say(&place, lines, damage, what);
                return Ok(());
            }
        };
        if let Some((damage, what)) = damage {
            self.say(&line.place, lines, damage, what);
            return Ok(());
        }
        if self.differs_from_heads(&line, &link, lines)? {
            return Ok(());
        }
        self.found.count(&link);
        let tip = Tip { seq: link.seq, hash: line.hash };
        (self.found.last, self.found.hash) = (Some(tip.seq), Some(tip.hash.clone()));
        self.at = Some((tip, line.place, link));
        Ok(())
    }

    /// A line that cannot be read: torn, and then the next one says so; or not ours.
    fn no_link(&mut self, line: &Line, lines: &mut Lines) -> io::Result<()> {
        let next = lines.peek()?;
        if let Some(torn) = next.and_then(Line::link)
            && torn.what == "torn"
            && (torn.bytes, torn.sha256.as_str()) == (line.length, line.hash_without_break.as_str())
            && self.at.as_ref().is_none_or(|(tip, ..)| torn.follows(tip))
        {
            return Ok(());
        }
        if line.is_torn && next.is_none() {
            // Somebody writes it at this moment.
            if !self.found.is_open {
                let what = "is not whole, as after a crash or a cut; linetender closes it with a line that says so \
                            when it starts the next time";
                self.say(&line.place, lines, Damage::TornEnd, what.to_owned());
            }
            return Ok(());
        }
        let what = "is no line that linetender wrote, or was edited so that it cannot be read".to_owned();
        self.say(&line.place, lines, Damage::Foreign, what);
        Ok(())
    }

    /// Whether the journal knows another line of this number.
    fn differs_from_heads(&mut self, line: &Line, link: &Link, lines: &mut Lines) -> io::Result<bool> {
        let Some(heads) = &mut self.found.heads else { return Ok(false) };
        let mut other = None;
        for head in self.heads.get(&link.seq).into_iter().flatten() {
            if head.hash == line.hash {
                heads.same += 1;
            } else {
                other = Some(head);
            }
        }
        let Some(head) = other else { return Ok(false) };
        let next = lines.peek()?.and_then(Line::link);
        let is_edited = next.is_some_and(|next| next.prev == head.hash);
        let (seq, at) = (head.seq, &head.at);
        let (damage, what) = if is_edited {
            (
                Damage::Edited,
                format!("was edited: at {at} the journal kept another hash of line number {seq}"),
            )
        } else {
            let what = format!(
                "is another line number {seq} than the one whose hash the journal kept at {at}: the file was replaced, or this \
                 line or lines before it were written anew"
            );
            (Damage::Replaced, what)
        };
        self.say(&line.place, lines, damage, what);
        Ok(true)
    }

    /// Compares where it ends with the newest head.
    fn end(&mut self, lines: &Lines) {
        let Some(heads) = &mut self.found.heads else { return };
        let first = self.found.first.unwrap_or(u64::MAX);
        heads.older = self.heads.range(..first).map(|(_, heads)| heads.len() as u64).sum();
        if self.found.bad.as_ref().is_some_and(|bad| bad.damage != Damage::TornEnd) {
            return;
        }
        let last = self.found.last.unwrap_or(0);
        let Some(newest) =
            self.heads.range(last.saturating_add(1)..).next_back().and_then(|(_, heads)| heads.last())
        else {
            return;
        };
        let (count, seq, at) = (newest.seq - last, newest.seq, &newest.at);
        let what = format!(
            "is the last one, but at {at} the journal kept the hash of line number {seq}: at least {count} lines were cut off at \
             the end, or the file was replaced"
        );
        let place = self.at.as_ref().map_or_else(Place::default, |(_, place, _)| place.clone());
        self.say(&place, lines, Damage::CutTail, what);
    }

    fn say(&mut self, place: &Place, lines: &Lines, damage: Damage, what: String) {
        self.found.bad = Some(Bad { file: lines.name(place), line: place.line, damage, what });
    }
}

fn by_number(heads: &[Head]) -> BTreeMap<u64, Vec<&Head>> {
    heads.iter().fold(BTreeMap::new(), |mut numbers, head| {
        numbers.entry(head.seq).or_insert_with(Vec::new).push(head);
        numbers
    })
}

/// What is wrong with a line that nothing stands before.
fn first_line(link: &Link) -> Option<(Damage, String)> {
    match link.what.as_str() {
        "file" | "torn" if link.seq == 1 && link.prev != Tip::before_all().hash => {
            Some((Damage::Edited, "was edited: the first line of all names a line before it".to_owned()))
        }
        "file" | "torn" => None,
        _ => Some((
            Damage::Missing,
            "is not the first line of a file: lines before it are missing, or it was edited".to_owned(),
        )),
    }
}

/// Why a line does not follow the one before it, and whether that one is to blame.
fn broken(line: &Line, link: &Link, tip: &Tip, lines: &mut Lines) -> io::Result<(Damage, bool, String)> {
    let (expected, seq) = (tip.seq.saturating_add(1), link.seq);
    if link.prev == tip.hash {
        let what = format!("was edited: its number is {seq} instead of {expected}");
        return Ok((Damage::Edited, false, what));
    }
    if seq == expected {
        // Which of the two was edited, the next line knows.
        let next = lines.peek()?.and_then(Line::link);
        return Ok(match next {
            Some(next) if next.prev == line.hash => {
                (Damage::Edited, true, "was edited: the next line has another hash of it".to_owned())
            }
            Some(_) => (Damage::Edited, false, "was edited, with its hash of the line before".to_owned()),
            None => (Damage::Edited, true, "was edited, or the next line was".to_owned()),
        });
    }
    if seq < expected {
        let what = format!("has the number {seq}, which belongs before the lines above it (moved or copied)");
        return Ok((Damage::Reordered, false, what));
    }
    if lines.has_later(expected)? {
        let what = format!("has the number {seq}, but line number {expected} stands further below");
        return Ok((Damage::Reordered, false, what));
    }
    let what = match seq - expected {
        1 => format!("has the number {seq}: line number {expected} is missing before it"),
        count => {
            format!("has the number {seq}: {count} lines are missing before it ({expected} to {})", seq - 1)
        }
    };
    Ok((Damage::Missing, false, what))
}

/// Whether a process has the lock of its writer.
fn is_open(path: &Path) -> bool {
    trusted::read(&lock_of(path)).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

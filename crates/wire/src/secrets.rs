//! The secrets that this process was configured with, and the one place that takes them out of a text by their value.
//!
//! A server may print what it was given anywhere: in a stack trace, an error body, a greeting. No rule about how
//! credentials look finds all of that, but we know the values. From when a [`Secrets`] has one until its last clone is
//! gone, [`hide`] masks it, for every server of this process: in texts of ours, in logs, journal and status. What a
//! server answers to an agent never passes here.

mod decoded;
mod matcher;
mod sources;
mod spelt;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use decoded::Decoded;
use matcher::Matcher;
pub(crate) use sources::{has_secret_in_name, looks_random, names_a_secret};

/// What stands in place of a secret.
pub(crate) const MASK: &str = "[redacted]";

/// A shorter value is a word more often than a secret.
const SHORTEST: usize = 8;

/// A longer value is looked for in pieces of this length.
const LONGEST: usize = 1024;

/// The most values that are looked for.
const MOST: usize = 4096;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Every value that is a secret now.
#[derive(Default)]
struct Known {
    /// How many hold each.
    values: HashMap<Box<str>, usize>,
    /// Made when it is needed, of the values that there are then.
    matcher: Option<Arc<Matcher>>,
}

/// Values that are masked for as long as this, or a clone of it, lives.
///
/// Two of them are equal whatever they hold: what they were taken from is compared by its owner.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Arc<Held>>);

/// One value, held.
struct Held(Box<str>);

impl Secrets {
    /// Masks this value from now on, unless it is too short, or a path, a number or a truth value.
    pub fn keep(&mut self, value: &str) {
        // Of a text of several lines (a key, a file), each may be printed alone.
        for line in value.lines().map(str::trim) {
            let mut rest = line;
            while rest.len() > LONGEST {
                let piece = crate::visible::first_bytes(rest, LONGEST);
                self.keep_piece(piece);
                rest = &rest[piece.len()..];
            }
            self.keep_piece(rest);
        }
    }

    fn keep_piece(&mut self, value: &str) {
        let is_fence = value.starts_with("-----");
        if value.len() < SHORTEST || is_fence || sources::is_ordinary(value) {
            return;
        }
        if self.0.iter().any(|held| &*held.0 == value) {
            return;
        }
        let mut known = known();
        if let Some(holders) = known.values.get_mut(value) {
            *holders += 1;
        } else if known.values.len() < MOST {
            known.values.insert(value.into(), 1);
            known.matcher = None;
        } else {
            return;
        }
        self.0.push(Arc::new(Held(value.into())));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut known = known();
        if let Some(holders) = known.values.get_mut(&self.0) {
            *holders -= 1;
            if *holders == 0 {
                known.values.remove(&self.0);
                known.matcher = None;
            }
        }
    }
}

impl PartialEq for Secrets {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Secrets {}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// The text without the secrets of this process, however many there are, and however they are spelt.
pub fn hide(text: &str) -> Cow<'_, str> {
    if text.len() < SHORTEST {
        return text.into();
    }
    let Some(matcher) = matcher() else { return text.into() };
    let found = matcher.find_spelt(text);
    if found.is_empty() {
        return text.into();
    }
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    for range in found {
        // Values are text, so they begin and end where characters do, and so does what stands for them.
        shown.push_str(text.get(from..range.start).unwrap_or_default());
        shown.push_str(MASK);
        from = range.end;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    shown.into()
}

impl Matcher {
    /// Where values are in a text, as they are or decoded, in order and apart.
    fn find_spelt(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = self.find(text.as_bytes());
        let Some(decoded) = Decoded::of(text) else { return found };
        found.extend(self.find(decoded.text()).iter().map(|part| decoded.origin(part)));
        found.sort_by_key(|range| range.start);
        found.dedup_by(|next, before| {
            let overlaps = next.start <= before.end;
            if overlaps {
                before.end = before.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

fn matcher() -> Option<Arc<Matcher>> {
    let mut known = known();
    if known.values.is_empty() {
        return None;
    }
    if let Some(matcher) = &known.matcher {
        return Some(Arc::clone(matcher));
    }
    let spellings = known.values.keys().flat_map(|value| spelt::spellings(value));
    let both = spellings.flat_map(|spelling| {
        let decoded = Decoded::of(&spelling).map(Decoded::into_text);
        [Some(spelling.into_bytes()), decoded]
    });
    let made = Arc::new(Matcher::new(both.flatten()));
    known.matcher = Some(Arc::clone(&made));
    Some(made)
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

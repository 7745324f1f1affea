//! The way back. If the file is what wrapping its backup gives, the backup's bytes are restored. If somebody has changed it
//! since (agents do it themselves), their changes are kept: each of our entries is put back on its own.
//!
//! Nothing is remembered but the backup: that a file is what we wrote is found out by wrapping the backup again.

use super::before::{Before, wrapped};
use super::edit::{Edit, apply};
use super::entry::Entry;
use super::judge::Why;
use super::plan::Format;
use super::unwrap;

#[derive(Debug, Default)]
pub(super) struct Undone {
    pub(super) text: String,
    pub(super) names: Vec<String>,
    pub(super) left: Vec<(String, Why)>,
    /// Those that went through linetender before we came: not ours to undo.
    pub(super) kept: Vec<String>,
}

pub(super) fn undo(
    format: Format,
    text: &str,
    entries: &[Entry<'_>],
    backup: Option<&str>,
    wants: impl Fn(&str) -> bool,
) -> Undone {
    // A backup that cannot be read as such is no help, and no reason to do nothing.
    let root = backup.and_then(|backup| format.parse(backup).ok());
    let mut before = backup.zip(root.as_ref()).map(|(text, root)| Before::of(text, root, entries));
    if let Some(before) = &mut before {
        before.take_flags(format, text, entries);
    }
    let mut undone = Undone::default();
    let mut edits: Vec<Edit> = Vec::new();
    for (entry, call) in wrapped(entries).filter(|(entry, _)| wants(entry.name())) {
        if before.as_ref().is_some_and(|before| before.had_wrapped(entry)) {
            undone.kept.push(entry.name().to_owned());
            continue;
        }
        let exact = before.as_ref().and_then(|before| before.put_back(format, text, entry));
        let original = before.as_ref().and_then(|before| before.entry(entry));
        match exact.map_or_else(|| unwrap::edits(text, entry, call, original), |edit| Ok(vec![edit])) {
            Ok(more) => {
                edits.extend(more);
                undone.names.push(entry.name().to_owned());
            }
            Err(why) => undone.left.push((entry.name().to_owned(), why)),
        }
    }
    let all = wrapped(entries).all(|(entry, _)| wants(entry.name()));
    match before.filter(|before| before.wrapped == text && all) {
        Some(before) => (undone.text, undone.left) = (before.text.to_owned(), Vec::new()),
        None => undone.text = apply(text, 0..text.len(), &edits),
    }
    undone
}

/// Whether this backup is from before our entries of now, so that wrapping more needs no other.
pub(super) fn knows(format: Format, backup: &str, entries: &[Entry<'_>]) -> bool {
    format.parse(backup).is_ok_and(|root| Before::of(backup, &root, entries).gives_any(format, entries))
}

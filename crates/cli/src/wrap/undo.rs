//! The way back. If the file is what wrapping its backup gives, the backup's bytes are restored. If somebody has changed it
//! since (agents do it themselves), their changes are kept: each of our entries is put back on its own.
//!
//! Nothing is remembered but the backup: that a file is what we wrote is found out by wrapping the backup again.

use std::collections::HashMap;

use super::edit::{Edit, apply};
use super::entry::{self, Entry};
use super::judge::{Call, Verdict, Why, judge};
use super::plan::{self, Choice, Format, Plan};
use super::tree::Node;
use super::unwrap;

#[derive(Debug)]
pub(super) struct Undone {
    pub(super) text: String,
    pub(super) names: Vec<String>,
    pub(super) left: Vec<(String, Why)>,
}

pub(super) fn undo(
    format: Format,
    text: &str,
    entries: &[Entry<'_>],
    backup: Option<&str>,
    wants: impl Fn(&str) -> bool,
) -> Undone {
    let wrapped = || {
        entries.iter().filter_map(|entry| match judge(entry, true) {
            Verdict::Wrapped(call) => Some((entry, call)),
            Verdict::Command(_) | Verdict::Address(_) | Verdict::Left(_) => None,
        })
    };
    // A backup that cannot be read as such is no help, and no reason to do nothing.
    let root = backup.and_then(|backup| format.parse(backup).ok());
    let before = backup.zip(root.as_ref()).map(|(text, root)| Before::of(text, root, wrapped()));
    let mut undone = Undone { text: text.to_owned(), names: Vec::new(), left: Vec::new() };
    let mut edits: Vec<Edit> = Vec::new();
    for (entry, call) in wrapped().filter(|(entry, _)| wants(entry.name())) {
        // What went through linetender before we came is not ours to undo.
        if before.as_ref().is_some_and(|before| before.had_wrapped(entry)) {
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
    match before.filter(|before| before.wrapped == text && wrapped().all(|(entry, _)| wants(entry.name()))) {
        Some(before) => (undone.text, undone.left) = (before.text.to_owned(), Vec::new()),
        None => undone.text = apply(text, 0..text.len(), &edits),
    }
    undone
}

/// The backup, and what wrapping it gives.
struct Before<'t> {
    text: &'t str,
    entries: Vec<Entry<'t>>,
    plan: Plan,
    wrapped: String,
}

impl<'t> Before<'t> {
    /// Wraps the backup's entries as those that are wrapped now, each with the program that it has now.
    fn of<'n>(text: &'t str, root: &'t Node, now: impl Iterator<Item = (&'n Entry<'n>, Call<'n>)>) -> Self {
        let programs: HashMap<&[String], &str> =
            now.filter_map(|(entry, call)| Some((entry.path.as_slice(), call.words().0.text()?))).collect();
        let entries = entry::find(root).unwrap_or_default();
        let plan = plan::wrap(text, &entries, |entry| match programs.get(entry.path.as_slice()) {
            Some(&program) => Choice::Wrap { program: program.to_owned(), named: true },
            None => Choice::Skip,
        });
        let wrapped = plan.apply(text);
        Self { text, entries, plan, wrapped }
    }

    fn entry(&self, now: &Entry<'_>) -> Option<&Entry<'t>> {
        self.entries.iter().find(|entry| entry.path == now.path)
    }

    fn had_wrapped(&self, now: &Entry<'_>) -> bool {
        self.entry(now).is_some_and(|entry| matches!(judge(entry, true), Verdict::Wrapped(_)))
    }

    /// If our stretch of this entry still stands there as we wrote it, its old bytes in that place.
    fn put_back(&self, format: Format, text: &str, now: &Entry<'_>) -> Option<Edit> {
        let change = self.plan.changes.iter().find(|change| change.path == now.path)?;
        let (old, new) = change.stretch(self.text);
        // A JSON entry has one place; one of TOML may have several, and its name stands in what we wrote.
        let within = match format {
            Format::Json => now.node.span.clone(),
            Format::Toml => 0..text.len(),
        };
        let mut places = text.get(within.clone())?.match_indices(&new);
        let (at, _) = places.next().filter(|_| places.next().is_none())?;
        let start = within.start + at;
        Some(Edit::new(start..start + new.len(), old))
    }
}

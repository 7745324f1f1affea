//! A backup, and what wrapping it gives: nothing else is remembered of what we did to a file.

use std::collections::HashMap;

use super::edit::Edit;
use super::entry::{self, Entry};
use super::judge::{Call, Decision, judge};
use super::ours::Run;
use super::plan::{self, Choice, Format, Plan};
use super::program::Start;
use super::tree::Node;

pub(super) struct Before<'t> {
    pub(super) text: &'t str,
    pub(super) wrapped: String,
    entries: Vec<Entry<'t>>,
    plan: Plan,
}

/// The entries that go through us.
pub(super) fn wrapped<'e, 't>(entries: &'e [Entry<'t>]) -> impl Iterator<Item = (&'e Entry<'t>, Call<'t>)> {
    entries.iter().filter_map(|entry| match judge(entry) {
        Decision::Wrapped(call) => Some((entry, call)),
        Decision::Command(_) | Decision::Address(_) | Decision::Left(_) => None,
    })
}

/// The same, by their paths.
fn calls<'e>(entries: &'e [Entry<'_>]) -> HashMap<&'e [String], Call<'e>> {
    wrapped(entries).map(|(entry, call)| (entry.path.as_slice(), call)).collect()
}

impl<'t> Before<'t> {
    /// Wraps the backup's entries as those that are wrapped now, each started as it is now.
    pub(super) fn of(text: &'t str, root: &'t Node, now: &[Entry<'_>]) -> Self {
        let now = calls(now);
        let entries = entry::find(root).unwrap_or_default();
        let plan = plan::wrap(text, &entries, |entry| {
            let start = now.get(entry.path.as_slice()).and_then(|&call| Start::of(call));
            start.map_or(Choice::Skip, Choice::Wrap)
        });
        let wrapped = plan.apply(text);
        Self { text, wrapped, entries, plan }
    }

    /// Whether wrapping it gives at least one of the entries that go through us now, whatever was added to its flags. If it
    /// gives none, it is left from before an earlier undo, and what goes through us now is somebody else's work.
    pub(super) fn gives_any(&self, format: Format, now: &[Entry<'_>]) -> bool {
        let Ok(root) = format.parse(&self.wrapped) else { return false };
        let entries = entry::find(&root).unwrap_or_default();
        let again = calls(&entries);
        wrapped(now)
            .filter(|(entry, _)| !self.had_wrapped(entry))
            .any(|(entry, call)| again.get(entry.path.as_slice()).is_some_and(|&again| is_like(call, again)))
    }

    /// Takes the flags that were added since into what we would have written.
    pub(super) fn take_flags(&mut self, format: Format, text: &str, now: &[Entry<'_>]) {
        let Ok(root) = format.parse(&self.wrapped) else { return };
        let entries = entry::find(&root).unwrap_or_default();
        let (again, now) = (calls(&entries), calls(now));
        for change in &mut self.plan.changes {
            let path = change.path.as_slice();
            let Some((&ours, &theirs)) = again.get(path).zip(now.get(path)) else { continue };
            if let (Call::Split { args: Some(old), .. }, Call::Split { args: Some(new), .. }) = (ours, theirs)
                && is_like(ours, theirs)
            {
                for edit in &mut change.edits {
                    edit.text = edit.text.replacen(old.raw(&self.wrapped), new.raw(text), 1);
                }
            }
        }
    }

    pub(super) fn entry(&self, now: &Entry<'_>) -> Option<&Entry<'t>> {
        self.entries.iter().find(|entry| entry.path == now.path)
    }

    pub(super) fn had_wrapped(&self, now: &Entry<'_>) -> bool {
        self.entry(now).is_some_and(|entry| matches!(judge(entry), Decision::Wrapped(_)))
    }

    /// If our stretch of this entry still stands there as we wrote it, its old bytes in that place.
    pub(super) fn put_back(&self, format: Format, text: &str, now: &Entry<'_>) -> Option<Edit> {
        let change = self.plan.changes.iter().find(|change| change.path == now.path)?;
        let (old, new) = change.stretch(self.text);
        // An entry of JSON or YAML has one place; one of TOML may have several, and its name stands in what we wrote.
        let within = match format {
            Format::Json | Format::Yaml => now.node.span.clone(),
            Format::Toml => 0..text.len(),
        };
        let mut places = text.get(within.clone())?.match_indices(&new);
        let (at, _) = places.next().filter(|_| places.next().is_none())?;
        let start = within.start + at;
        Some(Edit::new(start..start + new.len(), old))
    }
}

/// Whether both run the same, but for the policy.
fn is_like(one: Call<'_>, other: Call<'_>) -> bool {
    Run::of(one.behind_start())
        .zip(Run::of(other.behind_start()))
        .is_some_and(|(one, other)| one.is_like(&other))
}

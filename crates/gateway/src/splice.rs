//! Changing a few values in a raw text while every other byte stays.

use std::borrow::Cow;
use std::ops::Range;

use linetender_wire::frame;
use serde_json::value::RawValue;

/// Changes to a text, in the order they stand in it.
pub(crate) struct Splice<'a> {
    text: &'a str,
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> Splice<'a> {
    pub(crate) const fn of(text: &'a str) -> Self {
        Self { text, changes: Vec::new() }
    }

    /// A value of the text becomes this string.
    pub(crate) fn put(&mut self, value: &RawValue, string: &str) {
        self.put_raw(value, frame::respell(string).into_owned());
    }

    /// A value of the text becomes this JSON.
    pub(crate) fn put_raw(&mut self, value: &RawValue, json: String) {
        let start = (value.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let end = start.saturating_add(value.get().len());
        debug_assert!(end <= self.text.len(), "the value is of another text");
        if end <= self.text.len() {
            self.changes.push((start..end, json));
        }
    }

    /// The text as it is now.
    pub(crate) fn done(mut self) -> Cow<'a, str> {
        if self.changes.is_empty() {
            return Cow::Borrowed(self.text);
        }
        self.changes.sort_by_key(|(range, _)| range.start);
        let mut made = String::with_capacity(self.text.len() + 64 * self.changes.len());
        let mut from = 0;
        for (range, new) in &self.changes {
            made.push_str(&self.text[from..range.start]);
            made.push_str(new);
            from = range.end;
        }
        made.push_str(&self.text[from..]);
        Cow::Owned(made)
    }
}

//! What is wrong with a file, and where.

use std::ops::Range;

use miette::{Diagnostic, NamedSource, SourceSpan};

/// Something is wrong at a place in a file.
#[derive(Debug, Diagnostic, thiserror::Error)]
#[error("{what}")]
pub struct Problem {
    what: String,
    #[source_code]
    source_text: NamedSource<String>,
    #[label("here")]
    at: SourceSpan,
    #[help]
    help: Option<String>,
    line: usize,
}

impl Problem {
    /// The line it stands on, from one: for logs, which must not show the file's secrets.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// What would help.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

/// A file's text, and what it is called.
pub(super) struct Text<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Text<'a> {
    pub(super) const fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text }
    }

    pub(super) fn problem(
        &self,
        at: Range<usize>,
        what: impl Into<String>,
        help: Option<String>,
    ) -> Box<Problem> {
        let end = at.end.min(self.text.len());
        let start = at.start.min(end);
        let line = 1 + self.text.char_indices().filter(|(at, char)| *at < start && *char == '\n').count();
        let source_text = NamedSource::new(self.name, self.text.to_owned());
        Box::new(Problem { what: what.into(), source_text, at: (start..end).into(), help, line })
    }
}

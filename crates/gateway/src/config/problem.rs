//! What is wrong with a file, and where.

use std::ops::Range;

use linetender_wire::visible;

/// The most characters of what is said.
const LONGEST: usize = 500;

/// A config error with its position in the file. It never quotes the file: the line that is wrong is often the one with a
/// token.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Problem {
    file: String,
    what: String,
    help: Option<String>,
    line: usize,
    column: usize,
}

impl Problem {
    /// The file, the place in it, and what is wrong there, on one line.
    pub fn report(&self) -> String {
        let Self { file, what, line, column, help } = self;
        let help = help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{file}:{line}:{column}: {what}{help}")
    }

    /// Line number, from 1.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Column, from 1, in characters.
    pub const fn column(&self) -> usize {
        self.column
    }

    /// Advice on how to fix it.
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

    #[expect(clippy::unnecessary_box_returns, reason = "it is the error of results, which stay small so")]
    pub(super) fn problem(
        &self,
        at: Range<usize>,
        what: impl Into<String>,
        help: Option<String>,
    ) -> Box<Problem> {
        let end = at.end.min(self.text.len());
        let start = at.start.min(end);
        let before = || self.text.char_indices().take_while(|(at, _)| *at < start).map(|(_, char)| char);
        let line = 1 + before().filter(|char| *char == '\n').count();
        let column = before().fold(1, |column, char| if char == '\n' { 1 } else { column + 1 });
        let (what, help) =
            (visible::cut(&what.into(), LONGEST), help.map(|help| visible::cut(&help, LONGEST)));
        Box::new(Problem { file: self.name.to_owned(), what, help, line, column })
    }
}

/// A key as it may be repeated.
pub(super) fn key(name: &str) -> String {
    if is_name(name) { format!("key `{name}`") } else { "key".to_owned() }
}

/// Whether this looks like the name of a key or of a variable, and not like a value that was put in its place.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    !name.is_empty() && name.len() <= 40 && digits <= 4 && name.chars().all(is_part)
}

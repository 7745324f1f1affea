//! What is wrong with a file, and where.

use std::ops::Range;

use miette::{Diagnostic, NamedSource, SourceSpan};

/// A config error with its position in the file.
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
    column: usize,
}

impl Problem {
    /// Line number, from 1: for logs, which must not quote the file (secrets).
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
        let source_text = NamedSource::new(self.name, shown(self.text));
        Box::new(Problem { what: what.into(), source_text, at: (start..end).into(), help, line, column })
    }
}

/// A text as a terminal may show it: what a terminal would obey is replaced, byte for byte, so that places in it stay true.
fn shown(text: &str) -> String {
    let is_obeyed = |char: char| {
        char.is_control() && !matches!(char, '\n' | '\r' | '\t')
            || matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if is_obeyed(char) {
            shown.extend(std::iter::repeat_n('?', char.len_utf8()));
        } else {
            shown.push(char);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    #[test]
    fn x12_a_quoted_line_is_no_command_to_the_terminal() {
        assert_eq!(super::shown("a\u{1b}[31m\u{9b}\u{202e}b\té\r\n"), "a?[31m?????b\té\r\n");
    }
}

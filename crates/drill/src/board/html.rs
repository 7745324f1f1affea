//! Text that becomes a page. Foreign text cannot get in as markup: what is not escaped has to be in our own source.

use std::fmt::{self, Display, Write as _};

/// Names and values of an element's attributes.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// A piece of a page.
#[derive(Default)]
pub(super) struct Html(String);

/// A place in a drawing, in per cent of its width or in pixels, with as many digits as can be seen.
pub(super) struct Percent(pub(super) f64);

impl Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2}%", self.0)
    }
}

impl Html {
    /// Markup of our own. Only what is written in the source is `'static`.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text, whoever wrote it.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing into a string does not fail.
        let _ = write!(Escaped(&mut self.0), "{text}");
        self
    }

    /// An element without a body.
    pub(super) fn open(&mut self, tag: &'static str, attributes: Attributes) -> &mut Self {
        self.raw("<").raw(tag);
        for (name, value) in attributes {
            self.raw(" ").raw(name).raw("=\"").text(value).raw("\"");
        }
        self.raw(">")
    }

    /// An element, and what is in it.
    pub(super) fn within(
        &mut self,
        tag: &'static str,
        attributes: Attributes,
        body: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.open(tag, attributes);
        body(self);
        self.raw("</").raw(tag).raw(">")
    }

    /// An element with a text in it.
    pub(super) fn put(&mut self, tag: &'static str, attributes: Attributes, text: impl Display) -> &mut Self {
        self.within(tag, attributes, |html| {
            html.text(text);
        })
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Writes text so that it stays text, in a body as well as in an attribute.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                letter if hidden(letter) => self.0.push('\u{fffd}'),
                letter => self.0.push(letter),
            }
        }
        Ok(())
    }
}

/// What cannot be seen but changes what is: control characters, and those that turn the direction of writing.
pub(super) fn hidden(letter: char) -> bool {
    (letter.is_control() && letter != '\n' && letter != '\t')
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::Html;

    #[test]
    fn foreign_text_stays_text_in_a_body_and_in_an_attribute() {
        let mut html = Html::default();
        html.put("p", &[("title", &"\"><script>")], "<b>'&\u{202e}\u{1b}[31m");
        let wanted = "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt;&#39;&amp;\u{fffd}\u{fffd}[31m</p>";
        assert_eq!(html.into_string(), wanted);
    }
}

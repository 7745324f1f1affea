//! Where a server's stderr goes. Whatever is chosen, it is drained, and its end is kept for errors.

use std::fmt::Write as _;
use std::sync::OnceLock;

use linetender_wire::Redacted;

/// How much of a line goes into the log.
const LOGGED: usize = 1000;

/// Writes what is passed on.
static PASS: OnceLock<fn(&[u8])> = OnceLock::new();

/// Where a server's stderr goes, line by line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Stderr {
    /// Nowhere. Its last lines are still in the error of a call that it could not answer.
    #[default]
    Off,
    /// Into the log, redacted and cut.
    Log,
    /// To whatever was named with [`pass_stderr_to`]; into the log, if nothing was.
    Pass,
}

/// Says what writes the stderr of servers that [pass](Stderr::Pass) it, once per process. It is called with whole lines
/// by tasks that must not wait: it must not block.
pub fn pass_stderr_to(write: fn(&[u8])) {
    let _ = PASS.set(write);
}

impl Stderr {
    /// A line came, without its break.
    pub(crate) fn hear(self, server: &str, line: &[u8]) {
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        match (self, PASS.get()) {
            (Self::Off, _) => {}
            (Self::Pass, Some(write)) => write(passed(&text).as_bytes()),
            (Self::Pass, None) | (Self::Log, _) => {
                let text = Redacted::head(&text, LOGGED);
                tracing::info!(server, text = text.as_str(), "stderr");
            }
        }
    }
}

/// A line as it may be shown: control characters could move the cursor of whoever looks, or forge lines.
fn passed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if character.is_control() && character != '\t' {
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown.push('\n');
    shown
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn text_passes_as_it_is_but_for_control_characters() {
        assert_eq!(passed("a\tb ü"), "a\tb ü\n");
        assert_eq!(passed("\u{1b}[31mred\r"), "\\u{1b}[31mred\\r\n");
    }
}

//! Where a server's stderr goes. Whatever is chosen, it is drained, and its end is kept for errors.

use std::sync::OnceLock;

use linetender_wire::{Redacted, hide, visible};

/// How much of a line goes into the log.
const LOGGED: usize = 1000;

/// How many lines that came at once go into the log. Each costs a moment of the thread that serves calls.
const AT_ONCE: usize = 64;

/// Writes what is passed on.
static PASS: OnceLock<fn(&[u8])> = OnceLock::new();

/// Where a server's stderr goes, line by line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
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
    /// Lines came, without the last break.
    pub(crate) fn hear(self, server: &str, lines: &[u8]) {
        let text = String::from_utf8_lossy(lines);
        match (self, PASS.get()) {
            (Self::Off, _) => {}
            (Self::Pass, Some(write)) => {
                let lines = text.split('\n').map(|line| passed(server, line.trim_end()));
                write(lines.collect::<String>().as_bytes());
            }
            (Self::Pass, None) | (Self::Log, _) => {
                // All of them at once: a key has many lines, and not each of them looks like a part of one.
                let shown = Redacted::lines(&text);
                for line in shown.as_str().split('\n').take(AT_ONCE) {
                    let text = visible::cut(line.trim_end(), LOGGED);
                    tracing::info!(server, text, "stderr");
                }
                let left_out = shown.as_str().split('\n').count().saturating_sub(AT_ONCE);
                if left_out > 0 {
                    tracing::info!(server, lines = left_out, "stderr lines dropped: too many at once");
                }
            }
        }
    }
}

/// A line as it may be shown: under its server's name, so that it can be taken for nobody else's, and without secrets
/// that we gave it.
fn passed(server: &str, text: &str) -> String {
    format!("[{}] {}\n", visible::line(server), visible::block(&hide(text)))
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn text_passes_as_it_is_but_for_what_cannot_be_seen() {
        assert_eq!(passed("git", "a\tb \\t ü"), "[git] a\tb \\t ü\n");
        assert_eq!(passed("git", "\u{1b}[31mred\r\u{202e}"), "[git] \\u{1b}[31mred\\r\\u{202e}\n");
    }
}

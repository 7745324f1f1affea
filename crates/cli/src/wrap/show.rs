//! What the user sees: the difference on stdout, everything else on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use similar::{Algorithm, TextDiff};

use crate::plain::is_obeyed;

/// After this the difference is longer than it need be, but right.
const SEARCH: Duration = Duration::from_secs(2);

/// A unified diff; in colour on a terminal that wants it.
pub(super) fn difference(path: &Path, old: &str, new: &str) {
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(SEARCH).diff_lines(old, new);
    let name = path.display().to_string();
    let text = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
    let terminal = std::io::stdout().is_terminal();
    let mut out = anstream::stdout().lock();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let style = style(number, line);
        // A terminal obeys control characters; a file or a patch wants them as they are.
        let line = if terminal { plain(line) } else { line.to_owned() };
        let (body, end) = line.strip_suffix('\n').map_or((line.as_str(), ""), |body| (body, "\n"));
        // If nobody reads on, nobody needs the rest.
        if write!(out, "{style}{body}{style:#}{end}").is_err() {
            return;
        }
    }
}

fn style(number: usize, line: &str) -> Style {
    match line.as_bytes().first() {
        _ if number < 2 => Style::new().bold(),
        Some(b'-') => AnsiColor::Red.on_default(),
        Some(b'+') => AnsiColor::Green.on_default(),
        Some(b'@') => AnsiColor::Cyan.on_default(),
        _ => Style::new(),
    }
}

/// One line for the user.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", plain(line));
}

/// Without what a terminal would obey.
fn plain(text: &str) -> String {
    let harmless = |char: char| !is_obeyed(char) || matches!(char, '\n' | '\t' | '\r');
    text.chars().map(|char| if harmless(char) { char } else { char::REPLACEMENT_CHARACTER }).collect()
}

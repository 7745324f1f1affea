//! Numbers and words that fit into narrow columns.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

/// A count in at most five characters.
#[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
pub(super) fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1000),
        1_000_000..10_000_000 => format!("{:.1}M", number as f64 / 1e6),
        _ => format!("{}M", number / 1_000_000),
    }
}

pub(super) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => String::new(),
        Some(rate) if rate < 0.05 => "0".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) if rate < 1000.0 => format!("{rate:.0}"),
        Some(rate) => format!("{:.0}k", rate / 1000.0),
    }
}

/// A time that a call took, in at most five characters.
#[expect(clippy::cast_precision_loss, reason = "it is shown with two digits")]
pub(super) fn took(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros}µs"),
        1000..10_000 => format!("{:.1}ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{}ms", micros / 1000),
        1_000_000..60_000_000 => format!("{:.1}s", micros as f64 / 1e6),
        _ => format!("{}m", micros / 60_000_000),
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with two digits")]
pub(super) fn bytes(bytes: u64) -> String {
    const MEBI: u64 = 1 << 20;
    match bytes {
        0..MEBI => format!("{}K", bytes >> 10),
        MEBI..0x4000_0000 => format!("{}M", bytes >> 20),
        _ => format!("{:.1}G", bytes as f64 / (1u64 << 30) as f64),
    }
}

/// The text, or as much of it as fits and a sign that there is more.
pub(super) fn cut(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let mut short = fitting(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        short.push('…');
    }
    short
}

/// The text in as many lines as it takes, and no more than `most`.
pub(super) fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), text.trim_end());
    while !rest.is_empty() && width > 0 {
        if lines.len() + 1 == most {
            lines.push(cut(rest, width));
            break;
        }
        let fits = fitting(rest, width);
        if fits.is_empty() {
            break;
        }
        // Between words, if the line does not become very short.
        let at = match fits.rfind(' ') {
            Some(space) if fits.len() < rest.len() && space > fits.len() / 2 => space + 1,
            _ => fits.len(),
        };
        lines.push(rest[..at].trim_end().to_owned());
        rest = &rest[at..];
    }
    lines
}

pub(super) fn wide(text: &str) -> usize {
    Span::raw(text).width()
}

/// The beginning of the text that fits.
fn fitting(text: &str, width: usize) -> &str {
    if text.len() <= width {
        return text;
    }
    let (mut end, mut taken, mut buffer) = (0, 0, [0; 4]);
    for (at, character) in text.char_indices() {
        taken += wide(character.encode_utf8(&mut buffer));
        if taken > width {
            break;
        }
        end = at + character.len_utf8();
    }
    &text[..end]
}

pub(super) const fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub(super) const fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// What a verdict looks like. Only calls that may have run, and nobody knows, shout.
pub(super) fn verdict(name: &str, number: u64) -> Style {
    let colour = match name {
        _ if number == 0 => return dim(),
        "unknown" => return Style::new().fg(Color::White).bg(Color::Red).add_modifier(Modifier::BOLD),
        "answered" => Color::Green,
        "tool error" => Color::Yellow,
        "refused" => Color::Blue,
        "not executed" => Color::Cyan,
        _ => return Style::new(),
    };
    Style::new().fg(colour)
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, cut, rate, took, wrapped};

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 9999, 10_000, 999_999, 1_500_000, 12_000_000].map(count),
            ["0", "9999", "10k", "999k", "1.5M", "12M"]
        );
        assert_eq!(
            [0, 850, 1500, 12_000, 1_250_000, 130_000_000].map(took),
            ["0µs", "850µs", "1.5ms", "12ms", "1.2s", "2m"]
        );
        assert_eq!(
            [Some(0.0), Some(0.44), Some(41.7), Some(12_345.0), None].map(rate),
            ["0", "0.4", "42", "12k", ""]
        );
        assert_eq!([5 << 10, 12 << 20, 3 << 29].map(bytes), ["5K", "12M", "1.5G"]);
    }

    #[test]
    fn text_is_cut_and_wrapped_by_the_columns_it_takes() {
        assert_eq!(cut("server", 6), "server");
        assert_eq!(cut("servers", 6), "serve…");
        assert_eq!(cut("日本語サーバ", 6), "日本…");
        assert_eq!(wrapped("the server process was killed", 12, 9), ["the server", "process was", "killed"]);
        assert_eq!(wrapped("the server process was killed", 12, 2), ["the server", "process was…"]);
        assert_eq!(wrapped("日本", 1, 9), Vec::<String>::new(), "nothing fits, and it ends");
    }
}

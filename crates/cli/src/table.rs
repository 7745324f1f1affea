//! A table that fits: every column as wide as it needs, none that is empty, and the last one cut to what is left.

use std::fmt::{self, Write as _};

use anstyle::Style;

use crate::plain::plain;

/// What stands between two columns.
const GAP: &str = "  ";

/// The widest that a column but the last may be.
const WIDEST: usize = 28;

/// What the last column gets at least, also where the terminal has no room for it.
const LEAST: usize = 20;

/// A place in the table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    side: Side,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Left,
    Right,
}

/// Rows of cells, under a head.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    rows: Vec<[Cell; N]>,
}

impl Cell {
    pub(crate) const fn none() -> Self {
        Self { text: String::new(), style: Style::new(), side: Side::Left }
    }

    pub(crate) fn plain(text: &str) -> Self {
        Self::styled(text, Style::new())
    }

    pub(crate) fn styled(text: &str, style: Style) -> Self {
        // A table's row is one line.
        let text = plain(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        Self { text, style, side: Side::Left }
    }

    pub(crate) fn number(number: impl fmt::Display) -> Self {
        Self { text: plain(&number.to_string()), style: Style::new(), side: Side::Right }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn print(&self, into: &mut String, width: usize, is_last: bool) {
        let text = cut(&self.text, width);
        let pad = " ".repeat(width.saturating_sub(text.chars().count()));
        let (before, after) = if self.side == Side::Right { (pad.as_str(), "") } else { ("", pad.as_str()) };
        let after = if is_last { "" } else { after };
        let _ = write!(into, "{before}{}{text}{}{after}", self.style.render(), self.style.render_reset());
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(head: [&str; N]) -> Self {
        Self { rows: vec![head.map(|word| Cell::styled(word, Style::new().bold()))] }
    }

    pub(crate) fn row(&mut self, cells: [Cell; N]) {
        // A head stands over its numbers.
        for (head, cell) in self.rows[0].iter_mut().zip(&cells) {
            if cell.side == Side::Right {
                head.side = Side::Right;
            }
        }
        self.rows.push(cells);
    }

    /// The table as text, no wider than this if that can be.
    pub(crate) fn fitted(&self, terminal: Option<usize>) -> String {
        let widest = |column: usize| {
            let under = self.rows.iter().skip(1).map(|row| row[column].width()).max().unwrap_or(0);
            if under == 0 { 0 } else { under.max(self.rows[0][column].width()) }
        };
        let mut widths: [usize; N] = std::array::from_fn(widest);
        for width in &mut widths[..N - 1] {
            *width = (*width).min(WIDEST);
        }
        let taken: usize =
            widths[..N - 1].iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum();
        if let Some(terminal) = terminal {
            widths[N - 1] = widths[N - 1].min(terminal.saturating_sub(taken).max(LEAST));
        }
        let mut text = String::new();
        for row in &self.rows {
            let start = text.len();
            let shown = row.iter().zip(widths).enumerate().filter(|(_, (_, width))| *width > 0);
            for (column, (cell, width)) in shown {
                if text.len() > start {
                    text.push_str(GAP);
                }
                cell.print(&mut text, width, column == N - 1);
            }
            text.truncate(start + text[start..].trim_end().len());
            text.push('\n');
        }
        text
    }
}

/// The text, or as much of it as fits and a sign that there is more.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::{Cell, Table};

    fn table() -> Table<3> {
        let mut table = Table::new(["NAME", "N", "WHY"]);
        table.row([Cell::plain("one"), Cell::number(7), Cell::plain("it was\nkilled by SIGKILL and more")]);
        table.row([Cell::plain(&"x".repeat(40)), Cell::number(12345), Cell::none()]);
        table
    }

    fn plain(text: &str) -> Vec<String> {
        let stripped = anstream::adapter::strip_str(text).to_string();
        stripped.lines().map(str::to_owned).collect()
    }

    #[test]
    fn without_a_terminal_nothing_but_a_very_long_name_is_cut() {
        let lines = plain(&table().fitted(None));
        assert_eq!(lines[0], format!("{:28}      N  WHY", "NAME"));
        assert_eq!(lines[1], format!("{:28}      7  it was killed by SIGKILL and more", "one"));
        assert_eq!(lines[2], format!("{}…  12345", "x".repeat(27)));
    }

    #[test]
    fn a_column_that_has_nothing_to_say_is_left_out() {
        let mut table = Table::new(["NAME", "NEXT", "WHY"]);
        table.row([Cell::plain("one"), Cell::none(), Cell::none()]);
        assert_eq!(plain(&table.fitted(None)), ["NAME", "one"]);
    }

    #[test]
    fn in_a_terminal_the_last_column_is_cut_to_what_is_left() {
        let lines = plain(&table().fitted(Some(60)));
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:#?}");
        assert!(lines[1].ends_with("killed by SIGKI…"), "{lines:#?}");
        assert!(plain(&table().fitted(Some(10)))[1].ends_with("  it was killed by SI…"));
    }
}

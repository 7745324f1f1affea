//! All servers: a table whose columns are as many as fit, the verdicts always.

use linetender_holder::holder::Verdicts;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::text::{bold, bytes, count, cut, dim, rate, took, verdict, wide};
use crate::status::{age, tokens};
use crate::top::model::Model;
use crate::top::row::Row;
use crate::top::stand::Stand;
use crate::top::strip::{SPANS, slices};

/// The verdicts as narrow and as wide heads.
const VERDICTS: [(&str, &str); 6] = [
    ("ANSW", "ANSWERED"),
    ("TERR", "TOOL ERR"),
    ("REFU", "REFUSED"),
    ("NOTX", "NOT EXEC"),
    ("UNKN", "UNKNOWN"),
    ("CANC", "CANCELLED"),
];

/// The narrowest and the widest that a name is.
const NAME: (usize, usize) = (11, 28);

/// The same for a strip.
const STRIP: (usize, usize) = (12, 60);

/// The last column says something from this width on.
const WORDS: usize = 16;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    Name,
    State,
    For,
    Strip,
    Rate,
    P50,
    P99,
    Verdict(usize),
    Busy,
    Restarts,
    Starts,
    Memory,
    Pid,
    Words,
}

/// Columns in their order, with head and width; and which comes first where there is not room for all.
const COLUMNS: [(What, &str, usize, u8); 13] = [
    (What::Name, "SERVER", NAME.0, 0),
    (What::State, "STATE", 12, 0),
    (What::For, "FOR", 7, 6),
    (What::Strip, "", STRIP.0, 2),
    (What::Rate, "/S", 4, 1),
    (What::P50, "P50", 5, 5),
    (What::P99, "P99", 5, 3),
    (What::Verdict(0), "", 0, 0),
    (What::Busy, "BUSY", 4, 8),
    (What::Restarts, "RESTARTS", 8, 4),
    (What::Starts, "STARTS", 6, 10),
    (What::Memory, "MEM", 5, 7),
    (What::Pid, "LINETENDER", 10, 9),
];

pub(super) fn list(model: &Model, area: Rect, buffer: &mut Buffer) {
    let shown = model.shown();
    let columns = columns(&shown, usize::from(area.width).saturating_sub(1));
    head(model, &columns, area, buffer);
    let height = usize::from(area.height.saturating_sub(1));
    let selected = model.selected_at();
    // The selected row is in the middle, but for the two ends.
    let first = selected.saturating_sub(height / 2).min(shown.len().saturating_sub(height));
    let rows = (area.y + 1..area.bottom()).zip(shown.iter().enumerate().skip(first));
    for (y, (at, row)) in rows {
        draw_row(model, row, &columns, Rect { y, height: 1, ..area }, buffer);
        if at == selected {
            buffer.set_string(area.x, y, "▸", bold());
            for x in area.left()..area.right() {
                let cell = &mut buffer[(x, y)];
                cell.modifier.insert(Modifier::BOLD);
                // What stands on a colour of its own keeps it.
                if model.colours && cell.bg == Color::Reset {
                    cell.bg = Color::Indexed(236);
                }
            }
        }
    }
}

/// The columns that fit, with their heads and widths.
fn columns(rows: &[&Row], width: usize) -> Vec<(What, String, usize)> {
    let narrow = VERDICTS.len() * 5;
    let mut left = width.saturating_sub(narrow);
    let mut fits: Vec<What> = Vec::new();
    let mut by_rank = COLUMNS;
    by_rank.sort_by_key(|(.., rank)| *rank);
    for (what, _, wanted, _) in by_rank {
        let wanted = if wanted == 0 { 0 } else { wanted + 1 };
        // The first column has no gap before it.
        let wanted = wanted - usize::from(what == What::Name);
        if wanted > left {
            break;
        }
        left -= wanted;
        fits.push(what);
    }
    let longest = rows.iter().map(|row| wide(&row.name)).max().unwrap_or(0).clamp(NAME.0, NAME.1);
    let name = NAME.0 + (longest - NAME.0).min(left);
    left -= name - NAME.0;
    let widening: usize = VERDICTS.iter().map(|(narrow, wide)| wide.len() - narrow.len()).sum();
    // Whole words, if there is room for all of them.
    let is_wide = fits.len() == COLUMNS.len() && left_over(&mut left, widening);
    let has_strip = fits.contains(&What::Strip);
    // A third of what is left makes the strip longer; the last error gets the rest.
    let words = left;
    let strip = if has_strip { (words / 3).min(STRIP.1 - STRIP.0) } else { 0 };
    let words = (words - strip).saturating_sub(1);
    let mut columns = Vec::new();
    for (what, head, width, _) in COLUMNS.into_iter().filter(|(what, ..)| fits.contains(what)) {
        match what {
            What::Name => columns.push((what, head.to_owned(), name)),
            What::Strip if words < WORDS => columns.push((what, String::new(), width + strip + words)),
            What::Strip => columns.push((what, String::new(), width + strip)),
            What::Verdict(_) => columns.extend(VERDICTS.iter().enumerate().map(|(at, (narrow, wide))| {
                let head = if is_wide { wide } else { narrow };
                (What::Verdict(at), (*head).to_owned(), head.len())
            })),
            _ => columns.push((what, head.to_owned(), width)),
        }
    }
    if words >= WORDS {
        columns.push((What::Words, "LAST ERROR, NEXT TRY".to_owned(), words));
    }
    columns
}

/// Takes so much of what is left, or nothing.
fn left_over(left: &mut usize, wanted: usize) -> bool {
    let rest = left.checked_sub(wanted);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

fn head(model: &Model, columns: &[(What, String, usize)], area: Rect, buffer: &mut Buffer) {
    let mut x = area.x + 1;
    for (what, head, width) in columns {
        let text = match what {
            What::Strip => format!("LAST {}", SPANS[model.span].1.to_uppercase()),
            _ => head.clone(),
        };
        x = put(
            buffer,
            (x, area.y),
            &text,
            *width,
            is_number(*what),
            bold().add_modifier(Modifier::UNDERLINED),
        );
    }
}

const fn is_number(what: What) -> bool {
    !matches!(what, What::Name | What::State | What::Strip | What::Words)
}

fn draw_row(model: &Model, row: &Row, columns: &[(What, String, usize)], area: Rect, buffer: &mut Buffer) {
    let mut x = area.x + 1;
    let stand = Style::new().fg(row.stand.colour());
    for (what, _, width) in columns {
        // A process without a line has nothing to count: why stands in place of the numbers.
        if row.lines.is_empty() && !matches!(what, What::Name | What::State) {
            put(buffer, (x, area.y), &row.words, usize::from(area.right().saturating_sub(x)), false, stand);
            return;
        }
        if *what == What::Strip {
            strip(model, row, (x, area.y), *width, buffer);
            x += u16::try_from(*width).unwrap_or(0) + 1;
            continue;
        }
        let (text, style) = match what {
            What::State => (format!("{} {}", row.stand.glyph(), row.state), stand),
            What::Verdict(at) => {
                let (name, number) = row.calls().named()[*at];
                (if number == 0 { "·".to_owned() } else { count(number) }, verdict(name, number))
            }
            What::Restarts => restarts(row),
            What::Words => (row.words.clone(), if row.stand.needs_somebody() { stand } else { dim() }),
            What::Name if row.stand.needs_somebody() => {
                (row.name.clone(), stand.add_modifier(Modifier::BOLD))
            }
            what => (plain(*what, row), Style::new()),
        };
        x = put(buffer, (x, area.y), &text, *width, is_number(*what), style);
    }
}

fn plain(what: What, row: &Row) -> String {
    match what {
        What::Name => row.name.clone(),
        What::For => row.since_millis.map(age).unwrap_or_default(),
        What::Rate => rate(row.rate),
        What::P50 => row.counts.p50_micros.map(took).unwrap_or_default(),
        What::P99 => row.counts.p99_micros.map(took).unwrap_or_default(),
        What::Busy if row.counts.under_way == 0 => String::new(),
        What::Busy => count(row.counts.under_way),
        What::Starts => row.lines.first().map(|line| line.generation.to_string()).unwrap_or_default(),
        What::Memory => row.memory().map(bytes).unwrap_or_default(),
        What::Pid => row.key.pid.to_string(),
        What::State | What::Strip | What::Verdict(_) | What::Restarts | What::Words => String::new(),
    }
}

/// How many restarts are left, and that they are few.
pub(super) fn restarts(row: &Row) -> (String, Style) {
    let Some((left, most)) = row.budget() else { return (String::new(), Style::new()) };
    let style = match left {
        0..1000 => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        _ if left < most / 2 => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    };
    (format!("{}/{}", tokens(left), tokens(most)), style)
}

/// The states of a row's most urgent line.
pub(super) fn strip(model: &Model, row: &Row, (x, y): (u16, u16), width: usize, buffer: &mut Buffer) {
    let Some(line) = row.lines.first() else { return };
    let slices = slices(&line.history, SPANS[model.span].0 * 1000, width);
    for (column, slice) in (x..).zip(slices) {
        let (glyph, style) = match slice {
            Some(stand) => (stand.glyph(), strip_style(stand)),
            None => (' ', Style::new()),
        };
        buffer.set_string(column, y, glyph.encode_utf8(&mut [0; 4]), style);
    }
}

/// Letters in a strip stand on their colour, so that a single one is seen in a long strip.
fn strip_style(stand: Stand) -> Style {
    match stand {
        Stand::Ending | Stand::Parked | Stand::NeedsAuth | Stand::Silent => {
            Style::new().fg(Color::Black).bg(stand.colour()).add_modifier(Modifier::BOLD)
        }
        _ => Style::new().fg(stand.colour()),
    }
}

/// Writes into a column, and returns where the next one begins.
fn put(
    buffer: &mut Buffer,
    (x, y): (u16, u16),
    text: &str,
    width: usize,
    is_number: bool,
    style: Style,
) -> u16 {
    let text = cut(text, width);
    let next = x + u16::try_from(width + 1).unwrap_or(u16::MAX).min(u16::MAX - x);
    let before = if is_number { width.saturating_sub(wide(&text)) } else { 0 };
    let at = x + u16::try_from(before).unwrap_or(0);
    if at < buffer.area.right() && y < buffer.area.bottom() {
        buffer.set_stringn(at, y, &text, usize::from(buffer.area.right() - at), style);
    }
    next
}

/// Verdicts of all, most important first, as many as fit.
pub(super) fn totals(verdicts: &Verdicts) -> impl Iterator<Item = (&'static str, u64)> + use<> {
    let named = verdicts.named();
    [0, 4, 3, 2, 1, 5].into_iter().map(move |at| named[at])
}

//! From the model to the screen, and nothing else: what is drawn is what the model says.

mod list;
mod one;
mod text;

use std::collections::BTreeMap;

use linetender::visible;
use linetender_holder::holder::Act;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::model::{Model, Over, View};
use super::row::{Key, Row};
use super::server_of;
use super::strip::SPANS;
use crate::status::age;
use text::{bold, count, cut, dim, rate, verdict, wide, wrapped};

/// The smallest terminal.
const LEAST: (u16, u16) = (60, 15);

/// The most that the help can be scrolled.
pub(super) const KEYS_LINES: usize = 24;

const KEYS: &str = "\
Enter      one server: failures, stderr, calls in progress
Esc        back; in the list: clear the filter
↑ ↓ j k    move or scroll; PgUp PgDn Home End too
r          restart: end the connection, open a new one
p          park: out of service until it is woken
w          wake: bring a parked server back now
/          filter by name, state or process number
t n c l    sort by trouble, name, calls/s, p99 latency
u m        sort by unknown, memory; again: reversed
+ -        longer and shorter strips
q Ctrl-C   leave

▇ up  ░ waiting  ▒ dialing  ? suspect  ▄ draining
x ending  P parked  A needs-auth  · idle  - closed
! the linetender process does not answer

Tool calls by verdict:
ANSW answered           TERR the tool says it failed
REFU never sent         NOTX proven: not executed
CANC cancelled          UNKN may have been executed:
                        check before you repeat it";

/// The rows over and under what is shown: two lines and a gap, and the keys.
const AROUND: u16 = 4;

/// As far as the text of one server can be scrolled.
pub(super) fn furthest(model: &Model, key: &Key) -> usize {
    let (width, height) = model.size;
    model.row(key).map_or(0, |row| one::furthest(model, row, (width, height.saturating_sub(AROUND))))
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "The terminal is {}×{}: make it {}×{} or larger. q leaves.",
            area.width, area.height, LEAST.0, LEAST.1
        );
        let lines: Vec<Line<'_>> =
            wrapped(&text, usize::from(area.width), 9).into_iter().map(Line::from).collect();
        return frame.render_widget(Paragraph::new(lines), area);
    }
    let body = Rect { y: area.y + 3, height: area.height - AROUND, ..area };
    frame.render_widget(title(model, area.width), Rect { height: 1, ..area });
    frame.render_widget(calls(model, area.width), Rect { y: area.y + 1, height: 1, ..area });
    match &model.view {
        View::One { key, scroll } => match model.row(key) {
            Some(row) => one::one(model, row, *scroll, body, frame.buffer_mut()),
            None => frame.render_widget(
                "It is gone: its process ended, or the server was removed. Esc goes back.",
                body,
            ),
        },
        View::All => match nothing(model) {
            Some(words) => frame.render_widget(words, body),
            None => list::list(model, body, frame.buffer_mut()),
        },
    }
    frame.render_widget(bottom(model, area.width), Rect { y: area.bottom() - 1, height: 1, ..area });
    match &model.over {
        Over::Help { scroll } => {
            let lines: Vec<String> = KEYS.lines().map(str::to_owned).collect();
            // Where it does not fit it is scrolled.
            let room = usize::from(area.height) - 2;
            let first = (*scroll).min(lines.len().saturating_sub(room));
            let title = if lines.len() > room { " Keys and signs (↑ ↓) " } else { " Keys and signs " };
            over(frame, title, &lines[first..(first + room).min(lines.len())]);
        }
        Over::Confirm(order) => {
            let busy = model.subject().map_or(0, |row| row.counts.under_way);
            over(frame, " Sure? ", &question(&order.act, order.pid, busy, usize::from(area.width) - 6));
        }
        Over::Nothing | Over::Filter => {}
    }
    if !model.colours {
        for cell in &mut frame.buffer_mut().content {
            // What stands on a colour is reversed instead.
            if cell.bg != Color::Reset {
                cell.modifier.insert(Modifier::REVERSED);
            }
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

/// Why there is no row.
fn nothing(model: &Model) -> Option<&'static str> {
    match (model.processes, model.all().is_empty(), model.shown().is_empty()) {
        (None, ..) => Some("Looking for linetender processes…"),
        (_, true, _) => {
            Some("No linetender process is running. To supervise a server: linetender run -- COMMAND")
        }
        (_, false, true) => Some("No server matches the filter. Esc clears it."),
        (_, false, false) => None,
    }
}

fn title(model: &Model, width: u16) -> Line<'static> {
    let bar = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::styled("linetender top  ", bar)];
    let right = match &model.view {
        View::One { key, .. } => {
            if let Some(row) = model.row(key) {
                let since =
                    row.since_millis.map(|millis| format!(" for {}", age(millis))).unwrap_or_default();
                let start =
                    row.lines.first().map(|line| format!(", start {}", line.generation)).unwrap_or_default();
                spans.push(Span::styled(format!("{}  ", cut(&row.name, 40)), bar));
                let state = format!("{} {}{since}{start}", row.stand.glyph(), row.state);
                spans.push(Span::styled(
                    state,
                    Style::new().fg(row.stand.colour()).add_modifier(Modifier::BOLD),
                ));
            }
            format!("strip: {}", SPANS[model.span].1)
        }
        View::All => {
            let processes = model.processes.unwrap_or(0);
            let servers = model.all().iter().filter(|row| row.key.server.is_some()).count();

            let servers_s = if servers == 1 { "" } else { "s" };
            let processes_s = if processes == 1 { "" } else { "es" };
            let held =
                if width < 80 { String::new() } else { format!(" in {processes} process{processes_s}") };
            spans.push(Span::raw(format!("{servers} server{servers_s}{held}  ")));
            // Those that fit, most urgent first.
            let mut room = usize::from(width).saturating_sub(spans.iter().map(Span::width).sum());
            for stand in stands(model.all()) {
                let Some(rest) = room.checked_sub(stand.width().saturating_sub(2)) else { break };
                room = rest.saturating_sub(2);
                spans.push(stand);
            }
            let order = if model.sort.is_reversed { " (reversed)" } else { "" };
            format!("sort: {}{order}", model.sort.by.name())
        }
    };
    let taken: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(taken + wide(&right));
    if room > 0 {
        spans.push(Span::raw(" ".repeat(room)));
        spans.push(Span::styled(right, dim()));
    }
    Line::from(spans)
}

/// How many stand where, most urgent first.
fn stands(rows: &[Row]) -> Vec<Span<'static>> {
    let mut by = BTreeMap::new();
    for row in rows {
        by.entry(row.stand).or_insert((row.state.clone(), 0)).1 += 1;
    }
    let of = |(stand, (state, number)): (super::stand::Stand, (String, usize))| {
        Span::styled(format!("{} {number} {state}  ", stand.glyph()), Style::new().fg(stand.colour()))
    };
    by.into_iter().rev().map(of).collect()
}

/// Tool calls of everything that is shown, by verdict.
fn calls(model: &Model, width: u16) -> Line<'static> {
    let (verdicts, per_second) = match (&model.view, model.subject()) {
        (View::One { .. }, Some(row)) => (*row.calls(), row.rate),
        _ => {
            (model.verdicts(), model.all().iter().filter_map(|row| row.rate).reduce(|one, other| one + other))
        }
    };
    let mut spans = vec![Span::styled(format!("{}/s", rate(per_second.or(Some(0.0)))), bold())];
    let mut room = usize::from(width).saturating_sub(spans[0].width());
    for (name, number) in list::totals(&verdicts) {
        let text = format!("{name} {}", count(number));
        // What does not fit is left out: half of it would be a wrong number.
        let Some(rest) = room.checked_sub(wide(&text) + 2) else { break };
        room = rest;
        spans.push(Span::raw("  "));
        spans.push(Span::styled(text, verdict(name, number)));
    }
    Line::from(spans)
}

fn bottom(model: &Model, width: u16) -> Line<'static> {
    if model.over == Over::Filter {
        let keys = Span::styled("   Enter keeps it, Esc clears it", dim());
        return Line::from(vec![Span::styled(format!("/{}▏", model.filter), bold()), keys]);
    }
    if let Some(notice) = &model.notice {
        let style = if notice.is_error { Style::new().fg(Color::Red) } else { Style::new().fg(Color::Green) };
        let sign = if notice.is_error { "failed: " } else { "" };
        return Line::styled(format!("{sign}{}", notice.text), style.add_modifier(Modifier::BOLD));
    }
    let mut spans = Vec::new();
    if !model.filter.is_empty() {
        spans.push(Span::styled(format!("filter: {}  ", model.filter), Style::new().fg(Color::Yellow)));
    }
    if model.busy > 0 {
        spans.push(Span::styled(
            format!("{} orders in progress  ", model.busy),
            Style::new().fg(Color::Yellow),
        ));
    }
    if model.ignored > 0 {
        let text = format!("{} sockets of others ignored (linetender status)  ", model.ignored);
        spans.push(Span::styled(text, Style::new().fg(Color::Yellow)));
    }
    let open = if model.view == View::All { ("Enter", "open") } else { ("Esc", "back") };
    let mut room = usize::from(width).saturating_sub(spans.iter().map(Span::width).sum());
    let keys =
        [("r", "restart"), ("p", "park"), ("w", "wake"), ("?", "help"), ("q", "leave"), ("/", "filter")];
    for (key, what) in [open].into_iter().chain(keys) {
        let Some(rest) = room.checked_sub(key.len() + what.len() + 1) else { break };
        room = rest.saturating_sub(2);
        spans.push(Span::styled(key, bold()));
        spans.push(Span::styled(format!(" {what}  "), dim()));
    }
    Line::from(spans)
}

/// What an order does, as a question.
fn question(act: &Act, pid: u32, busy: u64, width: usize) -> Vec<String> {
    let server = visible::line(server_of(act)).into_owned();
    let calls = match busy {
        0 => "No call is in progress.".to_owned(),
        1 => "1 call is in progress".to_owned(),
        many => format!("{many} calls are in progress"),
    };
    let (what, then) = match act {
        Act::Park { .. } => (
            "Park",
            if busy == 0 { calls } else { format!("{calls}: linetender lets them end.") }
                + " Then calls are refused until it is woken.",
        ),
        _ => (
            "Restart",
            if busy == 0 {
                calls
            } else {
                format!("{calls}: they end with an error that says whether they may have been executed.")
            },
        ),
    };
    let mut lines = vec![cut(&format!("{what} {server} (linetender process {pid})?"), width.min(70))];
    lines.extend(wrapped(&then, width.min(70), 3));
    lines.extend([String::new(), "y: yes   any other key: no".to_owned()]);
    lines
}

/// What is being done, while it is.
pub(super) fn words_of(act: &Act) -> String {
    let doing = match act {
        Act::Redial { .. } => "restarting",
        Act::Park { .. } => "parking",
        Act::Wake { .. } => "waking",
        _ => "telling",
    };
    format!("{doing} {}", visible::line(server_of(act)))
}

/// A box in the middle.
fn over(frame: &mut Frame<'_>, title: &str, lines: &[String]) {
    let area = frame.area();
    let longest = lines.iter().map(|line| wide(line)).max().unwrap_or(0).max(wide(title));
    let width = u16::try_from(longest + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let middle = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    let text: Vec<Line<'_>> = lines.iter().map(|line| Line::from(format!(" {line}"))).collect();
    frame.render_widget(Clear, middle);
    frame.render_widget(
        Paragraph::new(text).block(Block::bordered().title(title.to_owned()).title_style(bold())),
        middle,
    );
}

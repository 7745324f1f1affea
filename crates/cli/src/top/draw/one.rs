//! One server: how it stands, its calls by verdict, its last failures, and what is slow.

use linetender::visible;
use linetender_holder::holder::{Verdicts, by_reason};
use linetender_holder::journal::{Entry, Reason, What};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::list::{restarts, strip};
use super::text::{bold, bytes, count, cut, dim, rate, took, verdict, wide, wrapped};
use crate::status::age;
use crate::top::model::{Detail, Model};
use crate::top::row::Row;
use crate::top::strip::SPANS;

/// From this width on there are two columns.
const TWO: u16 = 110;

/// The rows of the strip over the text.
const STRIP: u16 = 3;

/// The most of each list that is shown.
const FAILURES: usize = 8;
const CALLS: usize = 64;
const STDERR: usize = 20;
const PROCESSES: usize = 16;
const CONNECTIONS: usize = 32;

type Text = Vec<Line<'static>>;

pub(super) fn one(model: &Model, row: &Row, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    // The strip has the whole width, under the span that it shows.
    let (from, now) = (format!("{} ago", SPANS[model.span].1), "now");
    let gap = " ".repeat(width.saturating_sub(from.len() + now.len()));
    buffer.set_stringn(area.x, area.y, format!("{from}{gap}{now}"), width, dim());
    if area.height > 1 {
        strip(model, row, (area.x, area.y + 1), width, buffer);
    }
    let body = Rect { y: area.y + STRIP, height: area.height.saturating_sub(STRIP), ..area };
    let [left, right] = halves(model, row, area.width);
    if right.is_empty() {
        return text(left, scroll, body, buffer);
    }
    let half = (area.width - 2) / 2;
    text(left, scroll, Rect { width: half, ..body }, buffer);
    text(right, scroll, Rect { x: body.x + half + 2, width: area.width - half - 2, ..body }, buffer);
}

/// As far as its text can be scrolled in an area of this size.
pub(super) fn furthest(model: &Model, row: &Row, (width, height): (u16, u16)) -> usize {
    let longest = halves(model, row, width).iter().map(Vec::len).max().unwrap_or(0);
    longest.saturating_sub(usize::from(height.saturating_sub(STRIP)))
}

/// The text in two columns, or in one where there is no room for two.
fn halves(model: &Model, row: &Row, width: u16) -> [Text; 2] {
    let detail = model.detail.as_ref().filter(|detail| detail.key == row.key);
    if width >= TWO {
        let half = usize::from((width - 2) / 2);
        return [left_half(row, detail, half), right_half(row, detail, half)];
    }
    let mut all = left_half(row, detail, usize::from(width));
    all.extend(right_half(row, detail, usize::from(width)));
    [all, Text::new()]
}

fn text(lines: Text, scroll: usize, area: Rect, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    let first = scroll.min(lines.len().saturating_sub(height));
    for (y, line) in (area.y..area.bottom()).zip(lines.into_iter().skip(first)) {
        line.render(Rect { y, height: 1, ..area }, buffer);
    }
}

fn left_half(row: &Row, detail: Option<&Detail>, width: usize) -> Text {
    let mut lines = now(row, width);
    lines.extend(verdicts(row, width));
    lines.extend(failures(row, detail, width));
    lines
}

fn right_half(row: &Row, detail: Option<&Detail>, width: usize) -> Text {
    let mut lines = in_progress(row, detail, width);
    lines.extend(slowest(row, width));
    lines.extend(connections(row, width));
    lines.extend(processes(row, width));
    lines
}

/// A head over a section.
fn section(title: impl Into<String>, lines: Text) -> Text {
    let mut all = vec![Line::from(Span::styled(title.into(), bold()))];
    all.extend(lines);
    all.push(Line::default());
    all
}

fn now(row: &Row, width: usize) -> Text {
    let mut facts: Vec<(&str, String, Style)> = Vec::new();
    if !row.words.is_empty() {
        let urgent =
            if row.stand.needs_somebody() { Style::new().fg(row.stand.colour()) } else { Style::new() };
        let label = if row.since_millis.is_none() || row.stand != crate::top::stand::Stand::Up {
            "why"
        } else {
            "last error"
        };
        facts.push((label, row.words.clone(), urgent));
    }
    let (restarts, style) = restarts(row);
    if !restarts.is_empty() {
        facts.push(("restarts left", restarts, style));
    }
    facts.push(("tool calls/s", rate(row.rate), Style::new()));
    if let (Some(p50), Some(p99)) = (row.counts.p50_micros, row.counts.p99_micros) {
        facts.push(("latency", format!("p50 {}, p99 {}", took(p50), took(p99)), Style::new()));
    }
    if let Some(memory) = row.memory() {
        let processes: usize = row.trees.iter().map(|tree| tree.processes.len()).sum();
        facts.push((
            "memory",
            format!("{}iB in {processes} process{}", bytes(memory), if processes == 1 { "" } else { "es" }),
            Style::new(),
        ));
    }
    if let Some(runs_at) = &row.runs_at {
        facts.push(("runs at", runs_at.clone(), Style::new()));
    }
    if let Some(holder) = &row.holder {
        let text = format!(
            "linetender {}, process {}, for {}",
            visible::line(&holder.door),
            holder.pid,
            age(holder.began_millis)
        );
        facts.push(("held by", text, Style::new()));
    }
    let mut lines = Text::new();
    for (label, text, style) in facts {
        let mut label = format!("{label:14}");
        for part in wrapped(&text, width.saturating_sub(14), 3) {
            lines.push(Line::from(vec![Span::styled(label, dim()), Span::styled(part, style)]));
            label = " ".repeat(14);
        }
    }
    lines.push(Line::default());
    lines
}

fn verdicts(row: &Row, width: usize) -> Text {
    let (tools, others) = (row.counts.tool_calls, row.counts.other_requests);
    let most = tools.named().iter().map(|(_, number)| *number).max().unwrap_or(0).max(1);
    let bar = width.saturating_sub(14 + 8 + 8 + 1);
    let of = |((name, number), (_, other)): ((&'static str, u64), (&str, u64))| {
        let share = usize::try_from(u128::from(number) * bar as u128 / u128::from(most)).unwrap_or(0);
        // One that there is, is seen.
        let share = share.max(usize::from(number > 0)).min(bar);
        let style = verdict(name, number);
        let bar_style = style.bg.map_or(style, |colour| Style::new().fg(colour));
        Line::from(vec![
            Span::styled(
                format!("{name:14}"),
                if number > 0 && name == "unknown" { style } else { Style::new() },
            ),
            Span::styled(format!("{:>7}", count(number)), if number > 0 { bold() } else { dim() }),
            Span::styled(format!("{:>8} ", count(other)), dim()),
            Span::styled("▆".repeat(share), bar_style),
        ])
    };
    let mut lines = vec![Line::styled(format!("{:14}{:>7}{:>8}", "", "tools", "other"), dim())];
    lines.extend(tools.named().into_iter().zip(others.named()).map(of));
    if !row.counts.retries.is_empty() {
        lines.push(Line::styled(format!("sent again: {}", by_reason(&row.counts.retries)), dim()));
    }
    section("Calls by verdict", lines)
}

/// Ends with their reasons, newest first, and what the last one wrote.
fn failures(row: &Row, detail: Option<&Detail>, width: usize) -> Text {
    let entries = detail.map(|detail| detail.entries.as_slice()).unwrap_or_default();
    let mut lines = Text::new();
    let ends = entries.iter().enumerate().rev().filter_map(|(at, entry)| Some((at, entry, end_of(entry)?)));
    let mut stderr = row.lines.first().and_then(|line| line.cause.as_ref()?.stderr.clone());
    for (at, entry, (generation, cause)) in ends.take(FAILURES) {
        stderr = stderr.or_else(|| cause.stderr.clone());
        let head = format!("{} #{generation} ", clock(&entry.at));
        let mut indent = wide(&head);
        let mut head = Span::styled(head, dim());
        for part in wrapped(&visible::line(&cause.text), width.saturating_sub(indent), 2) {
            lines.push(Line::from(vec![head, Span::raw(part)]));
            head = Span::raw(" ".repeat(indent));
        }
        let calls = calls_of(&entries[at..]);
        if !calls.is_empty() {
            indent = indent.min(width / 2);
            let style = if calls.contains("unknown") {
                Style::new().fg(Color::Red)
            } else {
                Style::new().fg(Color::Cyan)
            };
            lines.push(Line::from(vec![
                Span::raw(" ".repeat(indent)),
                Span::styled(cut(&calls, width - indent), style),
            ]));
        }
    }
    let ends: Vec<String> = row
        .counts
        .ends
        .iter()
        .take(FAILURES)
        .map(|(cause, number)| format!("{} {}", visible::line(cause), count(*number)))
        .collect();
    if !ends.is_empty() {
        lines.push(Line::styled(
            cut(&format!("by cause: {}; planned {}", ends.join(", "), row.counts.planned_ends), width),
            dim(),
        ));
    }
    if lines.is_empty() {
        lines.push(Line::styled("none", dim()));
    }
    let mut all = section("Last failures", lines);
    if let Some(stderr) = stderr {
        let written = visible::block(&stderr).replace('\t', "    ");
        let last: Vec<&str> = written.lines().rev().take(STDERR).collect();
        let lines = last.into_iter().rev().flat_map(|line| wrapped(line, width, 2));
        all.extend(section("stderr before the last failure", lines.map(Line::from).collect()));
    }
    all
}

/// The connection that ended here, and why.
fn end_of(entry: &Entry) -> Option<(u64, &Reason)> {
    match &entry.what {
        What::State { state, generation, cause: Some(cause), .. } if state == "ending" => {
            Some((*generation, cause))
        }
        _ => None,
    }
}

/// What became of the calls that an end took with it: those counted from it on, until a server serves again.
fn calls_of(entries: &[Entry]) -> String {
    let mut sum = Verdicts::default();
    for (at, entry) in entries.iter().enumerate() {
        let What::State { state, calls, .. } = &entry.what else { continue };
        if at > 0 && state == "ending" {
            break;
        }
        if let Some(calls) = calls {
            sum.refused += calls.refused;
            sum.unknown += calls.unknown;
            sum.not_executed += calls.not_executed;
        }
        if state == "up" {
            break;
        }
    }
    let parts = [(sum.unknown, "unknown"), (sum.not_executed, "not executed"), (sum.refused, "refused")];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    if parts.is_empty() { String::new() } else { format!("calls: {}", parts.join(", ")) }
}

/// The time of day of a moment in RFC 3339.
fn clock(at: &str) -> String {
    visible::line(at.get(11..19).unwrap_or("--:--:--")).into_owned()
}

fn in_progress(row: &Row, detail: Option<&Detail>, width: usize) -> Text {
    let mut calls: Vec<_> = detail.map(|detail| detail.calls.iter().collect()).unwrap_or_default();
    calls.sort_by_key(|call| std::cmp::Reverse(call.millis));
    let mut lines: Text = calls
        .iter()
        .take(CALLS)
        .map(|call| {
            let what = call.tool.as_deref().unwrap_or(&call.method);
            let whom = call.principal.as_deref().map(|whom| format!("  for {whom}")).unwrap_or_default();
            let text = format!("{:>6}  {}  {}{whom}", took(call.millis * 1000), what, call.stage);
            Line::from(cut(&visible::line(&text), width))
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled("none", dim()));
    }
    section(format!("Calls in progress: {}", row.counts.under_way.max(calls.len() as u64)), lines)
}

fn slowest(row: &Row, width: usize) -> Text {
    let mut lines: Text = row
        .counts
        .slowest
        .iter()
        .take(CALLS)
        .map(|slow| {
            let head = format!("{:>6}  ", took(slow.millis * 1000));
            let ended =
                format!("  {:13}{:>7} ago", cut(&visible::line(&slow.verdict), 12), age(slow.ended_millis));
            let room = width.saturating_sub(wide(&head) + wide(&ended)).min(40);
            let what = cut(&visible::line(&slow.what), room);
            let pad = " ".repeat(room.saturating_sub(wide(&what)));
            let style = verdict(&slow.verdict, 1);
            let style = style.bg.map_or(style, |colour| Style::new().fg(colour));
            Line::from(vec![Span::styled(head, bold()), Span::raw(what + &pad), Span::styled(ended, style)])
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled("none", dim()));
    }
    section("Slowest calls of the last 15 minutes", lines)
}

/// Where there are several: agents may have a connection each.
fn connections(row: &Row, width: usize) -> Text {
    if row.lines.len() < 2 {
        return Text::new();
    }
    let lines = row.lines.iter().take(CONNECTIONS).map(|line| {
        let stand = crate::top::stand::Stand::of(&line.state);
        let text = format!(
            "{} {:10} for {}, start {}",
            stand.glyph(),
            line.state,
            age(line.since_millis),
            line.generation
        );
        Line::styled(cut(&visible::line(&text), width), Style::new().fg(stand.colour()))
    });
    section(format!("Connections: {}", row.lines.len()), lines.collect())
}

fn processes(row: &Row, width: usize) -> Text {
    let processes = row.trees.iter().flat_map(|tree| &tree.processes).take(PROCESSES);
    let lines: Text = processes
        .map(|process| {
            let text = format!("{:>8}  {:>5}  {}", process.pid, bytes(process.memory_bytes), process.name);
            Line::from(cut(&visible::line(&text), width))
        })
        .collect();
    if lines.is_empty() { lines } else { section("Processes", lines) }
}

//! The same tables for those who read the repository.

use std::fmt::Write as _;

use super::better::better;
use super::digest::{Side, sides};
use super::fleet;
use super::html::hidden;
use super::matrix::{Verdict, matrix};
use super::tables::{self, AUTHORS, Line, MEANINGS, Mark, Table};
use crate::results::Results;

/// The results as Markdown. `page` is where the page lies beside it.
pub fn markdown(results: &Results, page: &str) -> String {
    let mut text = Text::default();
    text.line("# When an MCP server dies");
    text.line(&format!(
        "{}, {}, linetender {}, seed {}, policy {}, {}. [The page]({page}) has the same with pictures, findings and the timeline \
         of a death. To repeat it: `tools/scoreboard`.",
        safe(&results.date),
        safe(&results.machine),
        safe(&results.linetender),
        results.seed,
        safe(&results.policy),
        results.pace(),
    ));
    let sides = sides(results);
    for sentence in sides.iter().filter_map(tables::conclusion) {
        text.line(&safe(&sentence));
    }
    text.line(&format!(
        "{AUTHORS} [How a row is judged](drill.md#how-a-row-is-judged), [the peers and their settings](peers.md), [all \
         results](scoreboard/results.json)."
    ));
    for side in &sides {
        text.line(&format!("## In front of {}", side.words));
        text.line(&tables::summed(side));
        text.table(&tables::headline(side));
        for (target, why) in &side.unstarted {
            text.line(&format!(
                "{} {} could not start: {}",
                safe(&target.name),
                safe(&target.version),
                safe(why)
            ));
        }
        text.line("What callers were told:");
        text.table(&tables::told(side));
        text.line("How long it took:");
        text.table(&tables::times(side));
    }
    if let Some(told) = &results.fleet {
        text.line(&format!("## {}", fleet::TITLE));
        for sentence in fleet::sentences(told) {
            text.line(&safe(&sentence));
        }
        let rows = fleet::rows(told).into_iter().map(|row| row.iter().map(|cell| safe(cell)).collect());
        text.grid(fleet::HEAD.map(str::to_owned).to_vec(), rows);
        text.line("[How it is judged](drill.md#fleet).");
    }
    text.line("## What the words mean");
    text.line(&MEANINGS.map(|(word, meaning)| format!("- **{word}**: {meaning}")).join("\n"));
    text.line("## Row by row");
    text.line("✓ kept · ✗ broken · – does not concern it · ∅ could not start");
    for side in &sides {
        text.matrix(side);
    }
    text.line("## Where others are better than linetender");
    for side in &sides {
        text.line(&format!("In front of {}:", side.words));
        let told = better(side);
        let told = told.iter().map(|sentence| format!("- {}", safe(sentence))).collect::<Vec<_>>();
        text.line(&if told.is_empty() { "- nowhere, in this run".to_owned() } else { told.join("\n") });
    }
    text.line("## Who was drilled, and how it was set up");
    text.table(&tables::targets(results));
    text.0
}

/// A document in the making: paragraphs with an empty line between them.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "{gap}{line}");
    }

    fn table(&mut self, table: &Table) {
        let head = table.head.iter().copied();
        let rows = table
            .lines
            .iter()
            .map(|line| std::iter::once(who(line)).chain(line.cells.iter().map(cell)).collect());
        self.grid(std::iter::once("target").chain(head).map(str::to_owned).collect(), rows);
    }

    fn matrix(&mut self, side: &Side) {
        let names = side.digests.iter().map(|own| safe(&own.target.name));
        let rows = matrix(side).into_iter().map(|line| {
            let row = line.row;
            let title = format!(
                "{} {} ({}, {})",
                safe(&row.row),
                safe(&row.title),
                safe(&row.server),
                safe(&row.era)
            );
            std::iter::once(title)
                .chain(line.verdicts.iter().map(|verdict| sign(verdict).to_owned()))
                .collect()
        });
        self.grid(std::iter::once(format!("over {}", side.over)).chain(names).collect(), rows);
    }

    fn grid(&mut self, head: Vec<String>, rows: impl Iterator<Item = Vec<String>>) {
        let rule = vec!["---".to_owned(); head.len()];
        let lines: Vec<_> =
            [head, rule].into_iter().chain(rows).map(|cells| format!("| {} |", cells.join(" | "))).collect();
        self.line(&lines.join("\n"));
    }
}

fn who(line: &Line) -> String {
    let version = if line.version.is_empty() { String::new() } else { format!(" {}", safe(&line.version)) };
    if line.ours {
        format!("**{}**{version}", safe(&line.name))
    } else {
        format!("{}{version}", safe(&line.name))
    }
}

fn cell(cell: &tables::Cell) -> String {
    match cell.mark {
        Mark::Best => format!("**{}**", safe(&cell.text)),
        Mark::Plain | Mark::Broken => safe(&cell.text),
    }
}

fn sign(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Kept(_) => "✓",
        Verdict::Broken(_) => "✗",
        Verdict::NotStarted(_) => "∅",
        Verdict::Skipped(_) => "–",
        Verdict::Absent => "",
    }
}

/// Foreign text on one line of a table, as text: neither markup nor a link, not even one that is made of bare words.
fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '@' => safe.extend(['\\', letter]),
            ':' if letters.peek() == Some(&'/') => safe.push_str("\\:"),
            '.' if safe.ends_with("www") => safe.push_str("\\."),
            letter if letter.is_whitespace() => safe.push(' '),
            letter if hidden(letter) => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn foreign_text_stays_text() {
        assert_eq!(safe("a|b\n<img src=x> *b* [l](u)"), "a\\|b &lt;img src=x&gt; \\*b\\* \\[l\\](u)");
        assert_eq!(safe("http://x www.y me@z"), "http\\://x www\\.y me\\@z");
    }
}

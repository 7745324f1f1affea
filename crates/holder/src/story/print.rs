//! The story as lines of text.

use std::fmt;

use super::spans::{clock, span};
use super::{Death, Story};
use crate::holder::by_reason;

/// Lines that are indented as far as this stand on their own.
const ALONE: usize = 6;

impl Story {
    /// The story for a terminal of so many columns.
    pub fn wrapped(&self, width: usize) -> Vec<String> {
        self.lines().into_iter().flat_map(|line| wrap(line, width.max(40))).collect()
    }

    /// The story as a person reads it, a line for each sentence or two, however long.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Lines::default();
        let since = match (self.now.live, self.now.for_millis) {
            (true, Some(millis)) => format!(" (for {})", span(millis)),
            (false, Some(millis)) => format!(" (last heard of {} ago)", span(millis)),
            (_, None) => String::new(),
        };
        lines.text(0, &format!("{} is {}{since}.", self.server, self.now.text));
        if let Some(health) = &self.now.health {
            lines.text(0, &format!("Its health: {health}."));
        }
        lines.text(0, &self.now.calls);
        self.happened(&mut lines);
        if !self.retries.is_empty() {
            lines.text(
                2,
                &format!("Calls that linetender sent again by itself: {}.", by_reason(&self.retries)),
            );
        }
        lines.head("What happens next");
        self.next.iter().for_each(|next| lines.text(2, next));
        if !self.advice.is_empty() {
            lines.head("What you can do");
            if self.now.serves() {
                lines.text(2, "Nothing has to be done now. If it happens again:");
            }
            for advice in &self.advice {
                lines.item(&advice.text);
                if let Some(command) = &advice.command {
                    lines.text(ALONE, command);
                }
            }
        }
        lines.0
    }

    fn happened(&self, lines: &mut Lines) {
        if self.deaths.is_empty() {
            lines.head("What happened");
            lines.text(2, "The journal tells of no failure of this server.");
            return;
        }
        let several = self.deaths.iter().any(|death| death.holder != self.deaths[0].holder);
        lines.head(if self.deaths.len() > 1 { "What happened, newest first" } else { "What happened" });
        for (number, death) in self.deaths.iter().enumerate() {
            if number > 0 {
                lines.0.push(String::new());
            }
            death.tell(lines, several);
        }
        if self.older > 0 {
            lines.0.push(String::new());
            let (times, are) = if self.older == 1 { ("end", "is") } else { ("ends", "are") };
            lines.text(2, &format!("{} older {times} {are} not shown (--last N shows more).", self.older));
        }
    }
}

impl Death {
    fn tell(&self, lines: &mut Lines, several: bool) {
        let ago = self.ago_millis.map(|millis| format!(", {} ago", span(millis))).unwrap_or_default();
        let whose = if several { format!(", under linetender pid {}", self.holder) } else { String::new() };
        lines.text(2, &format!("{}{ago}{whose}", clock(&self.at)));
        lines.text(4, &self.what);
        self.meaning.iter().for_each(|meaning| lines.text(4, meaning));
        if !self.stderr.is_empty() {
            lines.text(4, "The last lines that it wrote to stderr:");
            self.stderr.iter().for_each(|line| lines.text(ALONE, &format!("| {line}")));
        }
        lines.text(4, &self.history());
        if let Some(calls) = &self.calls {
            lines.text(4, calls);
        }
        lines.text(4, &self.cost);
    }

    /// How long it had worked, how often the same happened, and when it was back.
    fn history(&self) -> String {
        let before = match self.served_millis {
            Some(millis) => format!("Before that it had been up for {}.", span(millis)),
            None => "It had not come up before that.".to_owned(),
        };
        let again = match self.times {
            1 => String::new(),
            times => format!(" The same happened {times} times in a row since {}.", clock(&self.first)),
        };
        let back = match self.back_millis {
            Some(millis) => format!(" It was back after {}.", span(millis)),
            None => " It has not been back since.".to_owned(),
        };
        format!("{before}{again}{back}")
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn head(&mut self, words: &str) {
        self.0.push(String::new());
        self.0.push(words.to_owned());
    }

    fn text(&mut self, indent: usize, text: &str) {
        if !text.is_empty() {
            self.0.push(format!("{}{text}", " ".repeat(indent)));
        }
    }

    fn item(&mut self, text: &str) {
        self.0.push(format!("  - {text}"));
    }
}

/// A line broken between words. What stands on its own (a command, a line of stderr) is not broken.
fn wrap(line: String, width: usize) -> Vec<String> {
    let indent = line.chars().take_while(|letter| *letter == ' ').count();
    if indent >= ALONE || line.chars().count() <= width {
        return vec![line];
    }
    let rest = " ".repeat(if line.trim_start().starts_with("- ") { indent + 2 } else { indent });
    let mut lines = vec![" ".repeat(indent)];
    let mut empty = true;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let last = lines.last().map_or(0, |last| last.chars().count());
        if !empty && last + 1 + word.chars().count() > width {
            lines.push(rest.clone());
            empty = true;
        }
        if let Some(last) = lines.last_mut() {
            if !empty {
                last.push(' ');
            }
            last.push_str(word);
        }
        empty = false;
    }
    lines
}

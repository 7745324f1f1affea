//! The text format before `OpenMetrics`, made from `OpenMetrics`: there, a family is called like its series.

use std::fmt::{self, Write};

use super::names::{Kind, METRICS};

/// Writes lines on, with the families named as their series.
pub(super) struct Plain<'a> {
    line: String,
    to: &'a mut dyn Write,
}

impl<'a> Plain<'a> {
    pub(super) fn new(to: &'a mut dyn Write) -> Self {
        Self { line: String::new(), to }
    }

    fn line(&mut self) -> fmt::Result {
        let line = std::mem::take(&mut self.line);
        let comment = line.strip_prefix("# ").and_then(|rest| rest.split_once(' '));
        let wrote = match comment {
            Some((what @ ("HELP" | "TYPE"), rest)) => {
                let (name, said) = rest.split_once(' ').unwrap_or((rest, "\n"));
                let metric = METRICS.iter().find(|metric| metric.name == name);
                let series = metric.map_or_else(|| name.to_owned(), super::Metric::series);
                let is_info = metric.is_some_and(|metric| metric.kind == Kind::Info) && what == "TYPE";
                write!(self.to, "# {what} {series} {}", if is_info { "gauge\n" } else { said })
            }
            _ => self.to.write_str(&line),
        };
        // Its room is used again.
        self.line = line;
        self.line.clear();
        wrote
    }
}

impl Write for Plain<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                self.line()?;
            }
        }
        Ok(())
    }
}

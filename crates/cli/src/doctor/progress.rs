//! How far the doctor is, on stderr: a live view on a terminal, else a line for each server that is done.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linetender::visible;

use super::check::Checked;
use super::settings::seconds;

/// How often the live view moves.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// How many servers the live view names.
const NAMED: usize = 8;

/// The width of a terminal that does not tell.
const WIDTH: usize = 80;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How far the doctor is with a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    Waits,
    Starts,
    Lists,
    Stops,
    Done,
}

/// How far it is with each.
#[derive(Clone, Debug)]
pub(super) struct Stages(Arc<Mutex<Vec<(String, Stage)>>>);

impl Stages {
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        Self(Arc::new(Mutex::new(names.map(|name| (name, Stage::Waits)).collect())))
    }

    pub(super) fn set(&self, number: usize, stage: Stage) {
        if let Some(at) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            at.1 = stage;
        }
    }

    /// What a person sees who waits, line by line.
    fn lines(&self, frame: usize) -> Vec<String> {
        let stages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = stages.iter().filter(|(_, stage)| *stage == Stage::Done).count();
        let spinner = SPINNER[frame % SPINNER.len()];
        let mut lines = vec![format!("{spinner} {done} of {} servers checked", stages.len())];
        let busy = |stage: Stage| match stage {
            Stage::Starts => Some("starting"),
            Stage::Lists => Some("reading its lists"),
            Stage::Stops => Some("stopping"),
            Stage::Waits | Stage::Done => None,
        };
        let at_work: Vec<_> = stages.iter().filter_map(|(name, stage)| Some((name, busy(*stage)?))).collect();
        lines.extend(at_work.iter().take(NAMED).map(|(name, words)| format!("  {name}: {words}")));
        if at_work.len() > NAMED {
            lines.push(format!("  and {} more", at_work.len() - NAMED));
        }
        lines
    }
}

/// Who watches.
pub(super) enum Progress {
    /// Nobody.
    Silent,
    /// A file, or a program.
    Plain,
    /// A person.
    Live {
        frame: usize,
        /// How many lines are on the screen.
        drawn: usize,
    },
}

impl Progress {
    pub(super) fn new(json: bool) -> Self {
        match std::io::stderr().is_terminal() {
            _ if json => Self::Silent,
            true => Self::Live { frame: 0, drawn: 0 },
            false => Self::Plain,
        }
    }

    /// Another moment has passed.
    pub(super) fn tick(&mut self, stages: &Stages) {
        if let Self::Live { frame, .. } = self {
            *frame = frame.wrapping_add(1);
            let lines = stages.lines(*frame);
            self.draw(&lines);
        }
    }

    /// A server is done.
    pub(super) fn done(&mut self, checked: &Checked) {
        if let Self::Plain = self {
            let took = seconds(Duration::from_millis(checked.start_millis));
            let line = match checked.findings.first().filter(|_| !checked.ok) {
                Some(error) => format!("linetender: {}: error: {}", checked.name, error.what),
                None => format!("linetender: {}: started in {took}", checked.name),
            };
            eprintln!("{}", visible::cut(&line, 400));
        }
    }

    /// All are done: the live view goes away.
    pub(super) fn end(&mut self) {
        self.draw(&[]);
    }

    fn draw(&mut self, lines: &[String]) {
        let Self::Live { drawn, .. } = self else { return };
        let width =
            terminal_size::terminal_size_of(std::io::stderr()).map_or(WIDTH, |(width, _)| width.0.into());
        let mut text = String::new();
        if *drawn > 0 {
            // To where the view begins, and everything below it is gone.
            text = format!("\u{1b}[{drawn}A\r\u{1b}[J");
        }
        for line in lines {
            // A line that wraps would be two.
            text.extend(visible::line(line).chars().take(width.saturating_sub(1)));
            text.push('\n');
        }
        *drawn = lines.len();
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{Stage, Stages};

    #[test]
    fn a_person_sees_what_is_at_work_and_not_too_much_of_it() {
        let stages = Stages::new((0..12).map(|number| format!("s{number}")));
        assert_eq!(stages.lines(0), ["⠋ 0 of 12 servers checked"]);
        stages.set(0, Stage::Done);
        stages.set(1, Stage::Lists);
        assert_eq!(stages.lines(1), ["⠙ 1 of 12 servers checked", "  s1: reading its lists"]);
        (2..12).for_each(|number| stages.set(number, Stage::Starts));
        let lines = stages.lines(2);
        assert_eq!((lines.len(), lines.last().unwrap().as_str()), (10, "  and 3 more"));
    }
}

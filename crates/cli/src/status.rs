//! `linetender status`: this user's running shims, and where their lines stand.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use linetender::holder::{Found, LineReport, Report, Said, Silence, look};

use crate::table::{Cell, Table};
use crate::{args, places};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

const HEAD: [&str; COLUMNS] =
    ["SERVER", "STATE", "GEN", "SINCE", "NEXT TRY", "BUDGET", "PID", "SHIM", "RUNS", "LAST CAUSE"];
const COLUMNS: usize = 10;

/// How most causes begin. In a column that is about servers it says nothing.
const OF_COURSE: [&str; 2] = ["the server process ", "the server "];

pub(crate) fn status(args: &args::Status) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let found = runtime.block_on(look(&places::sockets()));
    let printed = if args.json { print_json(&found) } else { print_table(&found) };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linetender: cannot print: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_json(found: &[Found]) -> io::Result<()> {
    let document = serde_json::json!({ "version": VERSION, "holders": found });
    writeln!(io::stdout().lock(), "{document:#}")
}

fn print_table(found: &[Found]) -> io::Result<()> {
    // Colours are for people: not for files, pipes, or those who do not want any.
    let mut out = anstream::stdout().lock();
    if found.is_empty() {
        return writeln!(out, "Nothing runs. To keep a server alive: linetender run -- COMMAND");
    }
    let mut table = Table::new(HEAD);
    for Found { pid, said } in found {
        match said {
            Said::Report(report) if report.lines.is_empty() => table.row(nothing_held(report)),
            Said::Report(report) => {
                for line in &report.lines {
                    table.row(held(report, line));
                }
            }
            Said::Silent(silence) => table.row(silent(*pid, *silence)),
        }
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    write!(out, "{}", table.fitted(width))
}

fn held(report: &Report, line: &LineReport) -> [Cell; COLUMNS] {
    let cause = line.cause.as_ref().map(|cause| cause.text.as_str()).unwrap_or_default();
    let cause = OF_COURSE.iter().find_map(|words| cause.strip_prefix(words)).unwrap_or(cause);
    let cause = line.health.as_deref().unwrap_or(cause);
    let next = line.next_try.as_deref().unwrap_or_default();
    [
        Cell::plain(&line.server),
        Cell::styled(&line.state, style(&line.state)),
        Cell::number(line.generation),
        Cell::number(age(line.since_millis)),
        Cell::number(next.strip_prefix("in ").unwrap_or(next)),
        Cell::number(format!("{}/{}", tokens(line.budget_millis), tokens(line.budget_most_millis))),
        Cell::number(line.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string())),
        Cell::number(report.holder.pid),
        Cell::number(age(report.holder.began_millis)),
        Cell::plain(cause),
    ]
}

/// A shim whose agent has not asked for anything yet.
fn nothing_held(report: &Report) -> [Cell; COLUMNS] {
    let mut cells = blank(report.holder.serves.as_deref().unwrap_or("-"), report.holder.pid);
    cells[1] = Cell::styled("idle", style("idle"));
    cells[8] = Cell::number(age(report.holder.began_millis));
    cells[9] = Cell::plain("its agent has not asked for anything yet");
    cells
}

fn silent(pid: u32, silence: Silence) -> [Cell; COLUMNS] {
    let (state, words) = match silence {
        Silence::Stopped => ("stopped", format!("its process is stopped; to go on: kill -CONT {pid}")),
        Silence::NoAnswer => ("silent", "it does not answer".to_owned()),
        Silence::NotUnderstood => ("unknown", "it is of another version of linetender".to_owned()),
    };
    let mut cells = blank("-", pid);
    cells[1] = Cell::styled(state, style(state));
    cells[9] = Cell::plain(&words);
    cells
}

fn blank(server: &str, shim: u32) -> [Cell; COLUMNS] {
    let mut cells = [const { Cell::none() }; COLUMNS];
    cells[0] = Cell::plain(server);
    cells[7] = Cell::number(shim);
    cells
}

/// What a state looks like: served, on its way, or in need of somebody.
fn style(state: &str) -> Style {
    let colour = match state {
        "up" => AnsiColor::Green,
        "dialing" | "suspect" | "draining" | "ending" | "waiting" => AnsiColor::Yellow,
        "parked" | "needs-auth" | "stopped" | "silent" | "unknown" => AnsiColor::Red,
        _ => return Style::new().dimmed(),
    };
    colour.on_default()
}

/// Thousandths of a token as tokens: `4`, `4.2`.
pub(crate) fn tokens(millis: u32) -> String {
    match (millis / 1000, millis % 1000 / 100) {
        (whole, 0) => whole.to_string(),
        (whole, tenths) => format!("{whole}.{tenths}"),
    }
}

/// How long ago, in at most two units.
fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, 1..10) => format!("{minutes}m {}s", seconds % 60),
        (0, 0, _) => format!("{minutes}m"),
        (0, ..) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::{age, tokens};

    #[test]
    fn ages_and_budgets_are_short() {
        let ages = [0, 59_999, 61_000, 600_000, 3_661_000, 90_000_000].map(age);
        assert_eq!(ages, ["0s", "59s", "1m 1s", "10m", "1h 1m", "1d 1h"]);
        assert_eq!([5000, 4200, 4250, 99, 0].map(tokens), ["5", "4.2", "4.2", "0", "0"]);
    }
}

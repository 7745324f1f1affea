//! `linetender status`: this user's running shims, and where their lines stand.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use linetender::visible;
use linetender_holder::holder::{Found, LineReport, Reply, Report, Silence, by_reason};
use linetender_holder::journal::LeftProcess;
use linetender_holder::processes;

use crate::table::{Cell, Table};
use crate::{args, holders};

/// How often `--watch` looks.
const AGAIN: Duration = Duration::from_secs(1);

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

const HEAD: [&str; COLUMNS] = [
    "SERVER",
    "STATE",
    "FOR",
    "STARTS",
    "NEXT TRY",
    "RESTARTS",
    "PID",
    "LINETENDER",
    "UPTIME",
    "LAST END",
    "LAST ERROR",
];
const COLUMNS: usize = 11;

/// The columns that a linetender without a line fills too.
const LINETENDER: usize = 7;
const UPTIME: usize = 8;
const CAUSE: usize = COLUMNS - 1;

/// How most causes begin. In a column that is about servers it says nothing.
const OF_COURSE: [&str; 2] = ["the server process ", "the server "];

pub(crate) fn status(args: &args::Status) -> ExitCode {
    holders::with_all(async |found| {
        if !args.watch {
            return holders::printed(print(args, found));
        }
        let mut again = tokio::time::interval(AGAIN);
        loop {
            again.tick().await;
            let found = holders::all().await;
            if let Err(error) = clear().and_then(|()| print(args, &found)) {
                return holders::printed(Err(error));
            }
        }
    })
}

fn print(args: &args::Status, found: &[Found]) -> io::Result<()> {
    if args.json { print_json(found) } else { print_table(found) }
}

/// Begins at the top again, where there is one.
fn clear() -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() { out.write_all(b"\x1b[H\x1b[2J") } else { Ok(()) }
}

fn print_json(found: &[Found]) -> io::Result<()> {
    let document = serde_json::json!({ "version": VERSION, "holders": found });
    writeln!(io::stdout().lock(), "{}", visible::json(&format!("{document:#}")))
}

fn print_table(found: &[Found]) -> io::Result<()> {
    // Colours are for people: not for files, pipes, or those who do not want any.
    let mut out = anstream::stdout().lock();
    if found.is_empty() {
        return writeln!(
            out,
            "No linetender process is running. To supervise a server: linetender run -- COMMAND"
        );
    }
    let table = table(found);
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    write!(out, "{}", table.fitted(width))?;
    for sentence in sharing(found, processes::memory).into_iter().chain(retries(found)).chain(unheard(found))
    {
        writeln!(out, "\n{sentence}")?;
    }
    Ok(())
}

/// Who shares what, and what that saves; and which servers are not shared although they were to be.
fn sharing(found: &[Found], memory: impl Fn(i32) -> u64) -> Vec<String> {
    let mut sentences = Vec::new();
    let reports = found.iter().filter_map(|found| match &found.reply {
        Reply::Report(report) => Some(report),
        Reply::Silent(_) => None,
    });
    for report in reports {
        for shared in report.shared.iter().filter(|shared| !shared.agents.is_empty()) {
            let pid = report.lines.iter().find(|line| line.server == shared.server).and_then(|line| line.pid);
            let once = pid.map_or(0, &memory) >> 20;
            let agents = shared.agents.len();
            let saved = once * (agents as u64).saturating_sub(1);
            let pids: Vec<_> = shared.agents.iter().map(ToString::to_string).collect();
            let mut sentence = format!(
                "{} is shared by {agents} of `linetender run --share` ({}): {once} MiB once, which saves about {saved} MiB.",
                shared.server,
                pids.join(", ")
            );
            if !shared.apart.is_empty() {
                let names = shared.apart.join(", ");
                let _ = write!(sentence, " Another server of the same command has other values of: {names}.");
            }
            sentences.push(sentence);
        }
        for line in &report.lines {
            sentences.extend(line.left.iter().map(|process| left(&line.server, process)));
            if let Some(why) = &line.not_shared {
                let (server, pid) = (&line.server, report.holder.pid);
                sentences.push(format!("{server} (linetender {pid}) is not shared: {why}."));
            }
        }
    }
    sentences.iter().map(|sentence| visible::line(sentence).into_owned()).collect()
}

/// What is said of a process that left a server's tree on purpose.
pub(crate) fn left(server: &str, process: &LeftProcess) -> String {
    let LeftProcess { pid, name, memory, command } = process;
    let memory = memory.div_ceil(1 << 20);
    format!(
        "{name} ({pid}, {memory} MiB) left {server}'s process tree on purpose and lives on; `{command}` ends it."
    )
}

/// Which calls linetender sent again by itself, and why.
fn retries(found: &[Found]) -> Vec<String> {
    let reports = found.iter().filter_map(|found| match &found.reply {
        Reply::Report(report) => Some(report),
        Reply::Silent(_) => None,
    });
    let servers = reports.flat_map(|report| report.servers.iter().map(|server| (report.holder.pid, server)));
    let retried = servers.filter(|(_, server)| !server.retries.is_empty());
    let sentences = retried.map(|(pid, server)| {
        let name = &server.server;
        format!("{name} (linetender {pid}): calls sent again: {}.", by_reason(&server.retries))
    });
    sentences.map(|sentence| visible::line(&sentence).into_owned()).collect()
}

/// Silence of a server at a URL that says nothing yet, in milliseconds.
const HEARD_LATELY: u64 = 60_000;

/// Servers at a URL that no agent has used for a while, and when they were last heard: linetender does not ask whether they are still there.
fn unheard(found: &[Found]) -> Vec<String> {
    let reports = found.iter().filter_map(|found| match &found.reply {
        Reply::Report(report) => Some(report),
        Reply::Silent(_) => None,
    });
    let lines = reports.flat_map(|report| report.lines.iter().map(|line| (report.holder.pid, line)));
    let remote =
        lines.filter(|(_, line)| line.pid.is_none() && line.keeper.is_none() && line.health.is_none());
    let sentences = remote.filter_map(|(pid, line)| {
        let heard = line.heard_millis.filter(|heard| *heard >= HEARD_LATELY)?;
        let server = &line.server;
        Some(format!(
            "{server} (linetender {pid}) was last heard {} ago; it is not asked while nobody uses it.",
            age(heard)
        ))
    });
    sentences.map(|sentence| visible::line(&sentence).into_owned()).collect()
}

fn table(found: &[Found]) -> Table<COLUMNS> {
    let mut table = Table::new(HEAD);
    for Found { pid, reply } in found {
        match reply {
            Reply::Report(report) if report.lines.is_empty() => table.row(nothing_held(report)),
            Reply::Report(report) => {
                for line in &report.lines {
                    table.row(held(report, line));
                }
            }
            Reply::Silent(silence) => table.row(silent(*pid, *silence)),
        }
    }
    table
}

fn held(report: &Report, line: &LineReport) -> [Cell; COLUMNS] {
    let cause = line.cause.as_ref().map(|cause| cause.text.as_str()).unwrap_or_default();
    let cause = OF_COURSE.iter().find_map(|words| cause.strip_prefix(words)).unwrap_or(cause);
    let cause = line.health.as_deref().unwrap_or(cause);
    let next = line.next_try.as_deref().unwrap_or_default();
    [
        Cell::plain(&line.server),
        Cell::styled(&line.state, style(&line.state)),
        Cell::number(age(line.since_millis)),
        Cell::number(line.generation),
        Cell::number(next.strip_prefix("in ").unwrap_or(next)),
        Cell::number(budget(line)),
        Cell::number(match (line.pid, line.keeper) {
            (Some(pid), _) => pid.to_string(),
            (None, Some(_)) => "shared".to_owned(),
            (None, None) => "-".to_owned(),
        }),
        Cell::number(report.holder.pid),
        Cell::number(age(report.holder.began_millis)),
        Cell::number(line.ended_millis.map(|millis| format!("{} ago", age(millis))).unwrap_or_default()),
        Cell::plain(cause),
    ]
}

/// The bucket that is the emptier one: it is what parks a server first.
fn budget(line: &LineReport) -> String {
    let of = |left, most| format!("{}/{}", tokens(left), tokens(most));
    let share = |left: u32, most: u32| f64::from(left) / f64::from(most.max(1));
    let (left, most) = (line.useful_millis, line.useful_most_millis);
    if most > 0 && share(left, most) < share(line.budget_millis, line.budget_most_millis) {
        format!("{} after service", of(left, most))
    } else {
        of(line.budget_millis, line.budget_most_millis)
    }
}

/// A shim whose agent has not asked for anything yet.
fn nothing_held(report: &Report) -> [Cell; COLUMNS] {
    let mut cells = blank(report.holder.serves.as_deref().unwrap_or("-"), report.holder.pid);
    cells[1] = Cell::styled("idle", style("idle"));
    cells[UPTIME] = Cell::number(age(report.holder.began_millis));
    cells[CAUSE] = Cell::plain("no request from the agent yet");
    cells
}

fn silent(pid: u32, silence: Silence) -> [Cell; COLUMNS] {
    let (state, words) = match silence {
        Silence::Stopped => {
            ("stopped", format!("process is stopped (SIGSTOP); to resume it: kill -CONT {pid}"))
        }
        Silence::NoAnswer => ("silent", "no answer within 1 s".to_owned()),
        Silence::NotUnderstood => ("unknown", "runs another version of linetender".to_owned()),
    };
    let mut cells = blank("-", pid);
    cells[1] = Cell::styled(state, style(state));
    cells[CAUSE] = Cell::plain(&words);
    cells
}

fn blank(server: &str, pid: u32) -> [Cell; COLUMNS] {
    let mut cells = [const { Cell::none() }; COLUMNS];
    cells[0] = Cell::plain(server);
    cells[LINETENDER] = Cell::number(pid);
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
pub(crate) fn age(millis: u64) -> String {
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
    use super::{age, table, tokens, unheard};
    use linetender_holder::holder::{Found, Reply, Silence};
    use serde_json::json;

    #[test]
    fn the_table_says_what_stands_where_and_when_it_last_failed() {
        let report = json!({
            "version": 1,
            "holder": { "pid": 4000, "door": "serve", "version": "1", "began": "-", "began_millis": 7_300_000 },
            "lines": [
                { "server": "git", "state": "up", "generation": 3, "since": "-", "since_millis": 61_000,
                  "cause": { "text": "the server process was killed by signal 9 (SIGKILL)", "leaves": ["exit"], "planned": false },
                  "ended": "-", "ended_millis": 62_000, "budget_millis": 4000, "budget_most_millis": 5000, "pid": 4001 },
                { "server": "search", "state": "parked", "generation": 7, "since": "-", "since_millis": 5000,
                  "cause": { "text": "the server returned HTTP 502", "leaves": ["transport"], "planned": false },
                  "ended": "-", "ended_millis": 5000, "budget_millis": 0, "budget_most_millis": 5000, "next_try": "in 22.0 s" },
            ],
        });
        let report = Reply::Report(serde_json::from_value(report).unwrap());
        let found =
            [Found { pid: 4000, reply: report }, Found { pid: 4002, reply: Reply::Silent(Silence::Stopped) }];
        insta::assert_snapshot!(anstream::adapter::strip_str(&table(&found).fitted(None)).to_string());
    }

    #[test]
    fn h39_a_server_somewhere_else_that_nobody_used_for_a_while_is_said_when_it_was_last_heard() {
        let line = |server: &str, more: serde_json::Value| {
            let mut line = json!({ "server": server, "state": "up", "generation": 1, "since": "-", "since_millis": 1,
                "budget_millis": 1, "budget_most_millis": 1 });
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            line
        };
        let report = json!({
            "version": 1,
            "holder": { "pid": 4000, "door": "run", "version": "1", "began": "-", "began_millis": 1 },
            "lines": [
                line("remote", json!({ "heard_millis": 7_300_000 })),
                line("lately", json!({ "heard_millis": 59_000 })),
                line("command", json!({ "heard_millis": 7_300_000, "pid": 4001 })),
                line("down", json!({})),
            ],
        });
        let found = [Found { pid: 4000, reply: Reply::Report(serde_json::from_value(report).unwrap()) }];
        assert_eq!(
            unheard(&found),
            ["remote (linetender 4000) was last heard 2h 1m ago; it is not asked while nobody uses it."]
        );
    }

    #[test]
    fn x12_what_a_process_says_of_itself_is_no_command_to_the_terminal() {
        let report = json!({
            "version": 1,
            "holder": { "pid": 4000, "door": "serve", "version": "1", "began": "-", "began_millis": 1 },
            "lines": [{ "server": "a\u{1b}[31m", "state": "up\u{9b}5m", "generation": 1, "since": "-", "since_millis": 1,
                "cause": { "text": "b\u{7}\u{202e}", "leaves": [], "planned": false }, "next_try": "\u{1b}[2J",
                "budget_millis": 1, "budget_most_millis": 1 }],
        });
        let found = [Found { pid: 4000, reply: Reply::Report(serde_json::from_value(report).unwrap()) }];
        let shown = anstream::adapter::strip_str(&table(&found).fitted(None)).to_string();
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}']), "{shown:?}");
        assert!(shown.contains(r"a\u{1b}[31m") && shown.contains(r"b\u{7}\u{202e}"), "{shown:?}");
    }

    #[test]
    fn ages_and_budgets_are_short() {
        let ages = [0, 59_999, 61_000, 600_000, 3_661_000, 90_000_000].map(age);
        assert_eq!(ages, ["0s", "59s", "1m 1s", "10m", "1h 1m", "1d 1h"]);
        assert_eq!([5000, 4200, 4250, 99, 0].map(tokens), ["5", "4.2", "4.2", "0", "0"]);
    }
}

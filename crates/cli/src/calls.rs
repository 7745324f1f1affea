//! `linetender calls`: what is under way, and what becomes of it, live.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use linetender::visible;
use linetender_holder::holder::{Ask, CallReport, Found, UnderWayReport, Watching, ask_holder, watch_holder};
use tokio::task::JoinSet;

use crate::table::{Cell, Table};
use crate::{args, holders, places};

const HEAD: [&str; 7] = ["SERVER", "TOOL OR METHOD", "FOR", "STAGE", "CONNECTION", "CALLER", "LINETENDER"];

/// How often new linetender processes are looked for while calls are followed.
const LOOK: Duration = Duration::from_secs(2);

/// The most characters of a line.
const LONGEST: usize = 1024;

pub(crate) fn calls(args: &args::Calls) -> ExitCode {
    if args.follow {
        holders::with_all(async |found| holders::printed(follow(args, found).await))
    } else {
        holders::with_all(async |found| holders::printed(list(args, found).await))
    }
}

async fn list(args: &args::Calls, found: &[Found]) -> io::Result<()> {
    let mut rows = Vec::new();
    for Found { pid, .. } in found {
        match ask_holder::<Vec<UnderWayReport>>(&places::sockets(), *pid, &Ask::Calls).await {
            Ok(calls) => rows.extend(calls.into_iter().map(|call| (*pid, call))),
            Err(error) => eprintln!("linetender: {pid}: {}", visible::line(&error.to_string())),
        }
    }
    rows.retain(|(_, call)| args.server.as_ref().is_none_or(|server| *server == call.server));
    rows.sort_by_key(|(_, call)| std::cmp::Reverse(call.millis));
    if args.json {
        let calls: Vec<_> =
            rows.iter().map(|(pid, call)| serde_json::json!({ "pid": pid, "call": call })).collect();
        return writeln!(io::stdout(), "{}", visible::json(&format!("{:#}", serde_json::Value::from(calls))));
    }
    let mut out = anstream::stdout().lock();
    if rows.is_empty() {
        return writeln!(out, "No calls are in progress. To watch calls as they end: linetender calls -f");
    }
    let mut table = Table::new(HEAD);
    for (pid, call) in &rows {
        let generation =
            call.generation.map_or_else(|| "-".to_owned(), |generation| format!("#{generation}"));
        table.row([
            Cell::plain(&call.server),
            Cell::plain(call.tool.as_deref().unwrap_or(&call.method)),
            Cell::number(millis(call.millis)),
            Cell::plain(&call.stage),
            Cell::number(generation),
            Cell::plain(call.principal.as_deref().unwrap_or("-")),
            Cell::number(pid),
        ]);
    }
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    write!(out, "{}", table.fitted(width))
}

/// Follows every process that is there, and those that come.
async fn follow(args: &args::Calls, found: &[Found]) -> io::Result<()> {
    let mut watched = JoinSet::new();
    let (mut known, mut left): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut look = tokio::time::interval(LOOK);
    let mut now: Vec<u32> = found.iter().map(|found| found.pid).collect();
    if now.is_empty() {
        eprintln!("linetender: no linetender process is running yet; waiting for one");
    }
    loop {
        for pid in now.drain(..).filter(|pid| !known.contains(pid)).collect::<Vec<_>>() {
            if let Ok(watching) = watch_holder(&places::sockets(), pid, &Ask::WatchCalls).await {
                // It lives: so it was this command that could not keep up, or was stopped.
                if left.contains(&pid) {
                    left.retain(|other| *other != pid);
                    eprintln!(
                        "linetender: {pid}: this command read too slowly and was disconnected; calls in between are missing"
                    );
                }
                known.push(pid);
                watched.spawn(next(pid, watching));
            }
        }
        tokio::select! {
            Some(told) = watched.join_next() => {
                let Ok((pid, watching, line)) = told else { continue };
                match line {
                    Ok(Some(line)) => {
                        print(args, pid, &line)?;
                        watched.spawn(next(pid, watching));
                    }
                    Ok(None) => {
                        known.retain(|other| *other != pid);
                        left.push(pid);
                    }
                    Err(error) => {
                        known.retain(|other| *other != pid);
                        eprintln!("linetender: {pid}: {}", visible::line(&error.to_string()));
                    }
                }
            }
            _ = look.tick() => now = holders::all().await.iter().map(|found| found.pid).collect(),
        }
    }
}

/// The next line of one process. It is a task of its own, since what a dropped read has read is lost.
async fn next(pid: u32, mut watching: Watching) -> (u32, Watching, io::Result<Option<String>>) {
    let line = watching.next().await;
    (pid, watching, line)
}

fn print(args: &args::Calls, pid: u32, line: &str) -> io::Result<()> {
    let Ok(call) = serde_json::from_str::<CallReport>(line) else {
        eprintln!(
            "linetender: {pid}: calls came faster than they could be told: {}",
            visible::cut(line, LONGEST)
        );
        return Ok(());
    };
    if args.server.as_ref().is_some_and(|server| *server != call.server) {
        return Ok(());
    }
    if args.json {
        return writeln!(io::stdout(), "{}", visible::json(line));
    }
    let mut out = anstream::stdout().lock();
    let style = style(&call.verdict);
    let words = visible::cut(&words(&call), LONGEST);
    writeln!(out, "{}  {style}{:<12}{style:#}  {words}", time(&call.at), call.verdict)
}

/// The time of day, of an RFC 3339 time.
fn time(at: &str) -> &str {
    at.get(11..23).unwrap_or(at)
}

fn words(call: &CallReport) -> String {
    let what = call.tool.as_deref().unwrap_or(&call.method);
    let mut words = format!("{} {what}", call.server);
    let total = call.queue_micros + call.line_micros + call.server_micros;
    let _ = write!(words, "  {}", micros(total));
    let waited = call.queue_micros + call.line_micros;
    if waited > 1000 {
        let _ = write!(words, " ({} of it waiting)", micros(waited));
    }
    if let Some(detail) = &call.detail {
        let _ = write!(words, "  [{detail}]");
    }
    if let Some(code) = call.code {
        let _ = write!(words, "  error {code}");
    }
    if call.attempts > 1 {
        let _ = write!(words, "  sent {} times ({})", call.attempts, call.retried.join(", "));
    }
    if let Some(generation) = call.generation {
        let _ = write!(words, "  connection #{generation}");
    }
    if let Some(principal) = &call.principal {
        let _ = write!(words, "  for {principal}");
    }
    words
}

/// What a verdict looks like.
pub(crate) fn style(verdict: &str) -> Style {
    match verdict {
        "answered" => AnsiColor::Green.on_default(),
        "tool error" | "cancelled" => AnsiColor::Yellow.on_default(),
        "unknown" => AnsiColor::Red.on_default().bold(),
        _ => AnsiColor::Red.on_default(),
    }
}

fn micros(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => millis(micros / 1000),
    }
}

pub(crate) fn millis(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::{micros, millis, words};
    use serde_json::json;

    #[test]
    fn a_call_is_told_on_one_line_with_its_verdict_and_why() {
        let call = json!({
            "at": "2026-11-17T05:00:00.123Z", "number": 7, "server": "git", "method": "tools/call", "tool": "commit",
            "verdict": "unknown", "detail": "connection-lost", "code": 7005, "generation": 3, "attempts": 1,
            "bytes_sent": 1, "bytes_received": 0, "queue_micros": 0, "line_micros": 2_000_000, "server_micros": 1_234_000,
            "principal": "uid:1000",
        });
        let words = words(&serde_json::from_value(call).unwrap());
        assert_eq!(
            words,
            "git commit  3.2 s (2.0 s of it waiting)  [connection-lost]  error 7005  connection #3  for uid:1000"
        );
        assert_eq!([micros(7), micros(1700), micros(17_000)], ["7 µs", "1.7 ms", "17 ms"]);
        assert_eq!([millis(1700), millis(61_000)], ["1.7 s", "1 min 1 s"]);
    }
}

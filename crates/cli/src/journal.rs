//! `linetender journal`: what happened, one line each.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use linetender::visible;
use linetender_holder::holder::Verdicts;
use linetender_holder::journal::{Entry, Reason, What, last};

use crate::follow::follow;
use crate::{args, places};

/// How much of a command or of stderr's last line is shown.
const SHOWN: usize = 120;

/// The most characters of a line.
const LONGEST: usize = 4096;

pub(crate) fn journal(args: &args::Journal) -> ExitCode {
    match print(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linetender: cannot read the journal: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all of it could be read.
fn print(args: &args::Journal) -> io::Result<bool> {
    if args.follow {
        return followed(args);
    }
    let mut whole = true;
    let mut entries = Vec::new();
    let mut unread = 0;
    let wanted = |entry: &Entry| is_wanted(args, entry);
    let places = places::journals();
    for path in &places {
        match last(path, args.last, wanted) {
            Ok(read) => {
                entries.extend(read.entries);
                unread += read.unread;
            }
            Err(error) => {
                whole = false;
                eprintln!("linetender: cannot read {}: {error}", path.display());
            }
        }
    }
    // Times of one length and one zone sort as they are spelt.
    entries.sort_by(|(_, one), (_, other)| one.at.cmp(&other.at));
    let mut out = io::stdout().lock();
    for (line, entry) in entries.iter().skip(entries.len().saturating_sub(args.last)) {
        writeln!(out, "{}", shown(args, line, entry))?;
    }
    if let (true, false, Some(server)) = (entries.is_empty(), args.json, &args.server) {
        let server = visible::line(server);
        writeln!(out, "No entries for server {server}. Omit --server to show all servers.")?;
    } else if entries.is_empty() && whole && !args.json {
        writeln!(out, "The journal is empty. `linetender run` and `linetender serve` write to:")?;
        for path in places {
            writeln!(out, "  {}", path.display())?;
        }
    }
    if unread > 0 {
        eprintln!("linetender: {unread} journal lines are not readable");
    }
    Ok(whole)
}

/// Prints the last entries, and those that come.
fn followed(args: &args::Journal) -> io::Result<bool> {
    follow(
        &places::journals(),
        args.last,
        |entry| is_wanted(args, entry),
        |line, entry| {
            let mut out = io::stdout().lock();
            writeln!(out, "{}", shown(args, line, entry))?;
            out.flush()
        },
    )
}

fn is_wanted(args: &args::Journal, entry: &Entry) -> bool {
    match (&args.server, &entry.what) {
        (None, _) => true,
        (
            Some(name),
            What::State { server, .. }
            | What::Retry { server, .. }
            | What::Ended { server, .. }
            | What::Left { server, .. }
            | What::Container { server, .. },
        ) => server == name,
        (Some(_), _) => false,
    }
}

/// An entry on one line.
fn shown(args: &args::Journal, line: &str, entry: &Entry) -> String {
    if args.json {
        return visible::json(line).into_owned();
    }
    let line = format!("{}  {:>7}  {}", entry.at, entry.holder, words(&entry.what));
    // What others wrote into it stays on this line.
    visible::cut(&line, LONGEST)
}

/// An entry as a person reads it.
fn words(what: &What) -> String {
    match what {
        What::Begin { version, argv } => format!("started ({version}): {}", short(argv)),
        What::State {
            server,
            generation,
            state,
            cause,
            budget_millis,
            useful_millis,
            next_try,
            calls,
            ..
        } => {
            let mut words = format!("{server} #{generation} {state}");
            // A death is told where it happened, and the next try where somebody has to wait for it.
            let (why, when) = match state.as_str() {
                "dialing" | "up" | "suspect" | "closed" => (None, None),
                "waiting" => (None, next_try.as_ref()),
                "ending" | "draining" => (cause.as_ref(), None),
                _ => (cause.as_ref(), next_try.as_ref()),
            };
            if let Some(Reason { text, stderr, .. }) = why {
                let _ = write!(words, ": {text}");
                if let Some(line) = stderr.as_deref().and_then(|stderr| stderr.trim_end().lines().last()) {
                    let _ = write!(words, " (stderr: {})", short(line));
                }
            }
            if let Some(next) = when {
                let _ = write!(words, "; next try {next}");
            }
            let _ = write!(words, "; restarts left {}", crate::status::tokens(*budget_millis));
            if let Some(useful) = useful_millis {
                let _ = write!(words, ", {} after service", crate::status::tokens(*useful));
            }
            // What went well needs no words.
            let odd = calls
                .iter()
                .flat_map(Verdicts::named)
                .filter(|(name, count)| *name != "answered" && *count > 0);
            for (name, count) in odd {
                let _ = write!(words, "; {count} calls {name}");
            }
            words
        }
        What::Retry { server, method, tool, reason, from, to, attempt } => {
            let what = tool.as_deref().unwrap_or(method);
            format!("{server} #{to} call sent again: {what} (attempt {attempt}, after #{from}: {reason})")
        }
        What::Ended { server, pid, name } => format!("{server} left {name} ({pid}) behind: ended it"),
        What::Left { server, process } => crate::status::left(server, process),
        What::Container { server, container, reason: None } => {
            format!(
                "{server}: container {container} of an earlier start may still run: ended it before the next start"
            )
        }
        What::Container { server, container, reason: Some(reason) } => {
            format!("{server}: container {container} may still run, and could not be ended: {reason}")
        }
        What::AuditHead { file, seq, hash, synced } => {
            format!("audit {file}: line {seq} was on disk at {synced} (SHA-256 {})", short(hash))
        }
        What::Gap { entries, why } => format!("{entries} entries missing: {why}"),
        What::End { why } => format!("exited: {why}"),
        other => format!("{other:?}"),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

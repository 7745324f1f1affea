//! `linetender logs`: what a server wrote to stderr. Where it comes from (the journal) and how it is shown are apart: other sources
//! show their lines the same way.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::process::ExitCode;

use linetender::visible;
use linetender_holder::journal::{Entry, What, last};

use crate::follow::follow;
use crate::{args, places};

/// The most characters of a line.
const LONGEST: usize = 4096;

/// How many ends are kept in mind, so that none is shown twice.
const KEPT: usize = 256;

/// What one process of a server wrote at its end.
pub(crate) struct Words<'a> {
    pub(crate) at: &'a str,
    pub(crate) server: &'a str,
    pub(crate) holder: u32,
    pub(crate) generation: u64,
    pub(crate) text: &'a str,
}

/// Shows what a server wrote, line by line.
pub(crate) fn show(out: &mut impl io::Write, words: &Words<'_>, json: bool) -> io::Result<()> {
    let Words { at, server, holder, generation, text } = words;
    for line in text.trim_end().lines() {
        if json {
            let object = serde_json::json!({ "at": at, "server": server, "holder": holder, "generation": generation, "line": line });
            writeln!(out, "{}", visible::json(&object.to_string()))?;
        } else {
            let line = format!("{at}  {holder:>7}  {server} #{generation}  {line}");
            writeln!(out, "{}", visible::cut(&line, LONGEST))?;
        }
    }
    out.flush()
}

pub(crate) fn logs(args: &args::Logs) -> ExitCode {
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

fn print(args: &args::Logs) -> io::Result<bool> {
    let places = places::journals();
    let mut shown = Shown::default();
    let mut out = io::stdout().lock();
    if args.follow {
        return follow(
            &places,
            args.last,
            |entry| of(args, entry).is_some(),
            |_, entry| shown.show(&mut out, args, entry),
        );
    }
    let (mut whole, mut entries) = (true, Vec::new());
    for path in &places {
        let mut seen = Shown::default();
        match last(path, args.last, |entry| of(args, entry).is_some_and(|words| seen.is_new(&words))) {
            Ok(read) => entries.extend(read.entries),
            Err(error) => {
                whole = false;
                eprintln!("linetender: cannot read {}: {error}", path.display());
            }
        }
    }
    entries.sort_by(|(_, one), (_, other)| one.at.cmp(&other.at));
    for (_, entry) in entries.iter().skip(entries.len().saturating_sub(args.last)) {
        shown.show(&mut out, args, entry)?;
    }
    if entries.is_empty() && whole && !args.json {
        let server = visible::line(&args.server);
        writeln!(
            out,
            "The journal has no stderr of server {server}. It is kept when a server ends by itself."
        )?;
    }
    Ok(whole)
}

/// What a server wrote before the end that this entry tells of, if it does.
fn of<'a>(args: &args::Logs, entry: &'a Entry) -> Option<Words<'a>> {
    let What::State { server, generation, state, cause: Some(cause), .. } = &entry.what else { return None };
    // In the other states the number is that of the next process already.
    let is_end = matches!(state.as_str(), "ending" | "waiting" | "parked" | "needs-auth" | "closed");
    let text =
        cause.stderr.as_deref().filter(|text| is_end && *server == args.server && !text.trim().is_empty())?;
    Some(Words { at: &entry.at, server, holder: entry.holder, generation: *generation, text })
}

/// Which ends were shown: several entries tell of one.
#[derive(Default)]
struct Shown(VecDeque<(u32, u64)>);

impl Shown {
    fn is_new(&mut self, words: &Words<'_>) -> bool {
        let end = (words.holder, words.generation);
        let is_new = !self.0.contains(&end);
        if is_new {
            self.0.push_back(end);
            if self.0.len() > KEPT {
                self.0.pop_front();
            }
        }
        is_new
    }

    fn show(&mut self, out: &mut impl io::Write, args: &args::Logs, entry: &Entry) -> io::Result<()> {
        match of(args, entry) {
            Some(words) if self.is_new(&words) => show(out, &words, args.json),
            _ => Ok(()),
        }
    }
}

//! `linetender why`: the story of a server's last failures, and what to do.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anstyle::Style;
use linetender::visible;
use linetender_holder::holder::{Found, LineReport, Reply, Silence, look};
use linetender_holder::journal::{Entry, What, in_order, last};
use linetender_holder::story::{Story, wall_clock};

use crate::{args, places};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

/// How many of a server's last entries a story is made of.
const ENTRIES: usize = 4000;

/// How many names are kept in mind, of a journal that somebody else may have filled.
const NAMES: usize = 1000;

/// The most columns of a line: longer ones read badly.
const WIDEST: usize = 100;

/// What is not in service, or in doubt.
const DOWN: u8 = 1;

/// What was asked cannot be told.
const WRONG: u8 = 2;

pub(crate) fn why(args: &args::Why) -> ExitCode {
    let known = match Known::find(args.server.as_deref()) {
        Ok(known) => known,
        Err(error) => {
            eprintln!("linetender: {error}");
            return ExitCode::from(WRONG);
        }
    };
    let told = match &args.server {
        Some(name) if known.has(name) => known.tell(name, args),
        Some(name) => {
            eprintln!("linetender: {}", known.no_such(name));
            return ExitCode::from(WRONG);
        }
        None => match known.worst() {
            Some(name) => Known::find(Some(&name)).and_then(|known| known.tell(&name, args)),
            None => known.list(args.json),
        },
    };
    match told {
        Ok(code) => code,
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linetender: {error}");
            ExitCode::from(WRONG)
        }
    }
}

/// What running processes and the journal know.
struct Known {
    live: Vec<LineReport>,
    /// Processes that run and say nothing.
    silent: Vec<(u32, Silence)>,
    /// Each server of the journal, and whether its last end was a failure.
    names: BTreeMap<String, Last>,
    /// The entries of the one that was asked for, oldest first.
    entries: Vec<Entry>,
}

/// What the journal says last of a server.
#[derive(Default)]
struct Last {
    state: String,
    at: String,
}

impl Known {
    fn find(server: Option<&str>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let refused = |path: &Path, why: &io::Error| {
            eprintln!("linetender: ignored {}: {why}", visible::line(&path.display().to_string()));
        };
        let found = runtime.block_on(look(&places::sockets(), refused));
        let silent = found.iter().filter_map(|found| match found.reply {
            Reply::Silent(why) => Some((found.pid, why)),
            Reply::Report(_) => None,
        });
        let silent = silent.collect();
        let mut known = Self { live: held(found), silent, names: BTreeMap::new(), entries: Vec::new() };
        let mut entries = Vec::new();
        for path in places::journals() {
            let names = &mut known.names;
            let wanted = |entry: &Entry| note(names, entry, server);
            let read = last(&path, ENTRIES, wanted).map_err(|error| {
                let path = path.display().to_string();
                io::Error::new(error.kind(), format!("cannot read {}: {error}", visible::line(&path)))
            })?;
            entries.extend(read.entries.into_iter().map(|(_, entry)| (entry.holder, entry)));
        }
        known.entries = in_order(entries);
        Ok(known)
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains_key(name) || self.live.iter().any(|line| line.server == name)
    }

    /// Where a server of this name stands: of several processes that hold one, where it is worst.
    fn live(&self, name: &str) -> Option<&LineReport> {
        self.live.iter().filter(|line| line.server == name).max_by_key(|line| badness(line))
    }

    fn tell(&self, name: &str, args: &args::Why) -> io::Result<ExitCode> {
        let live = self.live(name);
        let story = Story::of(name, &self.entries, live, wall_clock(), args.last);
        let silence = self.silent.iter().find(|(pid, _)| story.last_holder() == Some(*pid));
        let story = match silence {
            Some((_, why)) => story.held_in_silence(*why),
            None => story,
        };
        if args.json {
            let document = serde_json::json!({ "version": VERSION, "story": story });
            writeln!(io::stdout().lock(), "{}", visible::json(&format!("{document:#}")))?;
        } else {
            let mut out = anstream::stdout().lock();
            let bold = Style::new().bold();
            // Whoever pipes it somewhere wants to search it; a terminal breaks lines between words.
            let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
            let lines = width.map_or_else(|| story.lines(), |width| story.wrapped(width.min(WIDEST)));
            for line in lines {
                // Heads stand alone at the margin, behind an empty line.
                if line.starts_with("What ") {
                    writeln!(out, "{bold}{line}{bold:#}")?;
                } else {
                    writeln!(out, "{line}")?;
                }
            }
        }
        let down = silence.is_some() || live.is_some_and(|line| badness(line) >= Badness::Restarting);
        Ok(if down { ExitCode::from(DOWN) } else { ExitCode::SUCCESS })
    }

    /// The server that needs somebody most; the only one, if there is one only.
    fn worst(&self) -> Option<String> {
        let worst = self.live.iter().max_by_key(|line| badness(line));
        if let Some(line) = worst.filter(|line| badness(line) > Badness::Fine) {
            return Some(line.server.clone());
        }
        let mut names = self.all();
        names.dedup();
        if names.len() == 1 { names.pop() } else { None }
    }

    /// Every name, those of running servers if there are any.
    fn all(&self) -> Vec<String> {
        let mut names: Vec<String> = self.live.iter().map(|line| line.server.clone()).collect();
        if names.is_empty() {
            names = self.names.keys().cloned().collect();
        }
        names.sort();
        names.dedup();
        names
    }

    fn list(&self, json: bool) -> io::Result<ExitCode> {
        let names = self.all();
        let mut out = io::stdout().lock();
        if json {
            let document = serde_json::json!({ "version": VERSION, "servers": names });
            writeln!(out, "{}", visible::json(&format!("{document:#}")))?;
            return Ok(ExitCode::SUCCESS);
        }
        if names.is_empty() {
            writeln!(out, "No server is known: no linetender process is running, and the journal is empty.")?;
            writeln!(out, "To supervise a server: linetender run -- COMMAND")?;
            return Ok(ExitCode::SUCCESS);
        }
        let head = if !self.live.is_empty() {
            "All servers are in service:"
        } else if self.silent.is_empty() {
            "No linetender process is running. The journal knows these servers:"
        } else {
            "No linetender process answers (`linetender status` lists those that run). The journal knows these servers:"
        };
        writeln!(out, "{head}")?;
        for name in &names {
            let (state, when) = match (self.live(name), self.names.get(name)) {
                (Some(line), _) => (line.state.as_str(), String::new()),
                (None, Some(last)) => (last.state.as_str(), format!(", last entry {}", last.at)),
                (None, None) => ("unknown", String::new()),
            };
            let line = format!("  {name} ({state}{when})");
            writeln!(out, "{}", visible::cut(&line, 200))?;
        }
        writeln!(out, "The last failures of one of them: linetender why NAME")?;
        Ok(ExitCode::SUCCESS)
    }

    fn no_such(&self, name: &str) -> String {
        let mut names = self.all();
        names.extend(self.names.keys().cloned());
        names.sort();
        names.dedup();
        let shown = |name: &str| visible::cut(name, 100);
        let near = names
            .iter()
            .map(|other| (strsim::osa_distance(name, other), other))
            .filter(|(slips, other)| *slips <= 1 + other.chars().count() / 4)
            .min_by_key(|(slips, _)| *slips);
        let meant = near.map(|(_, other)| format!("; did you mean `{}`?", shown(other))).unwrap_or_default();
        if names.is_empty() {
            return format!(
                "no server `{}` is known: no linetender process is running, and the journal is empty",
                shown(name)
            );
        }
        let all: Vec<_> = names.iter().take(30).map(|name| shown(name)).collect();
        format!("no server `{}` is known{meant}\nKnown servers: {}", shown(name), all.join(", "))
    }
}

fn held(found: Vec<Found>) -> Vec<LineReport> {
    let lines = found.into_iter().map(|found| match found.reply {
        Reply::Report(report) => report.lines,
        Reply::Silent(_) => Vec::new(),
    });
    lines.flatten().collect()
}

/// Notes the name of an entry's server, and says whether it is the wanted one.
fn note(names: &mut BTreeMap<String, Last>, entry: &Entry, wanted: Option<&str>) -> bool {
    let What::State { server, state, .. } = &entry.what else { return false };
    if names.len() < NAMES || names.contains_key(server) {
        names.insert(server.clone(), Last { state: state.clone(), at: entry.at.clone() });
    }
    wanted == Some(server.as_str())
}

/// How much somebody is needed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Badness {
    Fine,
    Doubtful,
    Restarting,
    Stuck,
}

fn badness(line: &LineReport) -> Badness {
    match line.state.as_str() {
        "parked" | "needs-auth" => Badness::Stuck,
        "waiting" | "ending" => Badness::Restarting,
        "dialing" if line.cause.is_some() => Badness::Restarting,
        "suspect" | "draining" => Badness::Doubtful,
        _ if line.health.is_some() => Badness::Doubtful,
        _ => Badness::Fine,
    }
}

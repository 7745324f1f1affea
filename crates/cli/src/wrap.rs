//! `linetender wrap FILE`: an agent's configuration, rewritten so that its servers go through linetender, and back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linetender::visible;

mod agents;
mod args;
mod before;
mod credential;
mod edit;
mod entry;
mod error;
mod file;
mod json;
mod judge;
mod list;
mod ours;
mod plan;
mod program;
mod rewrite;
mod shared;
mod show;
#[cfg(test)]
mod tests;
mod toml;
mod tree;
mod undo;
mod unwrap;
mod url;
mod yaml;

use crate::{keys, share};
pub(crate) use args::Wrap;
use entry::Entry;
use error::Error;
use file::Config;
use judge::Why;
use plan::{Choice, Format};
use program::Start;

/// With `--check`: something would change.
const WOULD_CHANGE: u8 = 1;
const FAILED: u8 = 2;

/// What is to become of a file.
struct Outcome {
    text: String,
    names: Vec<String>,
    left: Vec<(String, Why)>,
    /// Those that were to be shared, and are not.
    unshared: Vec<String>,
    /// Those that may want somebody to log in, and their addresses.
    logins: Vec<(String, String)>,
}

impl Outcome {
    fn say_left(&self) {
        for (name, why) in &self.left {
            show::say(&format!("skipped: {}: {why}", visible::line(name)));
        }
        for name in &self.unshared {
            show::say(&format!(
                "not shared: {}: it may keep something in memory; if it does not, add --share --stateless before its command",
                visible::line(name)
            ));
        }
        for (name, url) in &self.logins {
            show::say(&format!(
                "{} has no API key: if it signs users in, log in once for all agents: {}",
                visible::line(name),
                login(url)
            ));
        }
    }
}

/// What to type to log in to a server at this address.
fn login(url: &str) -> String {
    // The agent fills in its variables; in a shell they mean something else.
    if url.contains(['$', '{']) { "linetender login URL".to_owned() } else { keys::by_url(url) }
}

pub(crate) fn wrap(args: &Wrap) -> ExitCode {
    if let Some(why) = share::refusal().filter(|_| args.share) {
        show::say(&format!("linetender: {why}"));
        return ExitCode::from(FAILED);
    }
    if let Some(why) = args.via.and_then(program::refusal) {
        show::say(&format!("linetender: {why}"));
        return ExitCode::from(FAILED);
    }
    let files = match files(args) {
        Ok(Some(files)) => files,
        Ok(None) => {
            list::list(args.json);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            show::say(&format!("linetender: {error}"));
            return ExitCode::from(FAILED);
        }
    };
    let codes = files.list.iter().map(|file| match change(args, file) {
        Ok(code) => code,
        // Nobody named these files: one of them that has no servers is nothing to complain of, and neither is one that lacks a
        // server which another has.
        Err(Error::NoServers(_)) if files.found => 0,
        Err(error @ Error::Unknown { .. }) if files.found && args.all => {
            show::say(&format!("skipped: {error}"));
            0
        }
        Err(error) => {
            show::say(&format!("linetender: {error}"));
            FAILED
        }
    });
    ExitCode::from(codes.max().unwrap_or_default())
}

/// The files that are to be changed.
struct Files {
    list: Vec<PathBuf>,
    /// Whether we looked for them, instead of being given one.
    found: bool,
}

/// Which files are meant: a file, those of an agent, or all; `None` if nothing was said.
fn files(args: &Wrap) -> Result<Option<Files>, Error> {
    let here = std::env::current_dir().unwrap_or_default();
    let found = |is: &dyn Fn(&str) -> bool| {
        let places = agents::places(&here).into_iter().filter(|place| is(place.agent));
        Files { list: places.map(|place| place.path).collect(), found: true }
    };
    if args.all {
        return Ok(Some(found(&|_| true)));
    }
    let Some(named) = &args.file else { return Ok(None) };
    let word = named.to_string_lossy();
    let of = if named.is_file() { Vec::new() } else { agents::named(&word) };
    match &*of {
        [] => Ok(Some(Files { list: vec![named.clone()], found: false })),
        [agent] => {
            let files = found(&|of| of == *agent);
            if files.list.is_empty() { Err(Error::NoneOf((*agent).to_owned())) } else { Ok(Some(files)) }
        }
        several => Err(Error::Several { word: word.into_owned(), agents: several.join(" or ") }),
    }
}

fn change(args: &Wrap, file: &Path) -> Result<u8, Error> {
    let format = Format::of(file);
    let config = Config::read(file)?;
    let path = config.path.clone();
    let root = format.parse(config.text()).map_err(|syntax| Error::Syntax { path: path.clone(), syntax })?;
    let entries = entry::find(&root).ok_or_else(|| Error::NoServers(path.clone()))?;
    if entries.len() > entry::MOST {
        return Err(Error::TooMany(path));
    }
    known(args, &entries, &path)?;
    // Before anything is shown or written: what stands in a backup's place has to be one.
    config.backup()?;

    let outcome =
        if args.undo { undone(args, format, &config, &entries)? } else { wrapped(args, &config, &entries) };
    // What could not be undone still goes through us: whoever removes linetender next has to know.
    let done = if args.undo && !outcome.left.is_empty() { FAILED } else { 0 };
    if outcome.text == config.text() {
        outcome.say_left();
        show::say(if args.undo { "nothing to undo" } else { "nothing to wrap" });
        return Ok(done);
    }
    format.parse(&outcome.text).map_err(|syntax| Error::Broken { path: path.clone(), syntax })?;
    show::difference(&path, config.text(), &outcome.text);
    outcome.say_left();
    if args.check {
        show::say(&format!("would change: {} (--check: nothing written)", outcome.names.join(", ")));
        return Ok(WOULD_CHANGE);
    }
    if args.undo {
        put_back(&config, &outcome)?;
    } else {
        write(format, &config, &entries, &outcome, file)?;
    }
    Ok(done)
}

fn wrapped(args: &Wrap, config: &Config, entries: &[Entry<'_>]) -> Outcome {
    let reader = agents::reader(&config.path);
    let start = Start::of_wrap(args.via, reader).sharing(args.share);
    if let Some(runner) = start.lies_in_cache_of() {
        show::say(&format!(
            "warning: this linetender lies in a cache of {0}, which {0} may delete at any time; the entries would then not start. Install \
             linetender in a lasting place and wrap again",
            runner.name()
        ));
    } else if args.via.is_none()
        && let Some(runner) = program::runner()
        && program::PUBLISHED
    {
        show::say(&format!(
            "this linetender lies in a cache of {0}, which may be emptied at any time: the entries start it through {0}",
            runner.name()
        ));
    }
    let plan = plan::wrap(config.text(), entries, |entry| {
        if !args.wants(entry.name()) {
            return Choice::Skip;
        }
        Choice::Wrap(start.clone())
    });
    let names = plan.changes.iter().map(|change| visible::line(change.name()).into_owned()).collect();
    Outcome {
        text: plan.apply(config.text()),
        names,
        left: plan.left,
        unshared: plan.unshared,
        logins: plan.logins,
    }
}

fn undone(args: &Wrap, format: Format, config: &Config, entries: &[Entry<'_>]) -> Result<Outcome, Error> {
    let backup = config.backup()?;
    let backup = backup.as_ref().map(Config::text);
    let undone = undo::undo(format, config.text(), entries, backup, |name| args.wants(name));
    if !undone.kept.is_empty() {
        show::say(&format!("already used linetender before wrap, kept: {}", undone.kept.join(", ")));
    }
    let names = undone.names.iter().map(|name| visible::line(name).into_owned()).collect();
    Ok(Outcome { text: undone.text, names, left: undone.left, unshared: Vec::new(), logins: Vec::new() })
}

fn write(
    format: Format,
    config: &Config,
    entries: &[Entry<'_>],
    outcome: &Outcome,
    named: &Path,
) -> Result<(), Error> {
    // A backup from before the first of our entries is good for what is added to them; an older one is not.
    let backup = match config.backup()?.filter(|backup| undo::knows(format, backup.text(), entries)) {
        Some(backup) => backup.path,
        None => config.keep()?,
    };
    config.replace(&outcome.text)?;
    show::say(&format!("wrapped: {}", outcome.names.join(", ")));
    show::say(&format!(
        "backup: {}; to revert: {} wrap '{}' --undo",
        backup.display(),
        program::typed(),
        named.display()
    ));
    if shared::is_in_repository(&config.path) && shared::has_values(entries) {
        show::say(&format!(
            "{} contains secrets of the config and lies in a git repository: do not commit it",
            backup.display()
        ));
    }
    show::say("restart the agent to apply the change");
    Ok(())
}

fn put_back(config: &Config, outcome: &Outcome) -> Result<(), Error> {
    config.replace(&outcome.text)?;
    show::say(&format!("unwrapped: {}", outcome.names.join(", ")));
    match config.backup()? {
        // The same bytes twice help nobody, and the next wrap makes its own.
        Some(backup) if backup.text() == outcome.text => {
            std::fs::remove_file(&backup.path).map_err(Error::io("remove", &backup.path))?;
        }
        Some(backup) => show::say(&format!(
            "the file was edited after wrap, and the edits are kept; original: {}",
            backup.path.display()
        )),
        None => {}
    }
    show::say("restart the agent to apply the change");
    Ok(())
}

/// A name that nobody has is a slip of the finger, not "nothing to do".
fn known(args: &Wrap, entries: &[Entry<'_>], path: &Path) -> Result<(), Error> {
    let has = |name: &&String| entries.iter().any(|entry| entry.name() == name.as_str());
    match args.only.iter().chain(&args.except).find(|name| !has(name)) {
        Some(name) => {
            let known: Vec<_> =
                entries.iter().map(|entry| visible::line(entry.name()).into_owned()).collect();
            Err(Error::Unknown { name: name.clone(), path: path.to_owned(), known: known.join(", ") })
        }
        None => Ok(()),
    }
}

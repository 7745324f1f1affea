//! `linetender wrap FILE`: an agent's configuration, rewritten so that its servers go through linetender, and back.

use std::path::Path;
use std::process::ExitCode;

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
mod show;
#[cfg(test)]
mod tests;
mod toml;
mod tree;
mod undo;
mod unwrap;
mod url;

pub(crate) use args::Wrap;
use entry::Entry;
use error::Error;
use file::Config;
use judge::Why;
use plan::{Choice, Format};

/// With `--check`: something would change.
const WOULD_CHANGE: u8 = 1;
const FAILED: u8 = 2;

/// What is to become of a file.
struct Outcome {
    text: String,
    names: Vec<String>,
    left: Vec<(String, Why)>,
}

impl Outcome {
    fn say_left(&self) {
        for (name, why) in &self.left {
            show::say(&format!("left alone: {name}: {why}"));
        }
    }
}

pub(crate) fn wrap(args: &Wrap) -> ExitCode {
    let Some(file) = &args.file else {
        list::list(args.json);
        return ExitCode::SUCCESS;
    };
    match change(args, file) {
        Ok(code) => code,
        Err(error) => {
            show::say(&format!("linetender: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

fn change(args: &Wrap, file: &Path) -> Result<ExitCode, Error> {
    let format = Format::of(file)?;
    let config = Config::read(file)?;
    let path = config.path.clone();
    let root = format.parse(config.text()).map_err(|syntax| Error::Syntax { path: path.clone(), syntax })?;
    let entries = entry::find(&root).ok_or_else(|| Error::NoServers(path.clone()))?;
    if entries.len() > entry::MOST {
        return Err(Error::TooMany(path));
    }
    known(args, &entries, &path)?;

    let outcome =
        if args.undo { undone(args, format, &config, &entries)? } else { wrapped(args, &config, &entries) };
    // What could not be undone still goes through us: whoever removes linetender next has to know.
    let done = if args.undo && !outcome.left.is_empty() { ExitCode::from(FAILED) } else { ExitCode::SUCCESS };
    if outcome.text == config.text() {
        outcome.say_left();
        show::say(if args.undo { "nothing to undo" } else { "nothing to wrap" });
        return Ok(done);
    }
    format.parse(&outcome.text).map_err(|syntax| Error::Broken { path: path.clone(), syntax })?;
    show::difference(&path, config.text(), &outcome.text);
    outcome.say_left();
    if args.check {
        show::say(&format!("would change: {}; nothing written", outcome.names.join(", ")));
        return Ok(ExitCode::from(WOULD_CHANGE));
    }
    if args.undo {
        put_back(&config, &outcome)?;
    } else {
        write(format, &config, &entries, &outcome, file)?;
    }
    Ok(done)
}

fn wrapped(args: &Wrap, config: &Config, entries: &[Entry<'_>]) -> Outcome {
    let program = program::program();
    let plan = plan::wrap(config.text(), entries, |entry| {
        if !args.wants(entry.name()) {
            return Choice::Skip;
        }
        Choice::Wrap { program: program.clone(), named: args.names(entry.name()) }
    });
    let names = plan.changes.iter().map(|change| change.name().to_owned()).collect();
    Outcome { text: plan.apply(config.text()), names, left: plan.left }
}

fn undone(args: &Wrap, format: Format, config: &Config, entries: &[Entry<'_>]) -> Result<Outcome, Error> {
    let backup = config.backup()?;
    let backup = backup.as_ref().map(Config::text);
    let undone = undo::undo(format, config.text(), entries, backup, |name| args.wants(name));
    if !undone.kept.is_empty() {
        show::say(&format!("still through linetender, as before it was wrapped: {}", undone.kept.join(", ")));
    }
    Ok(Outcome { text: undone.text, names: undone.names, left: undone.left })
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
        "as it was: {}; back to that: linetender wrap '{}' --undo",
        backup.display(),
        named.display()
    ));
    show::say("restart the agent to use it");
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
            "the file had been changed since, and those changes are kept; as it was before: {}",
            backup.path.display()
        )),
        None => {}
    }
    show::say("restart the agent to use it");
    Ok(())
}

/// A name that nobody has is a slip of the finger, not "nothing to do".
fn known(args: &Wrap, entries: &[Entry<'_>], path: &Path) -> Result<(), Error> {
    let has = |name: &&String| entries.iter().any(|entry| entry.name() == name.as_str());
    match args.only.iter().chain(&args.except).find(|name| !has(name)) {
        Some(name) => {
            let known: Vec<&str> = entries.iter().map(Entry::name).collect();
            Err(Error::Unknown { name: name.clone(), path: path.to_owned(), known: known.join(", ") })
        }
        None => Ok(()),
    }
}

//! Faults at start.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::habits::HabitFlags;
use crate::itself;

/// Which era it speaks, and how badly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Spoken {
    Both,
    Legacy,
    Modern,
    ExitOnDiscover,
    SilentOnDiscover,
}

/// What was asked for on the command line.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(super) struct Flags {
    pub(super) spoken: Spoken,
    pub(super) book: Option<PathBuf>,
    pub(super) exit: Option<u8>,
    pub(super) stderr: Option<String>,
    start_delay: Duration,
    pub(super) noise: bool,
    pub(super) deaf: bool,
    pub(super) careful: bool,
    pub(super) single_threaded: bool,
    pub(super) ignore_eof: bool,
    pub(super) last_words: bool,
    pub(super) no_prompts: bool,
    pub(super) revision: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) scolds: bool,
    /// The code of the error that answers a call before it was initialized.
    pub(super) strangers: Option<i32>,
    pub(super) restless: bool,
    pub(super) full: bool,
    /// Whether its tools have pages.
    pub(super) apps: bool,
    /// Whether it runs tasks.
    pub(super) tasks: bool,
    /// Whether it says on its stderr what it is called with.
    pub(super) talkative: bool,
    pub(super) die_on_call: Option<u32>,
    /// How many tools it lists besides those that it has.
    pub(super) more_tools: u32,
    grandchild: bool,
    escapee: bool,
    changing: Option<PathBuf>,
    /// A variable of its environment, and of whatever it starts: for systems without `env`.
    mark: Option<String>,
    /// It does what it should once there is a file `fixed` in this folder: before that it fails, or is no MCP server at all.
    pub(super) until_fixed: Option<PathBuf>,
    pub(super) echoes: bool,
    /// What it has besides tools: a context, processes, a lock, work to save.
    pub(super) habits: HabitFlags,
}

impl Flags {
    pub(super) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self {
            spoken: Spoken::Both,
            book: None,
            exit: None,
            stderr: None,
            start_delay: Duration::ZERO,
            noise: false,
            deaf: false,
            careful: false,
            single_threaded: false,
            ignore_eof: false,
            last_words: false,
            no_prompts: false,
            revision: None,
            instructions: None,
            scolds: false,
            strangers: None,
            restless: false,
            full: false,
            apps: false,
            tasks: false,
            talkative: false,
            die_on_call: None,
            more_tools: 0,
            grandchild: false,
            escapee: false,
            changing: None,
            mark: None,
            until_fixed: None,
            echoes: false,
            habits: HabitFlags::default(),
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} wants a value"));
            match flag.as_str() {
                "--era" => flags.spoken = spoken(&value()?)?,
                "--book" => flags.book = Some(value()?.into()),
                "--exit" => flags.exit = Some(number(&value()?)?),
                "--stderr" => flags.stderr = Some(value()?),
                "--start-delay-ms" => flags.start_delay = Duration::from_millis(number(&value()?)?),
                "--noise" => flags.noise = true,
                "--deaf" => flags.deaf = true,
                "--careful" => flags.careful = true,
                "--single-threaded" => flags.single_threaded = true,
                "--ignore-eof" => flags.ignore_eof = true,
                "--last-words" => flags.last_words = true,
                "--revision" => flags.revision = Some(value()?),
                "--instructions" => flags.instructions = Some(value()?),
                "--no-prompts" => flags.no_prompts = true,
                "--scolds" => flags.scolds = true,
                "--strangers" => flags.strangers = Some(number(&value()?)?),
                "--restless" => flags.restless = true,
                "--talkative" => flags.talkative = true,
                "--full" => flags.full = true,
                "--apps" => flags.apps = true,
                "--tasks" => flags.tasks = true,
                "--die-on-call" => flags.die_on_call = Some(number(&value()?)?),
                "--more-tools" => flags.more_tools = number(&value()?)?,
                "--grandchild" => flags.grandchild = true,
                "--escapee" => flags.escapee = true,
                "--mark" => flags.mark = Some(value()?),
                "--until-fixed" => flags.until_fixed = Some(value()?.into()),
                "--echoes" => flags.echoes = true,
                "--changing" => flags.changing = Some(value()?.into()),
                other if !flags.habits.take(other, &mut value)? => {
                    return Err(format!("no such flag: {other}"));
                }
                _ => {}
            }
        }
        Ok(flags)
    }

    /// Marks itself, before there is a second thread.
    pub(super) fn take_mark(&self) {
        if let Some((name, value)) = self.mark.as_ref().and_then(|mark| mark.split_once('=')) {
            itself::set_variable(name, value);
        }
    }

    /// Whether it is to be another program for now: counted, and looked for, as the drill's scripts do it elsewhere.
    pub(super) fn is_unfixed(&self) -> bool {
        let Some(folder) = &self.until_fixed else { return false };
        let starts = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("starts"));
        let _ = starts.and_then(|mut starts| starts.write_all(b"start\n"));
        !folder.join("fixed").exists()
    }

    /// What happens before the first word.
    pub(super) fn start_up(&self) {
        if !self.start_delay.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "a slow start is the fault")]
            std::thread::sleep(self.start_delay);
        }
        // Both hold the server's pipes for as long as they live.
        if self.grandchild {
            itself::grandchild();
        }
        if self.escapee {
            itself::escapee();
        }
    }

    /// A tool whose name comes from a file, so that a restart can change the list.
    pub(super) fn extra_tool(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.changing.as_ref()?).ok()?;
        Some(text.trim().to_owned()).filter(|name| !name.is_empty())
    }
}

fn spoken(text: &str) -> Result<Spoken, String> {
    Ok(match text {
        "both" => Spoken::Both,
        "legacy" => Spoken::Legacy,
        "modern" => Spoken::Modern,
        "exit-on-discover" => Spoken::ExitOnDiscover,
        "silent-on-discover" => Spoken::SilentOnDiscover,
        other => return Err(format!("no such era: {other}")),
    })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

//! The audit file: opened as the config says, and `linetender audit verify`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use linetender::visible;
use linetender_gateway::config::{AuditArguments, AuditFile, AuditOnError, AuditSync};
use linetender_holder::audit::{Audit, Head, OnError, Rotation, Settings, SyncPolicy, Verified, verify};
use linetender_holder::journal;
use linetender_holder::tally::{Auditor, KeepArguments};
use serde_json::json;

use crate::args::{self, AuditCommand, VerifyAudit};
use crate::{log, places, serve};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

/// It cannot be said whether the audit is whole.
const CANNOT_SAY: u8 = 2;

/// Opens the audit of a gateway; none if its settings name none. Else a sentence about why it cannot be written.
pub(crate) fn open(settings: &AuditFile) -> Result<Option<Auditor>, String> {
    let Some(path) = &settings.path else { return Ok(None) };
    if places::journals().contains(path) {
        return Err(format!("the audit file {} is the journal: use another path", path.display()));
    }
    let sync = match settings.sync {
        AuditSync::Call => SyncPolicy::Call,
        AuditSync::Interval => SyncPolicy::Interval(Duration::from_millis(settings.interval)),
    };
    let on_error = match settings.on_error {
        AuditOnError::Refuse => OnError::Refuse,
        AuditOnError::Continue => OnError::Continue,
    };
    let rotation = Rotation { bytes: settings.rotate, kept: settings.keep };
    let timeout = Duration::from_millis(settings.timeout);
    let arguments = match settings.arguments {
        AuditArguments::Hash => KeepArguments::Hash,
        AuditArguments::Full => KeepArguments::Full,
        AuditArguments::None => KeepArguments::Nothing,
    };
    let settings = Settings { sync, on_error, rotation, timeout, ..Settings::new(path) };
    let opened = Audit::open(&settings).map(|audit| Some(Auditor::new(audit, "serve", arguments)));
    opened.map_err(|error| match error.raw_os_error() {
        Some(_) => format!("cannot write the audit file {}: {error}", path.display()),
        None => format!("the audit file {} {error}", path.display()),
    })
}

pub(crate) fn audit(args: &args::Audit) -> ExitCode {
    let AuditCommand::Verify(args) = &args.command;
    let said = named(args).and_then(|path| {
        let heads = args.head.then(|| heads(&path)).transpose()?;
        let found = verify(&path, heads.as_deref())
            .map_err(|error| format!("cannot read the audit file {}: {error}", path.display()))?;
        Ok((path, found))
    });
    match said {
        Ok((path, found)) => {
            let printed = if args.json { print_json(&path, &found) } else { print(&path, &found) };
            match printed {
                // Whoever reads it has seen enough.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    log::say(format_args!("linetender: cannot print: {error}"));
                    ExitCode::from(CANNOT_SAY)
                }
                _ => code(&found),
            }
        }
        Err(why) => {
            log::say(format_args!("linetender: {}", visible::line(&why)));
            ExitCode::from(CANNOT_SAY)
        }
    }
}

/// The file, as the gateway calls it in the journal.
fn named(args: &VerifyAudit) -> Result<PathBuf, String> {
    let path = match &args.file {
        Some(file) => file.clone(),
        None => configured(args.config.as_deref())?,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => Ok(folder.join(name)),
        (Err(error), _) => Err(format!("cannot read the audit file {}: {error}", path.display())),
        (_, None) => Err(format!("{} is a folder, not an audit file", path.display())),
    }
}

fn configured(config: Option<&Path>) -> Result<PathBuf, String> {
    let path = serve::file::path(config)
        .map_err(|why| format!("{why}, or name the audit file: linetender audit verify FILE"))?;
    let text = serve::file::text(&path)?;
    let config = serve::file::read(&path, &text, None).map_err(|problem| problem.report())?;
    config.gateway.audit.path.ok_or_else(|| {
        let path = path.display();
        format!("{path} has no [gateway.audit]; name the audit file: linetender audit verify FILE")
    })
}

/// What the journal knows of it, from before it is read: lines that come meanwhile are not missed.
fn heads(path: &Path) -> Result<Vec<Head>, String> {
    let mut heads = Vec::new();
    for journal in places::journals() {
        let kept = journal::heads_of(&journal, &path.to_string_lossy())
            .map_err(|error| format!("cannot read the journal {}: {error}", journal.display()))?;
        heads.extend(kept);
    }
    Ok(heads)
}

fn code(found: &Verified) -> ExitCode {
    match (&found.bad, has_nothing_to_compare(found)) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, true) => ExitCode::from(CANNOT_SAY),
        (None, false) => ExitCode::SUCCESS,
    }
}

fn has_nothing_to_compare(found: &Verified) -> bool {
    found.heads.is_some_and(|heads| heads.same == 0)
}

fn print_json(path: &Path, found: &Verified) -> io::Result<()> {
    let mut document =
        json!({ "version": VERSION, "file": path.to_string_lossy(), "ok": found.bad.is_none() });
    if let (Some(document), Ok(serde_json::Value::Object(found))) =
        (document.as_object_mut(), serde_json::to_value(found))
    {
        document.extend(found);
    }
    writeln!(io::stdout().lock(), "{}", visible::json(&format!("{document:#}")))
}

fn print(path: &Path, found: &Verified) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut say = |text: String| writeln!(out, "{}", visible::line(&text));
    match &found.bad {
        Some(bad) => say(format!("{}: DAMAGED: line {} {}", bad.file, bad.line, bad.what))?,
        None => say(format!("{}: OK", path.display()))?,
    }
    let sound = if found.bad.is_some() { "sound up to there" } else { "sound" };
    match (found.first, found.last) {
        (Some(first), Some(last)) => say(format!(
            "  {sound}: lines number {first} to {last} in {}, {}",
            many(found.files.len() as u64, "file"),
            many(found.calls, "call")
        ))?,
        _ => say(format!("  {sound}: no line"))?,
    }
    if found.first.is_some_and(|first| first > 1) {
        say("  begins later: older files were removed, as rotation does".to_owned())?;
    }
    if found.gaps > 0 {
        say(format!("  {}: {} without a line", many(found.gaps, "gap"), many(found.missed, "call")))?;
    }
    if found.torn > 0 {
        say(format!(
            "  {} torn by a crash or a full disk, each noted by the next line",
            many(found.torn, "line")
        ))?;
    }
    if found.is_open {
        say("  a linetender process has it open".to_owned())?;
    }
    match found.heads {
        None if found.bad.is_none() => {
            say("  its end was not compared with the journal: linetender audit verify --head".to_owned())
        }
        Some(heads) if heads.same > 0 => {
            say(format!("  same as {} in the journal", many(heads.same, "head")))
        }
        Some(_) if found.bad.is_none() => say(
            "  not compared: this user's journal has no hash of its lines. Run it as the user of the gateway, and keep the journal on"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

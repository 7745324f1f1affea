//! Looks at one server: starts it, reads its lists, stops it.

use std::time::Duration;

use linetender::{Catalogue, Era, Kind, Line, Rig, Server};
use linetender_gateway::config::Entry;
use serde::Serialize;

use super::finding::{Finding, Severity};
use super::program::Program;
use super::progress::{Stage, Stages};
use super::{failure, offers, settings};
use crate::dial::{self, Dialled};

/// What is allowed beyond the timeouts of a shutdown before it is left to the reaper.
const SLACK: Duration = Duration::from_secs(1);

/// How much of what a server says of itself is shown.
const SHOWN: usize = 60;

/// What was found out about a server.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    pub(super) name: String,
    /// Whether it works.
    pub(super) ok: bool,
    /// From its start until it took calls, or until it was known that it will not.
    pub(super) start_millis: u64,
    #[serde(flatten)]
    pub(super) known: Option<Known>,
    pub(super) findings: Vec<Finding>,
}

/// What a server that works says of itself.
#[derive(Debug, Serialize)]
pub(super) struct Known {
    /// `legacy` or `modern`.
    pub(super) era: &'static str,
    /// The revision of MCP.
    pub(super) revision: Option<String>,
    /// What it calls itself.
    pub(super) implementation: Option<String>,
    pub(super) version: Option<String>,
    pub(super) tools: usize,
    /// Tools that it declares read-only or idempotent.
    pub(super) declared_safe: usize,
    pub(super) prompts: usize,
    pub(super) resources: usize,
    pub(super) resource_templates: usize,
}

impl Checked {
    pub(super) fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).min()
    }
}

/// Looks at the server with this number.
pub(super) async fn check(
    rig: Rig,
    (number, entry): (usize, Entry),
    separator: String,
    login: String,
    stages: Stages,
) -> Checked {
    let program = Program::of(entry.server.argv());
    let server = dial::quiet(&directly(&entry.server, &program));
    stages.set(number, Stage::Starts);
    let line = rig.lazy(server.clone());
    let Dialled { took, outcome } = dial::dialled(&line, dial::longest(&server)).await;
    let (known, mut findings) = if let Err(failure) = outcome {
        (None, vec![failure::explain(&failure, &program, &login)])
    } else {
        stages.set(number, Stage::Lists);
        let (known, mut findings) = offered(&line, &entry, &separator).await;
        findings.extend(settings::of_start(took, &entry, &program));
        findings.extend(settings::of_calls(&entry));
        findings.extend(settings::of_state(&entry));
        (known, findings)
    };
    stages.set(number, Stage::Stops);
    if tokio::time::timeout(server.settings().close.worst() + SLACK, line.close()).await.is_err() {
        findings.push(Finding::warning(
            "does-not-stop",
            "it did not end when it was stopped; its reaper kills it",
            "",
        ));
    }
    findings.sort_by_key(|finding| finding.severity);
    stages.set(number, Stage::Done);
    let ok = findings.iter().all(|finding| finding.severity != Severity::Error);
    let start_millis = took.as_millis().try_into().unwrap_or(u64::MAX);
    Checked { name: entry.server.name().to_owned(), ok, start_millis, known, findings }
}

/// An entry that runs linetender runs a server behind it. That one is to be started, not remembered, and not written down.
fn directly(server: &Server, program: &Program) -> Server {
    let Some(stdio) = server.to_stdio().filter(|_| program.is_wrapped()) else { return server.clone() };
    let mut argv = server.argv().to_vec();
    for flag in ["--no-memory", "--no-journal"] {
        if !argv.iter().any(|word| word == flag) {
            argv.insert(2, flag.into());
        }
    }
    stdio.with_argv(argv).into()
}

/// What a server that is up offers.
async fn offered(line: &Line, entry: &Entry, separator: &str) -> (Option<Known>, Vec<Finding>) {
    let read = match line.list_tools().await {
        Ok(_) => line.catalogue().await,
        Err(error) => Err(error),
    };
    match read {
        Ok(catalogue) => {
            let mut findings: Vec<_> = noise(line).into_iter().collect();
            findings.extend(offers::findings(&catalogue, entry, separator));
            (known_of(line, &catalogue), findings)
        }
        Err(error) => {
            let fix = "it answers `initialize` and not its lists: report it to the author of the server";
            (None, vec![Finding::error("no-lists", error.cause, fix).with_stderr(error.stderr)])
        }
    }
}

fn known_of(line: &Line, catalogue: &Catalogue) -> Option<Known> {
    let info = line.server_info()?;
    let shown = |text: String| linetender::visible::cut(&linetender::hide_secrets(&text), SHOWN);
    Some(Known {
        era: match info.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        },
        revision: info.revision.map(shown),
        implementation: info.name.map(shown),
        version: info.version.map(shown),
        tools: catalogue.list(Kind::Tools).count(),
        declared_safe: catalogue.tools().filter(offers::is_declared_safe).count(),
        prompts: catalogue.list(Kind::Prompts).count(),
        resources: catalogue.list(Kind::Resources).count(),
        resource_templates: catalogue.list(Kind::Templates).count(),
    })
}

/// What it wrote to stdout that is no message.
fn noise(line: &Line) -> Option<Finding> {
    let (count, first) = line.odd();
    let first = first.first()?;
    let lines = if count == 1 { "a line" } else { "lines" };
    let what = format!("it wrote {count} {lines} to stdout that are not MCP, the first: {first}");
    Some(Finding::warning(
        "stdout-noise",
        what,
        "send its log to stderr (a flag or a variable of the server, or of its package runner)",
    ))
}

//! Findings about what a server offers: what a model can take, what names become, and what may be repeated.

use std::collections::HashSet;

use linetender::{Catalogue, Kind, Tool};
use linetender_gateway::config::{Entry, Mismatch};
use serde::Deserialize;

use super::finding::Finding;

/// More tools than this make a model choose badly.
const MANY_TOOLS: usize = 40;

/// More text than this, in bytes, is a large part of a model's context. A token is about four bytes.
const MUCH_TEXT: usize = 60_000;
const BYTES_PER_TOKEN: usize = 4;

/// A single description that is longer than this is worth a word.
const LONG_DESCRIPTION: usize = 4_000;

/// The longest name of a tool that every large provider of models takes.
const LONGEST_NAME: usize = 64;

/// How many names are spelt out.
const NAMED: usize = 5;

/// Whether a call of a tool may be executed again if its outcome is unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Retry {
    /// It may.
    Safe,
    /// The server declares it harmless, and its word is not trusted.
    Declared,
    /// It may not.
    No,
}

impl Retry {
    pub(crate) fn of(tool: &Tool, entry: &Entry) -> Self {
        let trusts = entry.server.settings().trust_annotations;
        let listed = entry.server.safe_tools().any(|safe| safe == tool.name);
        match is_declared_safe(tool) {
            _ if listed => Self::Safe,
            true if trusts => Self::Safe,
            true => Self::Declared,
            false => Self::No,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Declared => "declared",
            Self::No => "no",
        }
    }
}

/// Whether the server calls a tool read-only or idempotent.
pub(super) fn is_declared_safe(tool: &Tool) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Looked {
        annotations: Option<Annotations>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Annotations {
        read_only_hint: bool,
        idempotent_hint: bool,
    }
    let looked: Looked = tool.parse().unwrap_or_default();
    looked.annotations.is_some_and(|hints| hints.read_only_hint || hints.idempotent_hint)
}

/// What is to be said about the lists of a server at a gateway with this separator.
pub(super) fn findings(catalogue: &Catalogue, entry: &Entry, separator: &str) -> Vec<Finding> {
    let tools: Vec<Tool> = catalogue.tools().collect();
    let shown: Vec<&Tool> = tools.iter().filter(|tool| entry.tools.lets(&tool.name)).collect();
    let mut found = Vec::new();
    if tools.is_empty()
        && catalogue.list(Kind::Prompts).next().is_none()
        && catalogue.list(Kind::Resources).next().is_none()
    {
        found.push(Finding::warning(
            "offers-nothing",
            "it offers no tools, prompts or resources",
            "check its arguments and its login",
        ));
    } else if shown.is_empty() && !tools.is_empty() {
        let what = format!("the filter in `tools` hides all of its {} tools", tools.len());
        found.push(Finding::warning("all-hidden", what, "correct `tools.include` and `tools.exclude`"));
    }
    for kind in Kind::ALL.into_iter().filter(|kind| catalogue.is_cut(*kind)) {
        let what =
            format!("its list of {} is longer than linetender keeps; the rest is not offered", kind.member());
        found.push(Finding::warning("list-cut", what, ""));
    }
    found.extend(amount(&shown));
    found.extend(names(&shown, entry, separator));
    found.extend(safety(&tools, entry));
    found.extend(entry.mismatches(catalogue).into_iter().map(|mismatch| match mismatch {
        Mismatch::Replaced { .. } => Finding::warning(
            "tool-replaced",
            mismatch.to_string(),
            "exclude that tool, or rename one of them to something else",
        ),
        _ => Finding::warning(
            "matches-nothing",
            mismatch.to_string(),
            "use the server's own names (`linetender tools` lists them), or remove it",
        ),
    }));
    found
}

fn amount(shown: &[&Tool]) -> Option<Finding> {
    let bytes: usize = shown.iter().map(|tool| tool.raw().len()).sum();
    let tokens = bytes / BYTES_PER_TOKEN;
    let long: Vec<&str> = shown
        .iter()
        .filter(|tool| tool.description.as_ref().is_some_and(|text| text.len() > LONG_DESCRIPTION))
        .map(|tool| tool.name.as_str())
        .collect();
    let hide = "hide what agents do not need: tools.include = [\"…\"] or tools.exclude = [\"…\"]";
    if shown.len() > MANY_TOOLS || bytes > MUCH_TEXT {
        let what = format!("{} tools, about {tokens} tokens in every request to a model", shown.len());
        Some(Finding::warning("too-many-tools", what, hide))
    } else if !long.is_empty() {
        let what = format!("descriptions of more than {LONG_DESCRIPTION} bytes: {}", listed(&long));
        Some(Finding::note("long-descriptions", what, hide))
    } else {
        None
    }
}

fn names(shown: &[&Tool], entry: &Entry, separator: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let server = entry.server.name();
    let prefix = entry.prefix();
    if prefix != server && !shown.is_empty() {
        let what = format!(
            "through the gateway its tools are called {prefix}{separator}…, for {server} has characters that models' providers refuse"
        );
        found.push(Finding::note("renamed", what, "rename the server if that is not what you want"));
    }
    let mut seen = HashSet::new();
    let twice: Vec<&str> =
        shown.iter().map(|tool| tool.name.as_str()).filter(|name| !seen.insert(*name)).collect();
    if !twice.is_empty() {
        let what = format!("it lists two tools of one name: {}", listed(&twice));
        found.push(Finding::warning(
            "same-name",
            what,
            "report it to the author of the server; the model sees both and can call one",
        ));
    }
    let is_plain = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let odd: Vec<&str> =
        shown.iter().map(|tool| entry.tools.shown(&tool.name)).filter(|name| !is_plain(name)).collect();
    if !odd.is_empty() {
        let what = format!(
            "names that some providers of models refuse (other characters than letters, digits, _ and -): {}",
            listed(&odd)
        );
        found.push(Finding::warning(
            "odd-names",
            what,
            "rename them (tools.rename), or hide them (tools.exclude), if a provider refuses the whole request",
        ));
    }
    let long: Vec<String> = shown
        .iter()
        .map(|tool| format!("{prefix}{separator}{}", entry.tools.shown(&tool.name)))
        .filter(|name| name.len() > LONGEST_NAME)
        .collect();
    if !long.is_empty() {
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        let what = format!(
            "names of more than {LONGEST_NAME} characters through the gateway, which some providers of models refuse: {}",
            listed(&long)
        );
        let fix = "give the server a shorter name, or the tools: tools.rename = { name = \"shorter\" }";
        found.push(Finding::warning("long-names", what, fix));
    }
    found
}

fn safety(tools: &[Tool], entry: &Entry) -> Vec<Finding> {
    let mut found = Vec::new();
    let declared = tools.iter().filter(|tool| is_declared_safe(tool)).count();
    let trusts = entry.server.settings().trust_annotations;
    if trusts && declared == 0 && !tools.is_empty() {
        found.push(Finding::note(
            "no-annotations",
            "trust_annotations has no effect: it declares no tool read-only or idempotent",
            "name tools that may be executed twice: safe_tools = [\"…\"]",
        ));
    } else if !trusts && declared > 0 {
        let what = format!(
            "{declared} of {} tools are declared read-only or idempotent, and that is not trusted: a call of unknown outcome is not repeated",
            tools.len()
        );
        found.push(Finding::note(
            "annotations-untrusted",
            what,
            "if you trust this server: trust_annotations = true",
        ));
    }
    let mut unknown: Vec<&str> =
        entry.server.safe_tools().filter(|safe| tools.iter().all(|tool| tool.name != *safe)).collect();
    unknown.sort_unstable();
    if !unknown.is_empty() && !tools.is_empty() {
        let what = format!("safe_tools names tools that it does not have: {}", listed(&unknown));
        found.push(Finding::warning(
            "unknown-safe-tool",
            what,
            "use the server's own names, without the prefix of the gateway",
        ));
    }
    found
}

/// A few names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMED).map(|name| linetender::visible::cut(name, 80)).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

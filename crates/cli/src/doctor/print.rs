//! What the doctor says in the end.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use linetender::{hide_secrets, visible};

use super::check::{Checked, Known};
use super::finding::{Finding, Severity};
use super::settings::seconds;
use crate::table::{Cell, Table};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

/// The most characters of a finding's text, and of a line of stderr.
const LONGEST: usize = 600;
const LONGEST_STDERR: usize = 200;

/// How many of the last lines of stderr are shown.
const STDERR_LINES: usize = 5;

const HEAD: [&str; 9] =
    ["SERVER", "RESULT", "START", "MCP", "TOOLS", "SAFE", "PROMPTS", "RESOURCES", "IMPLEMENTATION"];

/// The report as a JSON document.
pub(super) fn json(path: &Path, servers: &[Checked], findings: &[Finding]) -> String {
    let file = path.display().to_string();
    let ok = servers.iter().all(|server| server.ok);
    let document = serde_json::json!({ "version": VERSION, "file": file, "ok": ok, "servers": servers, "findings": findings });
    visible::json(&hide_secrets(&format!("{document:#}\n"))).into_owned()
}

/// The report for people, no wider than the terminal.
pub(super) fn text(path: &Path, servers: &[Checked], findings: &[Finding], width: Option<usize>) -> String {
    let mut table = Table::new(HEAD);
    for server in servers {
        table.row(row(server));
    }
    let mut text = table.fitted(width);
    for server in servers.iter().filter(|server| !server.findings.is_empty()) {
        tell(&mut text, &server.name, &server.findings);
    }
    if !findings.is_empty() {
        tell(&mut text, &path.display().to_string(), findings);
    }
    let _ = writeln!(text, "\n{}", summary(servers, findings));
    text
}

fn row(server: &Checked) -> [Cell; HEAD.len()] {
    let (word, style) = match server.worst() {
        Some(worst @ (Severity::Error | Severity::Warning)) => (worst.name(), style(worst)),
        Some(Severity::Note) | None => ("ok", AnsiColor::Green.on_default()),
    };
    let start = seconds(Duration::from_millis(server.start_millis));
    let head = [Cell::plain(&server.name), Cell::styled(word, style), Cell::number(start)];
    let [name, word, start] = head;
    let Some(known) = &server.known else {
        let none = [const { Cell::none() }; 6];
        let [mcp, tools, safe, prompts, resources, of] = none;
        return [name, word, start, mcp, tools, safe, prompts, resources, of];
    };
    let Known {
        era,
        revision,
        implementation,
        version,
        tools,
        declared_safe,
        prompts,
        resources,
        resource_templates,
    } = known;
    let mcp = format!("{} ({era})", revision.as_deref().unwrap_or("?"));
    let of =
        [implementation.as_deref(), version.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    [
        name,
        word,
        start,
        Cell::plain(&mcp),
        Cell::number(tools),
        Cell::number(declared_safe),
        Cell::number(prompts),
        Cell::number(resources + resource_templates),
        Cell::plain(&of),
    ]
}

fn tell(text: &mut String, name: &str, findings: &[Finding]) {
    let bold = Style::new().bold();
    let _ = writeln!(text, "\n{bold}{}{bold:#}", visible::line(name));
    for finding in findings {
        let style = style(finding.severity);
        let what = visible::cut(&hide_secrets(&finding.what), LONGEST);
        let _ = writeln!(text, "  {style}{}{style:#} {what} [{}]", finding.severity.name(), finding.code);
        let stderr = finding.stderr.as_deref().unwrap_or_default().trim_end();
        let skipped = stderr.lines().count().saturating_sub(STDERR_LINES);
        for line in stderr.lines().skip(skipped) {
            let _ = writeln!(text, "    stderr: {}", visible::cut(&hide_secrets(line), LONGEST_STDERR));
        }
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "    fix: {}", visible::cut(fix, LONGEST));
        }
    }
}

const fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => AnsiColor::Red.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Note => Style::new().dimmed(),
    }
}

fn summary(servers: &[Checked], findings: &[Finding]) -> String {
    let broken = servers.iter().filter(|server| !server.ok).count();
    let of = |severity| {
        let all = servers.iter().flat_map(|server| &server.findings).chain(findings);
        all.filter(|finding| finding.severity == severity).count()
    };
    let many = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    format!(
        "{}: {} with an error, {}, {}",
        many(servers.len(), "server"),
        broken,
        many(of(Severity::Warning), "warning"),
        many(of(Severity::Note), "note")
    )
}

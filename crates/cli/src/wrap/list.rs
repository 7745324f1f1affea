//! `linetender wrap` alone: which configurations this user has, and what to type.

use std::io::Write as _;
use std::path::Path;

use linetender::visible;
use serde::Serialize;

use super::agents::{self, Place};
use super::entry;
use super::error::Error;
use super::file::Config;
use super::judge::{Decision, judge};
use super::plan::Format;
use super::program;

/// One configuration. Programs read this: members are added, never changed.
#[derive(Debug, Serialize)]
struct Row {
    agent: &'static str,
    file: String,
    /// How many servers it has.
    servers: usize,
    /// How many of them go through linetender.
    wrapped: usize,
    /// How many more `linetender wrap FILE` would wrap.
    to_wrap: usize,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn list(json: bool) {
    let here = std::env::current_dir().unwrap_or_default();
    let rows: Vec<Row> = agents::places(&here).iter().map(row).collect();
    let text = if json { as_json(&rows) } else { as_text(&rows) };
    // If nobody reads it, nobody needs it.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn row(place: &Place) -> Row {
    let mut row = Row {
        agent: place.agent,
        file: place.path.display().to_string(),
        servers: 0,
        wrapped: 0,
        to_wrap: 0,
        problem: None,
    };
    row.problem = match count(&place.path, &mut row) {
        Ok(()) => None,
        Err(error) => Some(error.to_string()),
    };
    row
}

fn count(path: &Path, row: &mut Row) -> Result<(), Error> {
    let format = Format::of(path);
    let config = Config::read(path)?;
    let root =
        format.parse(config.text()).map_err(|syntax| Error::Syntax { path: path.to_owned(), syntax })?;
    for entry in entry::find(&root).unwrap_or_default() {
        row.servers += 1;
        match judge(&entry) {
            Decision::Wrapped(_) => row.wrapped += 1,
            Decision::Command(_) | Decision::Address(_) => row.to_wrap += 1,
            Decision::Left(_) => {}
        }
    }
    Ok(())
}

fn as_json(rows: &[Row]) -> String {
    let mut text = serde_json::to_string_pretty(rows).unwrap_or_default();
    text.push('\n');
    text
}

fn as_text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return format!("no agent config found; pass one: {} wrap FILE\n", program::typed());
    }
    let agents = rows.iter().map(|row| row.agent.len()).max().unwrap_or_default();
    let files = rows.iter().map(|row| row.file.chars().count()).max().unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    for row in rows {
        let state = match (&row.problem, row.servers) {
            (Some(problem), _) => problem.clone(),
            (None, 0) => "no servers".to_owned(),
            (None, 1) => format!("1 server, {} wrapped", row.wrapped),
            (None, servers) => format!("{servers} servers, {} wrapped", row.wrapped),
        };
        let (file, state) = (visible::line(&row.file), visible::line(&state));
        lines.push(format!("{:agents$}  {file:files$}  {state}\n", row.agent));
    }
    if let Some(row) = rows.iter().find(|row| row.to_wrap > 0) {
        let file = visible::line(&row.file);
        let linetender = program::typed();
        lines.push(format!("\nto see the diff:  {linetender} wrap '{file}' --check\n"));
        lines.push(format!("to apply it:      {linetender} wrap '{file}'\n"));
    }
    lines.concat()
}

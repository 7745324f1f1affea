//! `linetender tools`: what servers offer, and which calls may be repeated.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use linetender::{Rig, Server, Tool, hide_secrets, visible};
use linetender_gateway::config::Entry;
use tokio::task::JoinSet;

use crate::args;
use crate::configured::{self, misused};
use crate::dial::{self, Dialled};
use crate::doctor::offers::Retry;
use crate::run::name;
use crate::table::{Cell, Table};

/// The version of the document that `--json` prints.
const VERSION: u32 = 1;

/// How much of a description is looked at for its first sentence.
const SHORT: usize = 160;

/// What is allowed beyond the timeouts of a shutdown before it is left to the reaper.
const SLACK: Duration = Duration::from_secs(1);

pub(crate) fn tools(args: &args::Tools) -> ExitCode {
    let entries = match entries(args) {
        Ok(entries) => entries,
        Err(why) => return misused(&why),
    };
    let runtime = match configured::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return misused(&format!("cannot start: {error}")),
    };
    let listed = runtime.block_on(list(entries));
    let text = if args.json { json(&listed) } else { text(&listed) };
    let printed = if args.json {
        std::io::stdout().write_all(text.as_bytes())
    } else {
        write!(anstream::stdout(), "{text}")
    };
    for (entry, why) in listed.iter().filter_map(|(entry, tools)| Some((entry, tools.as_ref().err()?))) {
        let line = format!("linetender: {}: {why}", entry.server.name());
        eprintln!("{}", visible::line(&hide_secrets(&line)));
    }
    let ok = printed.is_ok() && listed.iter().all(|(_, tools)| tools.is_ok());
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The servers that were meant.
fn entries(args: &args::Tools) -> Result<Vec<Entry>, String> {
    if !args.command.is_empty() {
        let name = name::of(&args.command);
        // What a person starts in a shell has that shell's environment.
        let server: Server = Server::stdio(name, args.command.iter()).inherit_env().into();
        return Ok(vec![configured::alone(server)?]);
    }
    match &args.server {
        Some(server) => Ok(vec![configured::entry(server, &args.from)?]),
        None => Ok(configured::read(args.from.config.as_deref())?.config.servers),
    }
}

type Listed = Vec<(Entry, Result<Vec<Tool>, String>)>;

/// Starts all of them, and lists their tools in the file's order.
async fn list(entries: Vec<Entry>) -> Listed {
    let (rig, mut tasks) = (Rig::new().dialling_once(), JoinSet::new());
    for (number, entry) in entries.into_iter().enumerate() {
        let rig = rig.clone();
        tasks.spawn(async move {
            let tools = tools_of(&rig, &entry.server).await;
            (number, entry, tools)
        });
    }
    let mut listed = tasks.join_all().await;
    listed.sort_by_key(|(number, ..)| *number);
    listed.into_iter().map(|(_, entry, tools)| (entry, tools)).collect()
}

async fn tools_of(rig: &Rig, server: &Server) -> Result<Vec<Tool>, String> {
    let server = dial::quiet(server);
    let line = rig.lazy(server.clone());
    let Dialled { outcome, .. } = dial::dialled(&line, dial::longest(&server)).await;
    let tools = match outcome {
        Ok(()) => line.list_tools().await.map_err(|error| error.cause),
        Err(failure) => Err(failure.in_one()),
    };
    let _ = tokio::time::timeout(server.settings().close.worst() + SLACK, line.close()).await;
    tools
}

fn text(listed: &Listed) -> String {
    let mut table = Table::new(["SERVER", "TOOL", "RETRY", "DESCRIPTION"]);
    for (entry, tool) in rows(listed) {
        let retry = Retry::of(tool, entry).name();
        let description = entry.tools.description(&tool.name).or(tool.description.as_deref());
        let about = first_sentence(description.or(tool.title.as_deref()).unwrap_or_default());
        table.row([
            Cell::plain(entry.server.name()),
            Cell::plain(&named(entry, tool)),
            Cell::plain(retry),
            Cell::plain(&about),
        ]);
    }
    if rows(listed).next().is_none() {
        return if listed.iter().any(|(_, tools)| tools.is_ok()) {
            "No tools.\n".to_owned()
        } else {
            String::new()
        };
    }
    let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into());
    hide_secrets(&table.fitted(width)).into_owned()
}

/// The name that `linetender call` takes, and the one that agents use.
fn named(entry: &Entry, tool: &Tool) -> String {
    match entry.tools.shown(&tool.name) {
        own if own == tool.name => own.to_owned(),
        shown => format!("{} (shown as {shown})", tool.name),
    }
}

/// The tools that agents would see.
fn rows(listed: &Listed) -> impl Iterator<Item = (&Entry, &Tool)> {
    listed.iter().flat_map(|(entry, tools)| {
        let tools = tools.iter().flatten().filter(|tool| entry.tools.lets(&tool.name));
        tools.map(move |tool| (entry, tool))
    })
}

fn json(listed: &Listed) -> String {
    let servers: Vec<_> = listed
        .iter()
        .map(|(entry, tools)| match tools {
            Ok(tools) => {
                let shown = tools.iter().filter(|tool| entry.tools.lets(&tool.name));
                let tools: Vec<_> = shown
                    .map(|tool| {
                        let raw: serde_json::Value = tool.parse().unwrap_or_default();
                        let (shown, retry) = (entry.tools.shown(&tool.name), Retry::of(tool, entry).name());
                        serde_json::json!({ "name": tool.name, "shown": shown, "retry": retry, "tool": raw })
                    })
                    .collect();
                serde_json::json!({ "name": entry.server.name(), "tools": tools })
            }
            Err(why) => serde_json::json!({ "name": entry.server.name(), "error": why }),
        })
        .collect();
    let document = serde_json::json!({ "version": VERSION, "servers": servers });
    visible::json(&hide_secrets(&format!("{document:#}\n"))).into_owned()
}

/// As much of a description as says what the tool does.
fn first_sentence(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let sentence = line.split_inclusive(". ").next().unwrap_or(line).trim();
    visible::cut(sentence, SHORT)
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn a_description_is_its_first_sentence() {
        for (text, short) in [
            ("Echoes. And more.", "Echoes."),
            ("\n  Reads a file\nfrom disk", "Reads a file"),
            ("Uses v1.2 of it", "Uses v1.2 of it"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), short);
        }
    }
}

//! What would be done to a file: which entries change and how, and which stay and why.

use std::path::Path;

use linetender::ServerState;

use super::edit::{Edit, apply};
use super::entry::Entry;
use super::error::Syntax;
use super::judge::{Decision, Why, judge};
use super::program::Start;
use super::tree::Node;
use super::{json, rewrite, toml, yaml};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Toml,
    Yaml,
}

/// Whether an entry is to be wrapped.
pub(super) enum Choice {
    Skip,
    Wrap(Start),
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    pub(super) left: Vec<(String, Why)>,
    /// Those that were to be shared, and are not, because they may keep something in memory.
    pub(super) unshared: Vec<String>,
    /// Those that may want somebody to log in, and their addresses.
    pub(super) logins: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct Change {
    pub(super) path: Vec<String>,
    pub(super) edits: Vec<Edit>,
}

impl Format {
    /// By its name, as agents choose theirs. What has no known ending is JSON with most of them.
    pub(super) fn of(path: &Path) -> Self {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Json,
        }
    }

    pub(super) fn parse(self, text: &str) -> Result<Node, Syntax> {
        match self {
            Self::Json => json::parse(text),
            Self::Toml => toml::parse(text),
            Self::Yaml => yaml::parse(text),
        }
    }
}

pub(super) fn wrap(text: &str, entries: &[Entry<'_>], choose: impl Fn(&Entry<'_>) -> Choice) -> Plan {
    let mut plan = Plan::default();
    for entry in entries {
        let Choice::Wrap(start) = choose(entry) else { continue };
        let edits = match judge(entry) {
            Decision::Command(call) => {
                if start.share && call.state() != ServerState::None {
                    plan.unshared.push(entry.name().to_owned());
                }
                Ok(rewrite::command(text, entry, call, &start))
            }
            Decision::Address(address) => {
                let edits = rewrite::address(text, entry, &address, &start);
                if edits.is_ok() && address.may_sign_in(entry) {
                    let url = address.url.value.text().unwrap_or_default().to_owned();
                    plan.logins.push((entry.name().to_owned(), url));
                }
                edits
            }
            Decision::Wrapped(_) => continue,
            Decision::Left(why) => Err(why),
        };
        match edits {
            Ok(edits) => plan.changes.push(Change { path: entry.path.clone(), edits }),
            Err(why) => plan.left.push((entry.name().to_owned(), why)),
        }
    }
    plan
}

impl Plan {
    pub(super) fn apply(&self, text: &str) -> String {
        let edits: Vec<Edit> = self.changes.iter().flat_map(|change| change.edits.clone()).collect();
        apply(text, 0..text.len(), &edits)
    }
}

impl Change {
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The stretch of the text that changes: as it was, and as it becomes.
    pub(super) fn stretch<'t>(&self, text: &'t str) -> (&'t str, String) {
        let start = self.edits.iter().map(|edit| edit.range.start).min().unwrap_or_default();
        let end = self.edits.iter().map(|edit| edit.range.end).max().unwrap_or_default();
        (text.get(start..end).unwrap_or_default(), apply(text, start..end, &self.edits))
    }
}

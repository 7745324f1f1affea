//! What principals heard, what they tried, and what of it was wrong.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

/// What somebody can hear. Each is wrong if any of it is another's, or is of something that it may not see.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Heard {
    Answer,
    Error,
    List,
    Progress,
    LogLine,
    Question,
    Update,
    Change,
    Health,
}

/// How often something was so, and how often not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) right: u64,
    pub(super) wrong: u64,
}

/// Counts of a run.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Tally {
    pub(super) heard: BTreeMap<Heard, Count>,
    /// What an intruder tried; right is refused.
    pub(super) tried: BTreeMap<&'static str, Count>,
    /// Places where credentials could have gone, each time one was looked at.
    pub(super) looked: BTreeMap<&'static str, Count>,
}

impl Heard {
    /// Every one, so that what was never heard is seen too.
    pub(super) const ALL: [(Self, &str); 9] = [
        (Self::Answer, "answers"),
        (Self::Error, "errors"),
        (Self::List, "lists"),
        (Self::Progress, "progress notifications"),
        (Self::LogLine, "log messages"),
        (Self::Question, "questions"),
        (Self::Update, "resource updates"),
        (Self::Change, "list changes"),
        (Self::Health, "health pages"),
    ];

    pub(super) fn of(said: &Value) -> Self {
        match said["method"].as_str() {
            Some("notifications/progress") => return Self::Progress,
            Some("notifications/message") => return Self::LogLine,
            Some("notifications/resources/updated") => return Self::Update,
            Some(method) if method.starts_with("notifications/") => return Self::Change,
            Some(_) => return Self::Question,
            None => {}
        }
        let result = &said["result"];
        let lists = ["tools", "prompts", "resources", "resourceTemplates"];
        if said.get("servers").is_some() {
            Self::Health
        } else if said.get("error").is_some() || result["isError"] == true {
            Self::Error
        } else if lists.iter().any(|list| result[list].is_array()) {
            Self::List
        } else if result["resultType"] == "input_required" {
            Self::Question
        } else {
            Self::Answer
        }
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(one, _)| *one == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Count {
    pub(super) fn add(&mut self, right: bool) {
        *(if right { &mut self.right } else { &mut self.wrong }) += 1;
    }
}

impl Tally {
    fn rows(&self) -> [(&'static str, Vec<(&'static str, Count)>); 3] {
        let heard = Heard::ALL.map(|(kind, name)| (name, self.heard.get(&kind).copied().unwrap_or_default()));
        let of = |counts: &BTreeMap<&'static str, Count>| {
            counts.iter().map(|(name, count)| (*name, *count)).collect()
        };
        [("heard", heard.to_vec()), ("tried", of(&self.tried)), ("looked", of(&self.looked))]
    }

    /// For a program.
    pub(in super::super) fn json(&self) -> Value {
        let count = |(name, count): &(&str, Count)| {
            ((*name).to_owned(), json!({ "right": count.right, "wrong": count.wrong }))
        };
        let rows = self.rows().into_iter();
        Value::Object(
            rows.map(|(part, counts)| (part.to_owned(), counts.iter().map(count).collect())).collect(),
        )
    }

    /// What nobody ever heard or tried: a run without it shows nothing of it.
    pub(in super::super) fn missing(&self) -> Vec<&'static str> {
        let rows = self.rows().into_iter().flat_map(|(_, counts)| counts);
        rows.filter(|(_, count)| count.right + count.wrong == 0).map(|(name, _)| name).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((_, counts), (right, wrong)) in self.rows().into_iter().zip([
            ("heard", "at the wrong one"),
            ("refused", "let through"),
            ("looked at", "wrong"),
        ]) {
            for (name, count) in counts {
                writeln!(f, "  {:>7} {right}, {} {wrong}: {name}", count.right, count.wrong)?;
            }
        }
        Ok(())
    }
}

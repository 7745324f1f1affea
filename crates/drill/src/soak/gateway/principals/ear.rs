//! A reply that is looked through while it is read.

use std::ops::Deref;

use linetender_badserver::agent::Reply;
use serde_json::Value;

use super::super::agent::World;
use super::tally::Heard;
use super::{Pass, marked};

/// How much of what is wrong is told.
const EXCERPT: usize = 400;

/// What came back to an agent.
pub(in super::super) struct Ear {
    reply: Reply,
    world: World,
    /// The one server at whose address it was asked.
    door: Option<String>,
}

impl Ear {
    pub(in super::super) fn new(reply: Reply, world: &World, path: &str) -> Self {
        let door = path.strip_prefix("/mcp/").map(str::to_owned);
        Self { reply, world: world.clone(), door }
    }

    /// The next message; `None` at the end.
    pub(in super::super) async fn next(&mut self) -> Result<Option<Value>, String> {
        let Some(text) = self.reply.next_text().await? else { return Ok(None) };
        let text = String::from_utf8_lossy(&text);
        let said: Value =
            serde_json::from_str(&text).map_err(|error| format!("not a message ({error}): {text}"))?;
        if let Some(pass) = &self.world.pass {
            self.judge(pass, &text, &said);
        }
        Ok(Some(said))
    }

    fn judge(&self, pass: &Pass, text: &str, said: &Value) {
        let kind = Heard::of(said);
        let found = self.wrong(pass, text, said);
        pass.all.tally().heard.entry(kind).or_default().add(found.is_none());
        if let Some(found) = found {
            let excerpt: String = text.chars().take(EXCERPT).collect();
            self.world.notes.finds(format!("{} heard among {kind} {found}: {excerpt}", pass.marker()));
        }
    }

    /// What must not be in it.
    fn wrong(&self, pass: &Pass, text: &str, said: &Value) -> Option<String> {
        if let Some(other) = marked(text).find(|number| *number != pass.number) {
            return Some(format!("what is of {}", super::marker(other)));
        }
        if pass.all.has_secret(text) {
            return Some("a token".to_owned());
        }
        let hidden = self.world.servers.iter().filter(|server| !pass.sees(server));
        if let Some(server) = hidden.into_iter().find(|server| text.contains(server.name)) {
            return Some(format!("of {}, which it may not see", server.name));
        }
        let tools = said["result"]["tools"].as_array()?;
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        let is_hidden = |name: &&str| {
            self.world.servers.iter().any(|server| {
                let own = match &self.door {
                    Some(door) => Some(*name).filter(|_| *door == server.name),
                    None => name.strip_prefix(server.name).and_then(|rest| rest.strip_prefix("__")),
                };
                own.is_some() && own == pass.hidden_tool(server)
            })
        };
        names.into_iter().find(is_hidden).map(|name| format!("the tool {name}, which it may not see"))
    }
}

impl Deref for Ear {
    type Target = Reply;

    fn deref(&self) -> &Reply {
        &self.reply
    }
}

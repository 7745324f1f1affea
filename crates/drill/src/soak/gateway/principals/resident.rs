//! An agent that uses everything that could reach another: lists, log messages, resource updates, tasks and questions, in both eras.

use std::time::Duration;

use http::Method;
use linetender::Era;
use linetender_badserver::agent::Asks;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::super::agent::{HUNG, World};
use super::super::house::{Kind, Scope, Server};
use super::{Ear, Pass};
use crate::dice::Dice;

/// What it does before it goes and comes back.
const ROUNDS: u64 = 6;

const META: &str = "io.modelcontextprotocol/";

/// The servers at which it does that, by the era it comes in. None is all of them.
const LEGACY: [&str; 5] = ["own-pipe", "each-session", "pipe-legacy", "web-legacy", "hidden-red"];
const MODERN: [&str; 5] = ["own-modern", "pipe-modern", "web-modern", "hidden-blue", "some-tools"];

/// One of them, in a visit.
pub(in super::super) struct Resident {
    world: World,
    pass: Pass,
    /// Which of its lives it is.
    life: char,
    dice: Dice,
    era: Era,
    /// The server that it uses, and whether it does at that server's address.
    server: usize,
    alone: bool,
    session: Option<String>,
    last: u64,
    calls: u64,
}

impl Resident {
    pub(in super::super) fn new(world: &World, pass: Pass, life: char, dice: Dice) -> Self {
        let world = world.of(pass.clone());
        let (era, session) = (Era::Legacy, None);
        Self { world, pass, life, dice, era, server: 0, alone: true, session, last: 0, calls: 0 }
    }

    /// Comes and goes until it is told to stop.
    pub(in super::super) async fn live(mut self, pace: Duration, stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            self.chooses();
            if let Err(found) = self.visit(pace, &stop).await {
                self.world.notes.finds(format!("{} at {}: {found}", self.name(), self.path()));
            }
        }
    }

    /// Where it goes next, and as what.
    fn chooses(&mut self) {
        self.era = if self.dice.below(2) == 0 { Era::Legacy } else { Era::Modern };
        let names = if self.era == Era::Legacy { LEGACY } else { MODERN };
        let here = |number: &usize| names.contains(&self.world.servers[*number].name);
        let doors: Vec<_> = self.world.visible().into_iter().filter(here).collect();
        self.server = self.dice.pick(&doors).copied().unwrap_or(0);
        self.alone = self.dice.below(3) > 0;
        (self.session, self.last) = (None, 0);
    }

    fn place(&self) -> &Server {
        &self.world.servers[self.server]
    }

    fn path(&self) -> String {
        if self.alone { format!("/mcp/{}", self.place().name) } else { "/mcp".to_owned() }
    }

    fn name(&self) -> String {
        let era = if self.era == Era::Legacy { 'l' } else { 'm' };
        format!("{}{era}r{}", self.pass.marker(), self.life)
    }

    fn tool(&self, own: &str) -> String {
        if self.alone { own.to_owned() } else { format!("{}__{own}", self.place().name) }
    }

    /// A resource of its own, as its server calls it, and as it is called here.
    fn resource(&self) -> (String, String) {
        let own = format!("note://{}", self.name());
        let public =
            if self.alone { own.clone() } else { format!("linetender://{}/{own}", self.place().name) };
        (own, public)
    }

    async fn visit(&mut self, pace: Duration, stop: &watch::Receiver<bool>) -> Result<(), String> {
        let (_, uri) = self.resource();
        let mut ears = JoinSet::new();
        match self.era {
            Era::Legacy => {
                let client = json!({ "name": self.name(), "version": "1" });
                let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": client });
                let hello = self.message("initialize", hello);
                let mut greeted = self.world.post(&self.path(), Asks::Legacy(None), &hello).await?;
                greeted.next().await?;
                let Some(session) = greeted.session().map(str::to_owned) else {
                    // Its server is down.
                    tokio::time::sleep(pace).await;
                    return Ok(());
                };
                self.pass.opened(&self.path(), &session);
                let headers = [("mcp-session-id", session.as_str())];
                let stream = self.world.send(Method::GET, &self.path(), &headers, String::new()).await?;
                ears.spawn(listen(stream, self.asker(session.clone())));
                self.session = Some(session);
                self.ask("logging/setLevel", json!({ "level": "debug" })).await?;
                self.ask("resources/subscribe", json!({ "uri": uri })).await?;
            }
            Era::Modern => {
                let wanted = json!({ "resourceSubscriptions": [uri], "toolsListChanged": true });
                let listens = self.message("subscriptions/listen", json!({ "notifications": wanted }));
                let stream = self.world.post(&self.path(), Asks::Modern, &listens).await?;
                ears.spawn(listen(stream, self.asker(String::new())));
            }
        }
        for _ in 0..ROUNDS {
            if *stop.borrow() {
                break;
            }
            self.one().await?;
            let thinks = self.dice.below(u64::try_from(pace.as_millis()).unwrap_or(1));
            tokio::time::sleep(Duration::from_millis(thinks)).await;
        }
        if let Some(session) = self.session.take() {
            let headers = [("mcp-session-id", session.as_str())];
            self.world.send(Method::DELETE, &self.path(), &headers, String::new()).await?;
        }
        Ok(())
    }

    fn asker(&self, session: String) -> Asker {
        let asked = self.alone && self.place().scope == Scope::Session;
        Asker { world: self.world.clone(), path: self.path(), session, root: self.resource().0, asked }
    }

    /// One of the things that it does.
    async fn one(&mut self) -> Result<(), String> {
        let (own, _) = self.resource();
        let is_pipe = self.place().kind == Kind::Bad;
        match self.dice.below(7) {
            0 => {
                let lists = ["tools/list", "resources/list", "prompts/list", "resources/templates/list"];
                let list = *self.dice.pick(&lists).unwrap_or(&lists[0]);
                self.ask(list, json!({})).await?;
            }
            1 | 6 => {
                let meta = json!({ format!("{META}logLevel"): "debug" });
                self.call("log", json!({ "level": "warning" }), meta).await?;
            }
            2 | 3 => drop(self.call("touch", json!({ "uri": own }), json!({})).await?),
            4 if is_pipe && self.alone => {
                let (nonce, _) = self.call("task", json!({}), json!({})).await?;
                self.pass.began(&self.path(), &nonce);
                self.ask("tasks/get", json!({ "taskId": nonce })).await?;
            }
            // A legacy server that is shared can ask nobody.
            5 if is_pipe
                && self.alone
                && (self.era == Era::Modern || self.place().scope == Scope::Session) =>
            {
                let (_, answer) = self.call("question", json!({}), json!({})).await?;
                if answer["result"]["resultType"] == "input_required" {
                    let roots = json!({ "roots": { "roots": [{ "uri": own }] } });
                    let state = answer["result"]["requestState"].clone();
                    let nonce = self.nonce();
                    let params = json!({
                        "name": "question", "arguments": { "nonce": nonce }, "inputResponses": roots, "requestState": state,
                    });
                    let answer = self.ask("tools/call", params).await?;
                    self.is_own(&answer, "question")?;
                }
            }
            _ => drop(self.call("write", json!({}), json!({})).await?),
        }
        Ok(())
    }

    fn nonce(&mut self) -> String {
        self.calls += 1;
        format!("s{}-{}{}e", self.server, self.name(), self.calls)
    }

    async fn call(
        &mut self,
        tool: &str,
        mut arguments: Value,
        meta: Value,
    ) -> Result<(String, Value), String> {
        let nonce = self.nonce();
        arguments["nonce"] = nonce.as_str().into();
        let params = json!({ "name": self.tool(tool), "arguments": arguments, "_meta": meta });
        let answer = self.ask("tools/call", params).await?;
        self.is_own(&answer, tool)?;
        Ok((nonce, answer))
    }

    /// An answer is its own, or says what went wrong.
    fn is_own(&self, answer: &Value, tool: &str) -> Result<(), String> {
        let ours = [&answer["result"]["_meta"]["linetender"], &answer["error"]["data"]];
        let failed = ours.iter().any(|fields| fields["source"] == "linetender");
        let asks = answer["result"]["resultType"] == "input_required";
        if failed || asks || answer.to_string().contains(&self.pass.marker()) {
            return Ok(());
        }
        Err(format!("{tool}: an answer that is not its own: {answer}"))
    }

    fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if self.era == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({ "roots": {} });
        }
        json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let message = self.message(method, params);
        let asked = tokio::time::timeout(HUNG, self.answer(method, &message)).await;
        asked.unwrap_or_else(|_| Err(format!("{method} hung")))
    }

    async fn answer(&self, method: &str, message: &Value) -> Result<Value, String> {
        let asks = match self.era {
            Era::Legacy => Asks::Legacy(self.session.as_deref()),
            Era::Modern => Asks::Modern,
        };
        let mut reply = self.world.post(&self.path(), asks, message).await?;
        let asker = self.asker(self.session.clone().unwrap_or_default());
        while let Some(said) = reply.next().await? {
            if said.get("method").is_none() {
                return Ok(said);
            }
            asker.hears(&said).await?;
        }
        Err(format!("{method}: its stream ended without an answer"))
    }
}

/// Answers questions.
struct Asker {
    world: World,
    path: String,
    session: String,
    root: String,
    /// Whether anything may be asked.
    asked: bool,
}

impl Asker {
    async fn hears(&self, said: &Value) -> Result<(), String> {
        if said.get("id").is_none() || said.get("method").is_none() {
            return Ok(());
        }
        if !self.asked {
            return Err(format!("a question that is not for it: {said}"));
        }
        let result = json!({ "roots": [{ "uri": self.root }] });
        let told = json!({ "jsonrpc": "2.0", "id": said["id"], "result": result });
        self.world.post(&self.path, Asks::Legacy(Some(&self.session)), &told).await.map(drop)
    }
}

/// Hears a stream until it ends, or nobody listens any more.
async fn listen(mut stream: Ear, asker: Asker) {
    loop {
        let heard = match stream.next().await {
            Ok(Some(said)) => asker.hears(&said).await,
            Ok(None) => return,
            Err(found) => Err(found),
        };
        if let Err(found) = heard {
            return asker.world.notes.finds(format!("on a stream at {}: {found}", asker.path));
        }
    }
}

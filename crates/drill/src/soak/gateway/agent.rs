//! One of many agents, at the gateway's HTTP door: it calls, changes its mind, hangs up, does not read, goes and returns.
//!
//! All use the same ids and progress tokens, so that whatever is mixed up is also taken for one's own, and only the nonce
//! tells.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use linetender::Era;
use linetender_badserver::Failure;
use linetender_badserver::agent::{self, Asks};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::house::{Kind, Server};
use super::notes::Notes;
use super::principals::{Ear, Pass};
use super::ways::Way;
use crate::dice::Dice;

/// No call may take longer: its own limit, the wait for a line, and what a busy machine adds.
pub(super) const HUNG: Duration = Duration::from_secs(20);

/// Calls of a session.
const CALLS: u64 = 30;

/// What may be said on a session's own stream.
const SAID: &str = "notifications/";

const META: &str = "io.modelcontextprotocol/";

/// What agents have in common.
#[derive(Clone)]
pub(super) struct World {
    pub(super) gateway: SocketAddr,
    pub(super) servers: Arc<[Server]>,
    pub(super) notes: Arc<Notes>,
    /// Whom they act for, if the gateway asks.
    pub(super) pass: Option<Pass>,
}

impl World {
    /// The same for somebody.
    pub(super) fn of(&self, pass: Pass) -> Self {
        Self { pass: Some(pass), ..self.clone() }
    }

    /// The servers that can be seen in it, by number.
    pub(super) fn visible(&self) -> Vec<usize> {
        let sees = |number: &usize| self.pass.as_ref().is_none_or(|pass| pass.sees(&self.servers[*number]));
        (0..self.servers.len()).filter(sees).collect()
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Ear, String> {
        let shown = self.pass.as_ref().map(Pass::authorization);
        let own = shown.as_deref().map(|shown| ("authorization", shown));
        let headers: Vec<_> = headers.iter().copied().chain(own).collect();
        let reply = agent::send(self.gateway, method, path, &headers, body).await?;
        Ok(Ear::new(reply, self, path))
    }

    pub(super) async fn post(&self, path: &str, asks: Asks<'_>, message: &Value) -> Result<Ear, String> {
        let shown = self.pass.as_ref().map(Pass::authorization);
        let own: Vec<_> = shown.as_deref().map(|shown| ("authorization", shown)).into_iter().collect();
        let reply = agent::post_with(self.gateway, path, asks, &own, message).await?;
        Ok(Ear::new(reply, self, path))
    }
}

/// An agent.
pub(super) struct Agent {
    pub(super) world: World,
    name: String,
    era: Era,
    /// The one server whose address it uses; or all.
    door: Option<usize>,
    pub(super) dice: Dice,
    session: Option<String>,
    last: u64,
    calls: u64,
}

impl Agent {
    pub(super) fn new(world: World, name: &str, era: Era, door: Option<usize>, dice: Dice) -> Self {
        let (marker, session) = (world.pass.as_ref().map(Pass::marker).unwrap_or_default(), None);
        Self { world, name: format!("{marker}{name}"), era, door, dice, session, last: 0, calls: 0 }
    }

    /// Comes and goes until it is told to stop. `pace` is how long it thinks at most between two calls.
    pub(super) async fn live(mut self, pace: Duration, stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let mut ear = JoinSet::new();
            match tokio::time::timeout(HUNG, self.begin()).await {
                Ok(Ok(())) => {}
                Ok(Err(found)) => return self.world.notes.finds(format!("{}: {found}", self.name)),
                Err(_) => return self.world.notes.finds(format!("{}: was not greeted", self.name)),
            }
            if let Some(session) = self.session.clone().filter(|_| self.dice.below(2) == 0) {
                let late = Duration::from_millis(self.dice.below(3000));
                ear.spawn(listen(self.world.clone(), self.path(), session, late));
            }
            for _ in 0..CALLS {
                if *stop.borrow() {
                    break;
                }
                self.one_call().await;
                let thinks = self.dice.below(u64::try_from(pace.as_millis()).unwrap_or(1));
                tokio::time::sleep(Duration::from_millis(thinks)).await;
            }
            drop(ear);
            self.end().await;
        }
    }

    fn path(&self) -> String {
        match self.door {
            Some(server) => format!("/mcp/{}", self.world.servers[server].name),
            None => "/mcp".to_owned(),
        }
    }

    async fn begin(&mut self) -> Result<(), String> {
        self.last = 0;
        self.session = None;
        self.world.notes.pages().sessions += 1;
        let hello = match self.era {
            Era::Legacy => {
                let client = json!({ "name": self.name, "version": "1" });
                self.ask(
                    "initialize",
                    json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
                )
            }
            Era::Modern => self.ask("server/discover", json!({})),
        };
        let mut reply = self.post(&hello).await?;
        let answer = reply.next().await?.unwrap_or_default();
        self.session = reply.session().map(str::to_owned);
        // At the address of one server the greeting is that server's, and it may be down.
        let down = answer["error"]["data"]["source"] == "linetender" && self.door.is_some();
        if answer.get("result").is_none() && !down {
            return Err(format!("greeted with {answer}"));
        }
        if self.era == Era::Legacy && self.session.is_none() && !down {
            return Err("greeted without a session".to_owned());
        }
        if let (Some(pass), Some(session)) = (&self.world.pass, &self.session) {
            pass.opened(&self.path(), session);
        }
        Ok(())
    }

    /// Goes, with a word or without.
    async fn end(&mut self) {
        let says_so = self.dice.below(4) > 0;
        if let Some(session) = self.session.take().filter(|_| says_so) {
            let (path, headers) = (self.path(), [("mcp-session-id", session.as_str())]);
            let gone = self.world.send(Method::DELETE, &path, &headers, String::new());
            match tokio::time::timeout(HUNG, gone).await {
                Ok(Ok(reply)) if reply.status == 200 => {}
                Ok(Ok(reply)) => self
                    .world
                    .notes
                    .finds(format!("{}: its end was answered with {}", self.name, reply.status)),
                Ok(Err(found)) => self.world.notes.finds(format!("{}: {found}", self.name)),
                Err(_) => self.world.notes.finds(format!("{}: its end hung", self.name)),
            }
        }
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if self.era == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({});
        }
        json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
    }

    pub(super) async fn post(&self, message: &Value) -> Result<Ear, String> {
        let asks = match self.era {
            Era::Legacy => Asks::Legacy(self.session.as_deref()),
            Era::Modern => Asks::Modern,
        };
        self.world.post(&self.path(), asks, message).await
    }

    async fn one_call(&mut self) {
        // A server that was down when it greeted has given no session; the next greeting will.
        if self.era == Era::Legacy && self.session.is_none() {
            return;
        }
        let all = self.world.visible();
        let server = self.door.or_else(|| self.dice.pick(&all).copied()).unwrap_or(0);
        let way = Way::draw(&mut self.dice, self.world.servers[server].kind, self.era);
        let (tool, arguments) = way.words(self.world.servers[server].kind, &mut self.dice);
        self.call(server, way, tool, arguments).await;
    }

    /// A call, and its outcome in the notes.
    pub(super) async fn call(&mut self, server: usize, way: Way, tool: &str, mut arguments: Value) {
        self.calls += 1;
        let nonce = format!("s{server}-{}n{}e", self.name, self.calls);
        let place = self.world.servers[server].clone();
        arguments["nonce"] = nonce.as_str().into();
        if place.kind == Kind::Real {
            arguments["message"] = nonce.as_str().into();
        }
        let public = if self.door.is_some() { tool.to_owned() } else { format!("{}__{tool}", place.name) };
        let token = self.last + 1;
        let message = self.ask(
            "tools/call",
            json!({ "name": public, "arguments": arguments, "_meta": { "progressToken": token } }),
        );
        let notes = Arc::clone(&self.world.notes);
        let (_, window) = notes.asks(server, &nonce);
        let heard = match tokio::time::timeout(HUNG, way.carry(self, &message, &nonce)).await {
            Ok(Ok(heard)) => heard,
            Ok(Err(found)) => return notes.finds(format!("{nonce} ({tool} at {}): {found}", place.name)),
            // What was told nothing hung: the checker says so.
            Err(_) => return notes.finds(format!("{nonce} ({tool} at {}): {way:?} hung", place.name)),
        };
        let Some(answer) = heard else { return notes.abandons(server, &nonce) };
        match judged(&answer, &nonce) {
            Ok(told) => {
                if let Err(failure) = &told
                    && failure.is_silent()
                {
                    notes.finds(format!("{nonce} ({tool} at {}) was told too little: {answer}", place.name));
                }
                let answered = told.is_ok();
                let took = notes.told(server, &nonce, told);
                if let Some(took) = took.filter(|_| answered && place.calm && way == Way::Plain) {
                    notes.measures(window, took);
                }
                if place.calm && !answered {
                    notes.finds(format!("{nonce}: a server that nobody touched failed: {answer}"));
                }
            }
            Err(found) => notes.finds(format!("{nonce} ({tool} at {}): {found}", place.name)),
        }
    }
}

/// What a call was told; an answer without its nonce is somebody else's.
fn judged(answer: &Value, nonce: &str) -> Result<Result<(), Failure>, String> {
    let ours = [&answer["result"]["_meta"]["linetender"], &answer["error"]["data"]];
    if let Some(fields) = ours.into_iter().find(|fields| fields["source"] == "linetender") {
        return Ok(Err(Failure::of_fields(fields)));
    }
    if answer.to_string().contains(nonce) {
        return Ok(Ok(()));
    }
    Err(format!("an answer that is not its own: {answer}"))
}

/// Hears a session's own stream; whatever belongs to a call must not be on it.
async fn listen(world: World, path: String, session: String, late: Duration) {
    let headers = [("mcp-session-id", session.as_str())];
    let opened = world.send(Method::GET, &path, &headers, String::new()).await;
    tokio::time::sleep(late).await;
    let mut stream = match opened {
        Ok(stream) if stream.status == 200 => stream,
        Ok(stream) => return world.notes.finds(format!("a session's own stream: {}", stream.status)),
        Err(found) => return world.notes.finds(found),
    };
    loop {
        match stream.next().await {
            Ok(Some(said)) => {
                let method = said["method"].as_str().unwrap_or_default();
                if !method.starts_with(SAID) || method == "notifications/progress" {
                    world.notes.finds(format!("said on a session's own stream: {said}"));
                }
                world.notes.pages().notifications += 1;
            }
            Ok(None) => return world.notes.finds("a session's own stream ended by itself".to_owned()),
            Err(found) => return world.notes.finds(found),
        }
    }
}

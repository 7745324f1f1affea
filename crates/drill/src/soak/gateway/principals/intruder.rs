//! Somebody who has a good token of its own, or a bad one, and wants what is another's. It must be refused, and must not learn
//! whether what it asked for exists.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use linetender::Era;
use linetender_badserver::agent::{self, Asks};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::agent::{HUNG, World};
use super::{Ear, OPERATORS, Pass, Principals, add, secret};
use crate::dice::Dice;

/// What its calls are named by: no server may ever run one.
pub(super) const INTRUDES: &str = "intrudes";

const META: &str = "io.modelcontextprotocol/";

/// What is nobody's, named like a server that is there.
const NOBODYS: &str = "hidden-nil";

/// How long a removed token may still open something, by the promise, and what a busy machine adds.
const FORGOTTEN: Duration = Duration::from_secs(4);

/// How long a token that was made may take to be known.
const KNOWN: Duration = Duration::from_secs(10);

/// One of them.
pub(in super::super) struct Intruder {
    world: World,
    pass: Pass,
    dice: Dice,
    calls: u64,
}

/// What was tried, and what is wrong about how it went, if anything.
type Tried = (&'static str, Option<String>);

impl Intruder {
    pub(in super::super) fn new(world: &World, pass: Pass, dice: Dice) -> Self {
        Self { world: world.of(pass.clone()), pass, dice, calls: 0 }
    }

    /// Tries one thing after another until it is told to stop.
    pub(in super::super) async fn live(mut self, pace: Duration, stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            match tokio::time::timeout(HUNG, self.tries()).await {
                Ok(Ok(Some(tried))) => self.note(tried),
                Ok(Ok(None)) => {}
                Ok(Err(found)) => self.world.notes.finds(format!("{} intrudes: {found}", self.pass.marker())),
                Err(_) => self.world.notes.finds(format!("{} intrudes: hung", self.pass.marker())),
            }
            let thinks = self.dice.below(u64::try_from(pace.as_millis()).unwrap_or(1));
            tokio::time::sleep(Duration::from_millis(thinks)).await;
        }
    }

    fn note(&self, (what, found): Tried) {
        self.pass.all.tally().tried.entry(what).or_default().add(found.is_none());
        if let Some(found) = found {
            self.world.notes.finds(format!("{} tried {what}: {found}", self.pass.marker()));
        }
    }

    /// What it tried; nothing if there is nothing to try it with.
    async fn tries(&mut self) -> Result<Option<Tried>, String> {
        match self.dice.below(8) {
            0 | 1 => self.session().await,
            2 => self.event().await.map(Some),
            3 => self.task().await,
            4 => self.hidden_address().await,
            5 => self.hidden_names().await,
            6 => self.health().await.map(Some),
            _ => self.bad_token().await.map(Some),
        }
    }

    /// A session of another: whatever is done with it, it is as if there were none.
    async fn session(&mut self) -> Result<Option<Tried>, String> {
        let others: Vec<_> = {
            let board = self.pass.all.board();
            board.sessions.iter().rev().filter(|(of, ..)| *of != self.pass.number).take(16).cloned().collect()
        };
        let Some((_, path, session)) = self.dice.pick(&others) else { return Ok(None) };
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
        let nonce = format!("{INTRUDES}-{}", self.pass.marker());
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "write", "arguments": { "nonce": nonce } } });
        let last = format!("{}-{}", self.dice.below(4), self.dice.below(4));
        let own = ("mcp-session-id", session.as_str());
        let (what, method, headers, body) = match self.dice.below(5) {
            0 => ("another's session (POST)", Method::POST, vec![own], ping),
            1 => ("another's session (call)", Method::POST, vec![own], call.to_string()),
            2 => ("another's session (GET)", Method::GET, vec![own], String::new()),
            3 => ("another's session (DELETE)", Method::DELETE, vec![own], String::new()),
            _ => {
                let headers = vec![own, ("last-event-id", last.as_str())];
                ("another's session (Last-Event-ID)", Method::GET, headers, String::new())
            }
        };
        let reply = self.world.send(method, path, &headers, body).await?;
        Ok(Some((what, status(&reply, 404))))
    }

    /// An event that was another's, in a session of its own.
    async fn event(&mut self) -> Result<Tried, String> {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": self.pass.marker(), "version": "1" } } });
        let greeted = self.world.post("/mcp", Asks::Legacy(None), &hello).await?;
        let session = greeted.session().ok_or("greeted without a session")?.to_owned();
        // Its own streams are few: nobody's but another's has this number.
        let last = format!("{}-{}", 50 + self.dice.below(50), self.dice.below(4));
        let headers = [("mcp-session-id", session.as_str()), ("last-event-id", last.as_str())];
        let reply = self.world.send(Method::GET, "/mcp", &headers, String::new()).await?;
        let found = status(&reply, 400);
        self.world.send(Method::DELETE, "/mcp", &headers[..1], String::new()).await?;
        Ok(("another's Last-Event-ID", found))
    }

    async fn task(&mut self) -> Result<Option<Tried>, String> {
        let others: Vec<_> = {
            let board = self.pass.all.board();
            let sees = |path: &str| {
                self.world.visible().iter().any(|at| path.ends_with(self.world.servers[*at].name))
            };
            let others =
                board.tasks.iter().rev().filter(|(of, path, _)| *of != self.pass.number && sees(path));
            others.take(16).cloned().collect()
        };
        let Some((_, path, task)) = self.dice.pick(&others).cloned() else { return Ok(None) };
        let methods = ["tasks/get", "tasks/result", "tasks/cancel"];
        let method = *self.dice.pick(&methods).unwrap_or(&methods[0]);
        let answer = self.modern(&path, method, json!({ "taskId": task })).await?.1;
        // Where a server is down, that is said instead.
        let failed = answer["error"]["data"]["source"] == "linetender";
        if failed {
            return Ok(None);
        }
        let refused = answer["error"]["code"] == -32602;
        Ok(Some(("another's task", (!refused).then(|| format!("{method} at {path}: {answer}")))))
    }

    /// The servers that it may not see; for nobody are they there.
    fn hidden(&mut self) -> Option<&'static str> {
        let servers = self.world.servers.iter().filter(|server| !self.pass.sees(server));
        let names: Vec<_> = servers.map(|server| server.name).collect();
        self.dice.pick(&names).copied()
    }

    async fn hidden_address(&mut self) -> Result<Option<Tried>, String> {
        let Some(hidden) = self.hidden() else { return Ok(None) };
        let mut told = Vec::new();
        let legacy = self.dice.below(2) == 0;
        for name in [hidden, NOBODYS] {
            let path = format!("/mcp/{name}");
            let (status, words) = if legacy {
                let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} });
                self.unheard(Method::POST, &path, &[], hello.to_string()).await?
            } else {
                let (status, words) = self.modern(&path, "tools/list", json!({})).await?;
                (status, words.to_string())
            };
            told.push((status, words.replace(name, "NAME")));
        }
        Ok(Some(("a hidden server's address", as_nobodys(&told, Some(404)))))
    }

    /// A hidden server's tools and resources at the address of all, and a tool that is hidden at one server's.
    async fn hidden_names(&mut self) -> Result<Option<Tried>, String> {
        let nonce = self.nonce();
        let tool =
            self.world.servers.iter().find_map(|server| Some((server.name, self.pass.hidden_tool(server)?)));
        if let Some((server, tool)) = tool.filter(|_| self.dice.below(2) == 0) {
            let at = if self.dice.below(2) == 0 { format!("/mcp/{server}") } else { "/mcp".to_owned() };
            let name = if at == "/mcp" { format!("{server}__{tool}") } else { tool.to_owned() };
            let params = json!({ "name": name, "arguments": { "nonce": nonce } });
            let (_, answer) = self.modern(&at, "tools/call", params).await?;
            // Nobody but the gateway may say so: a server that says it was asked.
            let fields = &answer["result"]["_meta"]["linetender"];
            let refused = fields["phase"] == "before sending" && fields["nextTry"] == "never";
            return Ok(Some(("a hidden tool", (!refused).then(|| format!("{name} at {at}: {answer}")))));
        }
        let Some(hidden) = self.hidden() else { return Ok(None) };
        let reads = self.dice.below(3) == 0;
        let mut told = Vec::new();
        for name in [hidden, NOBODYS] {
            let (method, params) = if reads {
                ("resources/read", json!({ "uri": format!("linetender://{name}/note://a") }))
            } else {
                ("tools/call", json!({ "name": format!("{name}__write"), "arguments": { "nonce": nonce } }))
            };
            let (status, answer) = self.modern("/mcp", method, params).await?;
            told.push((status, answer.to_string().replace(name, "NAME")));
        }
        let what = if reads { "a hidden server's resource" } else { "a hidden server's tool" };
        Ok(Some((what, as_nobodys(&told, None))))
    }

    async fn health(&mut self) -> Result<Tried, String> {
        let mut reply = self.world.send(Method::GET, "/readyz", &[], String::new()).await?;
        // What stands there is looked through as everything is.
        let page = reply.next().await?.unwrap_or_default();
        let servers = page["servers"].as_object().map_or(0, serde_json::Map::len);
        let visible = self.world.visible().len();
        Ok(("hidden servers on the health page", (servers != visible).then(|| page.to_string())))
    }

    async fn bad_token(&mut self) -> Result<Tried, String> {
        let spent = &self.pass.all.spent;
        let made_up = format!("Bearer {}AAAA", super::TOKEN);
        let (what, shown) = match self.dice.below(spent.len() as u64 + 2) {
            0 => ("no token", None),
            1 => ("a made up token", Some(made_up)),
            at => {
                let (what, token) = &spent[usize::try_from(at).unwrap_or(2) - 2];
                (*what, Some(format!("Bearer {token}")))
            }
        };
        let headers: Vec<_> = shown.as_deref().map(|shown| ("authorization", shown)).into_iter().collect();
        let list = message("tools/list", json!({}));
        let reply = agent::post_with(self.world.gateway, "/mcp", Asks::Modern, &headers, &list).await?;
        Ok((what, (reply.status != 401).then(|| format!("answered with {}", reply.status))))
    }

    fn nonce(&mut self) -> String {
        self.calls += 1;
        format!("{INTRUDES}-{}{}", self.pass.marker(), self.calls)
    }

    /// A modern request; its status and answer.
    async fn modern(&self, path: &str, method: &str, params: Value) -> Result<(u16, Value), String> {
        let message = message(method, params);
        let name = message["params"].get("name").or(message["params"].get("uri"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        headers.extend((!name.is_empty()).then_some(("mcp-name", name.as_str())));
        let (status, words) = self.unheard(Method::POST, path, &headers, message.to_string()).await?;
        Ok((status, serde_json::from_str(&words).unwrap_or(Value::String(words))))
    }

    /// A request whose answer may name what was asked for, and is looked through for everything else that is another's.
    async fn unheard(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<(u16, String), String> {
        let shown = self.pass.authorization();
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", shown.as_str())]).collect();
        let mut reply = agent::send(self.world.gateway, method, path, &headers, body).await?;
        let (status, mut words) = (reply.status.as_u16(), String::new());
        while let Some(text) = reply.next_text().await? {
            words = String::from_utf8_lossy(&text).into_owned();
            if super::marked(&words).any(|number| number != self.pass.number) {
                self.world.notes.finds(format!("{} intrudes, and heard {words}", self.pass.marker()));
            }
        }
        Ok((status, words))
    }
}

fn message(method: &str, mut params: Value) -> Value {
    params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
    params["_meta"][format!("{META}clientCapabilities")] = json!({});
    json!({ "jsonrpc": "2.0", "id": "i", "method": method, "params": params })
}

fn status(reply: &Ear, wanted: u16) -> Option<String> {
    (reply.status != wanted).then(|| format!("answered with {}, not {wanted}", reply.status))
}

/// The same has to be told of what is hidden and of what is not there: a refusal.
fn as_nobodys(told: &[(u16, String)], wanted: Option<u16>) -> Option<String> {
    let same = told.windows(2).all(|two| two[0] == two[1]);
    let refused = told.iter().all(|(status, words)| {
        let says_so = words.contains("\"error\"") || words.contains("not executed");
        wanted.is_none_or(|wanted| wanted == *status) && says_so
    });
    (!same || !refused).then(|| format!("{told:?}"))
}

/// Somebody who is given a token, uses it, and has it taken away, again and again.
pub(in super::super) async fn leaver(all: Arc<Principals>, world: World, stop: watch::Receiver<bool>) {
    let mut number = 0;
    while !*stop.borrow() {
        number += 1;
        match leaves(&all, &world, number).await {
            Ok(found) => {
                all.tally().tried.entry("a token that was just removed").or_default().add(found.is_none());
                if let Some(found) = found {
                    world.notes.finds(found);
                }
            }
            Err(found) => return world.notes.finds(format!("a guest: {found}")),
        }
    }
}

async fn leaves(all: &Principals, world: &World, number: u32) -> Result<Option<String>, String> {
    let name = format!("guest-{number}");
    let token = add(&all.file, &name, &[OPERATORS], None).await?;
    all.secrets.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(secret(&token));
    let shown = format!("Bearer {token}");
    let list = message("tools/list", json!({}));
    let asks = async || {
        let own = [("authorization", shown.as_str())];
        let reply = agent::post_with(world.gateway, "/mcp", Asks::Modern, &own, &list).await?;
        Ok::<_, String>(reply.status.as_u16())
    };
    let known = async {
        while asks().await? != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, String>(())
    };
    tokio::time::timeout(KNOWN, known).await.map_err(|_| "its token is not known".to_owned())??;
    all.file.remove(&name).await.map_err(|error| error.to_string())?;
    tokio::time::sleep(FORGOTTEN).await;
    let status = asks().await?;
    Ok((status != 401).then(|| format!("a removed token is answered with {status}")))
}

/// Which era a name says that a call was made in.
pub(super) fn era_of(nonce: &str) -> Option<Era> {
    match nonce.rsplit_once('~')?.1.chars().next()? {
        'l' => Some(Era::Legacy),
        'm' => Some(Era::Modern),
        _ => None,
    }
}

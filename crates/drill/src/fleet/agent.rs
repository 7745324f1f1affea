//! One of many agents behind the balancer. It never repeats a call, with one exception: after a 404 for its session it begins a new
//! one and asks once more, as MCP requires.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linetender::Era;
use linetender_badserver::Failure;
use linetender_badserver::agent::{self, Asks, Reply};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::house::Server;
use super::notes::Notes;
use crate::dice::Dice;

/// How long an agent waits for an answer: as long as agents commonly do, and longer than any fault lasts. Later is hung.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest that it thinks between two calls, in milliseconds; and after one that failed.
const THINKS: u64 = 3000;
const SULKS: u64 = 500;

/// Calls of a session.
const CALLS: u64 = 30;

const META: &str = "io.modelcontextprotocol/";

/// What agents have in common.
#[derive(Clone)]
pub(super) struct World {
    /// The balancer, or one gateway.
    pub(super) address: SocketAddr,
    pub(super) servers: Arc<[Server]>,
    pub(super) notes: Arc<Notes>,
}

/// What came of a request.
enum Heard {
    /// The answer.
    Answer(Value),
    /// The session is not known.
    Forgotten,
    /// The connection broke, or the balancer said something itself.
    Broken(String),
}

/// An agent.
pub(super) struct Agent {
    world: World,
    name: String,
    era: Era,
    /// The one server whose address it uses; or all.
    door: Option<usize>,
    dice: Dice,
    session: Option<String>,
    last: u64,
    calls: u64,
}

impl Agent {
    pub(super) fn new(world: World, name: String, era: Era, door: Option<usize>, dice: Dice) -> Self {
        Self { world, name, era, door, dice, session: None, last: 0, calls: 0 }
    }

    /// Comes and goes until it is told to stop.
    pub(super) async fn live(mut self, mut stop: watch::Receiver<bool>) {
        let all = self.world.servers.len() as u64;
        while !*stop.borrow() {
            self.session = None;
            for _ in 0..CALLS {
                let server = self.door.unwrap_or_else(|| usize::try_from(self.dice.below(all)).unwrap_or(0));
                let (tool, arguments) = match self.dice.below(5) {
                    0 => ("sleep", json!({ "ms": self.dice.below(300) })),
                    _ => ("write", json!({})),
                };
                let answered = self.call(server, tool, arguments).await;
                let thinks = Duration::from_millis(self.dice.below(if answered { THINKS } else { SULKS }));
                if tokio::time::timeout(thinks, stop.wait_for(|stop| *stop)).await.is_ok() {
                    return;
                }
            }
        }
    }

    /// A call, and its outcome in the notes. Whether it was answered.
    pub(super) async fn call(&mut self, server: usize, tool: &str, mut arguments: Value) -> bool {
        self.calls += 1;
        let nonce = format!("s{server}-{}n{}e", self.name, self.calls);
        arguments["nonce"] = nonce.as_str().into();
        let name = &self.world.servers[server].name;
        let tool = if self.door.is_some() { tool.to_owned() } else { format!("{name}__{tool}") };
        let notes = Arc::clone(&self.world.notes);
        notes.asks(server, &nonce);
        let asked = tokio::time::timeout(PATIENCE, self.ask_in_session(&tool, &arguments)).await;
        // What was told nothing hung: the checker says so.
        let Ok(heard) = asked else { return false };
        match heard {
            Heard::Answer(answer) => match judged(&answer, &nonce) {
                Ok(told) => {
                    let answered = told.is_ok();
                    if told.as_ref().is_err_and(Failure::is_silent) {
                        notes.finds(format!("{nonce} was told too little: {answer}"));
                    }
                    notes.told(server, &nonce, told);
                    return answered;
                }
                Err(found) => {
                    notes.broke(server, &nonce, "an answer that says nothing");
                    notes.finds(format!("{nonce}: {found}"));
                }
            },
            // A 404 says that nothing was done.
            Heard::Forgotten => {
                notes.fails(server, &nonce, "its session was not known, twice", "not executed");
            }
            Heard::Broken(how) => notes.broke(server, &nonce, &how),
        }
        false
    }

    /// Asks; in the legacy era in a session, which is begun if there is none, and once anew if it is not known.
    async fn ask_in_session(&mut self, tool: &str, arguments: &Value) -> Heard {
        for last in [false, true] {
            if self.era == Era::Legacy && self.session.is_none() {
                match self.begin().await {
                    Heard::Answer(_) if self.session.is_some() => {}
                    // At the address of one server the greeting is that server's, and it may be down.
                    heard => return heard,
                }
            }
            let message = self.message("tools/call", json!({ "name": tool, "arguments": arguments }));
            let heard = self.ask(&message).await;
            if !matches!(heard, Heard::Forgotten) || last {
                return heard;
            }
            self.session = None;
            let at = self.world.notes.now();
            self.world.notes.pages().forgotten.push(at);
        }
        Heard::Forgotten
    }

    async fn begin(&mut self) -> Heard {
        self.last = 0;
        self.world.notes.pages().sessions += 1;
        let client = json!({ "name": self.name, "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let message = self.message("initialize", hello);
        let mut reply = match self.post(&message).await {
            Ok(reply) => reply,
            Err(how) => return Heard::Broken(how),
        };
        self.session = reply.session().map(str::to_owned);
        heard(&mut reply).await
    }

    fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if self.era == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({});
        }
        json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
    }

    async fn ask(&self, message: &Value) -> Heard {
        match self.post(message).await {
            Ok(reply) if reply.status == 404 && self.era == Era::Legacy => Heard::Forgotten,
            Ok(mut reply) => heard(&mut reply).await,
            Err(how) => Heard::Broken(how),
        }
    }

    async fn post(&self, message: &Value) -> Result<Reply, String> {
        let path = self.door.map_or("/mcp".to_owned(), |at| format!("/mcp/{}", self.world.servers[at].name));
        let asks = match self.era {
            Era::Legacy => Asks::Legacy(self.session.as_deref()),
            Era::Modern => Asks::Modern,
        };
        agent::post(self.world.address, &path, asks, message).await
    }
}

/// Reads until the answer.
async fn heard(reply: &mut Reply) -> Heard {
    let kind = reply.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/html") {
        return Heard::Broken(format!("{} from the balancer", reply.status.as_u16()));
    }
    loop {
        match reply.next().await {
            Ok(Some(said)) if said.get("method").is_some() => {}
            Ok(Some(said)) => return Heard::Answer(said),
            Ok(None) => return Heard::Broken("the stream ended without an answer".to_owned()),
            Err(how) => return Heard::Broken(how),
        }
    }
}

/// What a call was told; an answer without its nonce is another's.
fn judged(answer: &Value, nonce: &str) -> Result<Result<(), Failure>, String> {
    let ours = [&answer["result"]["_meta"]["linetender"], &answer["error"]["data"]];
    if let Some(fields) = ours.into_iter().find(|fields| fields["source"] == "linetender") {
        let failure = Failure::of_fields(fields);
        // What a gateway says of a session at the address of all servers is about none of them.
        let server = if fields["server"].is_null() { "-".to_owned() } else { failure.server };
        return Ok(Err(Failure { server, ..failure }));
    }
    if answer.to_string().contains(nonce) {
        return Ok(Ok(()));
    }
    Err(format!("an answer that is not its own: {answer}"))
}

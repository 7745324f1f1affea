//! A legacy agent on a session's pipes: whatever the server asks in the middle of a call comes to it, and is answered.

use linetender::session::{Ended, serve};
use linetender::{Rig, Server};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use super::answers::{answer, filled};
use super::{Outcome, who};

/// What the pipes between agent and session hold.
const PIPE: usize = 64 * 1024;

/// Serves an agent that calls every tool, until it is done.
pub(super) async fn run(server: Server, version: &str) -> Outcome<()> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (input, output) = tokio::io::split(theirs);
    let rig = Rig::new();
    let session = serve(server, &rig, input, output, std::future::pending());
    let (done, ended) = tokio::join!(Agent::on(ours).call_every_tool(version), session);
    match ended {
        Ended::AgentGone => done,
        other => Err(format!("the session ended otherwise: {other:?}").into()),
    }
}

struct Agent {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    last: u64,
}

impl Agent {
    fn on(pipe: DuplexStream) -> Self {
        let (input, output) = tokio::io::split(pipe);
        Self { input: BufReader::new(input).lines(), output, last: 0 }
    }

    async fn call_every_tool(mut self, version: &str) -> Outcome<()> {
        self.ask("initialize", who(version)).await?;
        self.tell(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        let listed = self.ask("tools/list", json!({})).await?;
        for tool in listed["tools"].as_array().into_iter().flatten() {
            let arguments = filled(&tool["inputSchema"]);
            let result =
                self.ask("tools/call", json!({ "name": tool["name"], "arguments": arguments })).await?;
            println!("{result}");
        }
        Ok(())
    }

    /// Makes a request, and answers the server's until it is answered itself.
    async fn ask(&mut self, method: &str, params: Value) -> Outcome<Value> {
        self.last += 1;
        self.tell(json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })).await?;
        loop {
            let text = self.input.next_line().await?.ok_or("the session hung up")?;
            let mut said: Value = serde_json::from_str(&text)?;
            match said["method"].as_str() {
                Some(method) if said.get("id").is_some() => {
                    let reply = match answer(method, &said["params"]) {
                        Some(result) => json!({ "jsonrpc": "2.0", "id": said["id"], "result": result }),
                        None => json!({
                            "jsonrpc": "2.0",
                            "id": said["id"],
                            "error": { "code": -32601, "message": "nobody here can answer that" },
                        }),
                    };
                    self.tell(reply).await?;
                }
                None if said["id"] == self.last => {
                    return match said.get("error") {
                        Some(error) => Err(format!("{method} was answered with {error}").into()),
                        None => Ok(said["result"].take()),
                    };
                }
                // News, or an answer that nobody waits for.
                _ => {}
            }
        }
    }

    async fn tell(&mut self, message: Value) -> Outcome<()> {
        self.output.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(())
    }
}

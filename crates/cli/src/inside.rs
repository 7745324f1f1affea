//! `linetender inside`: an MCP server that tells an agent about its own servers, so that it can help itself.
//!
//! It is configured like any other server, so it is off unless somebody wants it, and who may use it is decided where that is
//! decided for all servers (`access`). It knows only what the linetender process says that started it: its ancestor.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;

use linetender::NextTry;
use linetender_holder::holder::{Act, Ask, Done, Report, UnderWayReport, ask_holder};
use serde_json::{Value, json};

use crate::{args, holders, places};

/// The revision that is spoken; what an agent asks for is echoed if it is known.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The longest message: as long as linetender, which is the peer, lets through.
const LONGEST: u64 = 32 * 1024 * 1024;

const STATUS: &str = "linetender://status";

pub(crate) fn inside(args: &args::Inside) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let Some(holder) = args.pid.or_else(|| runtime.block_on(ancestor())) else {
        eprintln!(
            "linetender inside: no linetender process started this. Configure it as a server of `linetender serve` or `run`, or \
             name a process with --pid"
        );
        return ExitCode::FAILURE;
    };
    let inside = Inside { holder, may_act: !args.read_only };
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) => return ExitCode::SUCCESS,
            // The rest of it would be read as other messages, and its caller would wait for nothing.
            Ok(_) if line.len() as u64 == LONGEST && line.last() != Some(&b'\n') => {
                eprintln!("linetender inside: a message is longer than {LONGEST} bytes");
                return ExitCode::FAILURE;
            }
            Ok(_) => {}
            Err(error) => {
                eprintln!("linetender inside: cannot read: {error}");
                return ExitCode::FAILURE;
            }
        }
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let answer = match runtime.block_on(inside.answer(method, &message["params"])) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        };
        let mut out = io::stdout().lock();
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            return ExitCode::SUCCESS;
        }
    }
}

struct Inside {
    holder: u32,
    may_act: bool,
}

impl Inside {
    async fn answer(&self, method: &str, params: &Value) -> Result<Value, (i32, String)> {
        match method {
            "initialize" => Ok(self.initialized(params)),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": self.tools() })),
            "resources/list" => Ok(json!({ "resources": [{
                "uri": STATUS, "name": "status", "mimeType": "application/json",
                "description": "State of every MCP server that linetender supervises here, and what became of calls",
            }] })),
            "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
            "resources/read" if params["uri"] == STATUS => {
                let report = self.status().await.map_err(|error| (-32603, error.to_string()))?;
                let text = serde_json::to_string(&report).unwrap_or_default();
                Ok(json!({ "contents": [{ "uri": STATUS, "mimeType": "application/json", "text": text }] }))
            }
            "resources/read" => Err((-32002, "no such resource".to_owned())),
            "tools/call" => self.called(params).await,
            _ => Err((-32601, format!("no such method: {}", method.chars().take(100).collect::<String>()))),
        }
    }

    fn initialized(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let revision = REVISIONS.iter().find(|known| **known == asked).unwrap_or(&REVISIONS[0]);
        let then =
            if self.may_act { " If a server hangs or is parked, server_redial restarts it." } else { "" };
        json!({
            "protocolVersion": revision,
            "capabilities": { "tools": {}, "resources": {} },
            "serverInfo": { "name": "linetender", "version": env!("CARGO_PKG_VERSION") },
            "instructions": format!("State of the MCP servers that you use. Ask server_status when calls to a server fail.{then}"),
        })
    }

    fn tools(&self) -> Value {
        let server = json!({ "server": { "type": "string", "description": "Name of the server" } });
        let looks = |name: &str, description: &str, properties: &Value| {
            json!({
                "name": name, "description": description,
                "inputSchema": { "type": "object", "properties": properties },
                "annotations": { "readOnlyHint": true, "openWorldHint": false },
            })
        };
        let mut tools = vec![
            looks(
                "server_status",
                "State of one MCP server, or of all: up, down or parked, since when, the last error, and the next try",
                &server,
            ),
            looks(
                "calls_in_progress",
                "Calls that have not been answered yet, and how long they have taken",
                &json!({}),
            ),
        ];
        if self.may_act {
            tools.push(json!({
                "name": "server_redial",
                "description": "Restart one MCP server, or reconnect to it. Calls in progress on it end with an error",
                "inputSchema": { "type": "object", "properties": server, "required": ["server"] },
                "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false },
            }));
        }
        Value::from(tools)
    }

    async fn called(&self, params: &Value) -> Result<Value, (i32, String)> {
        let server = params["arguments"]["server"].as_str();
        let said = match (params["name"].as_str().unwrap_or_default(), server) {
            ("server_status", server) => self.status().await.and_then(|report| told(report, server)),
            ("calls_in_progress", _) => {
                let calls =
                    ask_holder::<Vec<UnderWayReport>>(&places::sockets(), self.holder, &Ask::Calls).await;
                let calls = calls.map(|calls| calls.into_iter().map(unnamed).collect::<Vec<_>>());
                calls.map(|calls| if calls.is_empty() { "none".to_owned() } else { json!(calls).to_string() })
            }
            ("server_redial", Some(server)) if self.may_act => self.redial(server).await,
            ("server_redial", None) if self.may_act => {
                Err(io::Error::other("the argument `server` is missing"))
            }
            _ => return Err((-32602, "no such tool".to_owned())),
        };
        let (text, failed) = said.map_or_else(|error| (error.to_string(), true), |text| (text, false));
        Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": failed }))
    }

    /// Restarts a server, unless a person took it out of service: an agent does not undo that.
    async fn redial(&self, server: &str) -> io::Result<String> {
        let when_woken = Some(NextTry::WhenWoken.to_string());
        let report = self.status().await?;
        if report.lines.iter().any(|line| line.server == server && line.next_try == when_woken) {
            let why = "an operator took this server out of service, and only an operator brings it back";
            return Err(io::Error::other(why));
        }
        let act = Ask::Act(Act::Redial { server: server.to_owned() });
        Ok(ask_holder::<Done>(&places::sockets(), self.holder, &act).await?.done)
    }

    async fn status(&self) -> io::Result<Report> {
        let mut report = ask_holder::<Report>(&places::sockets(), self.holder, &Ask::Status).await?;
        for line in &mut report.lines {
            // What a server wrote to stderr may quote what others asked of it.
            if let Some(cause) = &mut line.cause {
                cause.stderr = None;
            }
        }
        // So may the names in the list of slow calls.
        for server in &mut report.servers {
            server.slowest.clear();
        }
        Ok(report)
    }
}

/// A call without what its caller alone should know. Behind a gateway, where callers have names, it may be another agent's.
fn unnamed(call: UnderWayReport) -> UnderWayReport {
    match call.principal {
        None => call,
        Some(_) => UnderWayReport { tool: None, principal: None, ..call },
    }
}

/// A report in words, for a model.
fn told(report: Report, server: Option<&str>) -> io::Result<String> {
    let names: Vec<String> = report.lines.iter().map(|line| line.server.clone()).collect();
    let wanted = report.lines.into_iter().filter(|line| server.is_none_or(|server| server == line.server));
    let lines: Vec<String> = wanted
        .map(|line| {
            let mut words = format!("{}: {} for {} s", line.server, line.state, line.since_millis / 1000);
            for (what, text) in [
                ("", line.health),
                ("last error: ", line.cause.map(|cause| cause.text)),
                ("next try: ", line.next_try),
            ] {
                if let Some(text) = text {
                    words = format!("{words}; {what}{text}");
                }
            }
            words
        })
        .collect();
    if lines.is_empty() {
        return Err(io::Error::other(format!("no server of this name; there are: {}", names.join(", "))));
    }
    Ok(lines.join("\n"))
}

/// The linetender process that started this, if one did.
async fn ancestor() -> Option<u32> {
    let holders: Vec<u32> = holders::all().await.iter().map(|found| found.pid).collect();
    let mut pid = std::process::id();
    for _ in 0..64 {
        pid = parent(pid)?;
        if holders.contains(&pid) {
            return Some(pid);
        }
    }
    None
}

// proc_pid_stat(5): the parent is the second word after the name, which stands in brackets and may hold any character.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 1)
}

//! The server that misbehaves.

mod apps;
mod flags;
mod habits;
mod listens;
mod talk;
mod tasks;
mod tools;

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::book::Pen;
use crate::{arguments, exact, itself, offers};
use flags::{Flags, Spoken};
use listens::Listens;
pub use tools::TOOLS;

/// Runs the server until end of file, or until a fault ends it. With `--http` it is a [`webserver`](crate::webserver).
pub fn main(args: impl Iterator<Item = String>) -> ExitCode {
    let args: Vec<_> = args.collect();
    if args.iter().any(|arg| arg == "--http") {
        return crate::webserver::main(args.into_iter());
    }
    let flags = match Flags::parse(args.into_iter()) {
        Ok(flags) => flags,
        Err(error) => {
            eprintln!("badserver: {error}");
            return ExitCode::FAILURE;
        }
    };
    flags.take_mark();
    if flags.is_unfixed() {
        return unfixed(&flags);
    }
    match Server::start(flags) {
        Ok(server) => server.serve(),
        Err(code) => code,
    }
}

/// A program that is no server yet: it says why, or writes back what it reads.
fn unfixed(flags: &Flags) -> ExitCode {
    const UNFIXED: u8 = 3;
    if flags.echoes {
        let copied = io::copy(&mut io::stdin().lock(), &mut io::stdout().lock());
        return if copied.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    eprintln!("no API key");
    ExitCode::from(UNFIXED)
}

/// A server, shared by the threads that run its tools.
struct Server {
    flags: Flags,
    pen: Mutex<Pen>,
    calls: Mutex<u32>,
    /// What whoever greeted it can do.
    declared: Mutex<Value>,
    /// Whether anybody initialized it.
    initialized: AtomicBool,
    /// The call that waits for the agent's answer.
    asked: Mutex<Option<Value>>,
    /// Who wants to hear of what.
    listens: Listens,
    tasks: tasks::Tasks,
    habits: habits::Habits,
}

impl Server {
    fn start(flags: Flags) -> Result<Arc<Self>, ExitCode> {
        // First of all, so that one that is killed before it gets to a word was still started.
        let mut pen = Pen::open(flags.book.as_deref()).map_err(|error| {
            eprintln!("badserver: cannot open its book: {error}");
            ExitCode::FAILURE
        })?;
        pen.write("start", "-");
        if let Some(text) = &flags.stderr {
            eprintln!("{text}");
        }
        if let Some(status) = flags.exit {
            return Err(ExitCode::from(status));
        }
        flags.start_up();
        if flags.noise {
            say_raw("badserver is listening\nINFO ready\n");
        }
        let habits = flags.habits.start(&mut pen);
        let (pen, listens) = (Mutex::new(pen), Listens::default());
        let (calls, declared, asked) = (Mutex::new(0), Mutex::default(), Mutex::default());
        let tasks = tasks::Tasks::default();
        let initialized = AtomicBool::new(false);
        let server =
            Arc::new(Self { flags, pen, calls, declared, initialized, asked, listens, tasks, habits });
        server.save_on_signal();
        Ok(server)
    }

    fn serve(self: Arc<Self>) -> ExitCode {
        if self.flags.deaf {
            loop {
                std::thread::park();
            }
        }
        while let Some(line) = self.read_line() {
            if let Some(text) = exact::answer(&line) {
                say_raw(&format!("{text}\n"));
                continue;
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            let asks = message.get("id").is_some() && message.get("method").is_some();
            if asks && let Some(code) = self.request(&message) {
                return code;
            }
            if !asks && message.get("id").is_some() {
                self.told(&message);
            }
            if let (None, Some(method)) = (message.get("id"), message["method"].as_str()) {
                self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("heard", method);
            }
            if message["method"] == "notifications/cancelled" {
                self.listens.cancel(&message["params"]["requestId"]);
                let nonce = format!("cancelled:{}", message["params"]["requestId"]);
                self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("run", &nonce);
                // Some servers answer what must not be answered, and without saying to what.
                if self.flags.scolds {
                    say(
                        &json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": "not a request" } }),
                    );
                }
            }
        }
        // A server that is told to go says goodbye, and saves its state only if it could.
        if self.flags.last_words
            && io::stdout().write_all(b"goodbye\n").and_then(|()| io::stdout().flush()).is_ok()
        {
            self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("run", "end-of-file");
        }
        self.save();
        if self.flags.ignore_eof {
            loop {
                std::thread::park();
            }
        }
        ExitCode::SUCCESS
    }

    /// A line; byte by byte if what was not asked for may not be taken from the pipe.
    fn read_line(&self) -> Option<String> {
        let mut line = Vec::new();
        if self.flags.careful {
            let mut stdin = itself::unbuffered()?;
            let mut byte = [0];
            while stdin.read(&mut byte).ok()? == 1 {
                line.push(byte[0]);
                if byte[0] == b'\n' {
                    break;
                }
            }
        } else {
            io::stdin().lock().read_until(b'\n', &mut line).ok()?;
        }
        if line.is_empty() { None } else { Some(String::from_utf8_lossy(&line).into_owned()) }
    }

    fn request(self: &Arc<Self>, message: &Value) -> Option<ExitCode> {
        let (id, params) = (&message["id"], &message["params"]);
        let method = message["method"].as_str().unwrap_or_default();
        if method == "initialize" {
            self.initialized.store(true, Ordering::Relaxed);
        }
        // As the Python SDK does, which answers pings.
        if let Some(code) = self.flags.strangers
            && !self.initialized.load(Ordering::Relaxed)
            && !matches!(method, "ping" | "server/discover")
        {
            self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("stranger", method);
            refuse(id, code, "Invalid request parameters");
            return None;
        }
        match message["method"].as_str().unwrap_or_default() {
            "server/discover" => match self.flags.spoken {
                Spoken::Legacy => refuse(id, -32601, "method not found"),
                Spoken::ExitOnDiscover => return Some(ExitCode::from(1)),
                Spoken::SilentOnDiscover => {}
                Spoken::Both | Spoken::Modern => answer(id, &self.discovered()),
            },
            "initialize" if self.flags.spoken == Spoken::Modern => refuse(id, -32022, "modern only"),
            "initialize" => {
                let declared = params["capabilities"].clone();
                *self.declared.lock().unwrap_or_else(PoisonError::into_inner) = declared;
                self.initialized(id, params);
            }
            "ping" => answer(id, &json!({})),
            "tools/list" if offers::is_modern(params) => {
                answer(id, &offers::modern("tools/list", self.tool_list()));
            }
            "tools/list" => {
                answer(id, &self.tool_list());
                if self.flags.restless {
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                }
            }
            "tools/call" => return self.call(id, params),
            method if self.flags.tasks && method.starts_with("tasks/") => {
                self.tasks.request(id, method, params);
            }
            "subscriptions/listen" if offers::is_modern(params) => {
                if tasks::is_undeclared(params) {
                    refuse(id, -32021, "Missing required client capability");
                } else {
                    self.listens.open(id, params);
                }
            }
            method @ ("logging/setLevel" | "resources/subscribe" | "resources/unsubscribe") => {
                self.listens.legacy(method, params);
                let asked = format!("{method}:{params}");
                self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("run", &asked);
                answer(id, &json!({}));
            }
            method => match self.offered(method, params) {
                Some(result) if offers::is_modern(params) => answer(id, &offers::modern(method, result)),
                Some(result) => answer(id, &result),
                None => refuse(id, -32601, "method not found"),
            },
        }
        None
    }

    fn initialized(&self, id: &Value, params: &Value) {
        let revision = self.flags.revision.as_deref();
        let result = json!({
            "protocolVersion": revision.map_or(params["protocolVersion"].clone(), Value::from),
            "capabilities": self.capabilities(),
            "serverInfo": { "name": "badserver", "version": "1" },
        });
        answer(id, &self.with_instructions(result));
    }

    /// The result of a request that is about what it has besides tools.
    fn offered(&self, method: &str, params: &Value) -> Option<Value> {
        let pages = apps::answer(method, params).filter(|_| self.flags.apps);
        pages.or_else(|| offers::answer(method, params).filter(|_| self.flags.full))
    }

    /// What it says it has; not all of it need be true.
    fn capabilities(&self) -> Value {
        let mut all = self.basics();
        if self.flags.tasks {
            all["tasks"] = tasks::capability();
        }
        if self.flags.no_prompts && !self.flags.full {
            all["prompts"] = json!({ "listChanged": true });
        }
        all
    }

    /// What it says it has in either era.
    fn basics(&self) -> Value {
        let mut all = if self.flags.full {
            offers::capabilities()
        } else {
            json!({ "tools": { "listChanged": true } })
        };
        if self.flags.apps {
            all["resources"] = json!({ "listChanged": true, "subscribe": true });
            all["extensions"] = json!({ (apps::EXTENSION): {}, "com.example/odd": { "x": 1 } });
            all["experimental"] = json!({ "com.example/odd": {} });
        }
        all
    }

    fn discovered(&self) -> Value {
        let mut capabilities = self.basics();
        if self.flags.tasks {
            capabilities["extensions"][tasks::EXTENSION] = json!({});
        }
        self.with_instructions(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
            "ttlMs": 0, "cacheScope": "private", "resultType": "complete",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "badserver", "version": "1" } },
        }))
    }

    fn with_instructions(&self, mut greeting: Value) -> Value {
        if let Some(text) = &self.flags.instructions {
            greeting["instructions"] = text.as_str().into();
        }
        greeting
    }

    /// The agent answered our question: the call that asked it is answered with that.
    fn told(&self, message: &Value) {
        if let Some(id) = self.asked.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let text = message.to_string();
            answer(&id, &json!({ "content": [{ "type": "text", "text": text }] }));
        }
    }

    fn tool_list(&self) -> Value {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("list", "tools");
        let mut tools: Vec<_> = TOOLS
            .iter()
            .map(|(name, what)| json!({ "name": name, "description": what, "inputSchema": arguments::schema(name) }))
            .collect();
        tools[0]["annotations"] = json!({ "readOnlyHint": true });
        if let Some(extra) = &self.flags.extra_tool() {
            tools.push(json!({ "name": extra, "inputSchema": arguments::schema(extra) }));
        }
        if self.flags.apps {
            tools.extend(apps::tools());
        }
        if self.flags.tasks {
            tools.extend(tasks::tools());
        }
        let more = |n| json!({ "name": format!("more-{n}"), "inputSchema": { "type": "object" } });
        tools.extend(self.flags.habits.tools());
        tools.extend((0..self.flags.more_tools).map(more));
        json!({ "tools": tools })
    }

    fn call(self: &Arc<Self>, id: &Value, params: &Value) -> Option<ExitCode> {
        let nonce = params["arguments"]["nonce"].as_str().unwrap_or("-").to_owned();
        self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("read", &nonce);
        if self.flags.talkative {
            eprintln!("called with {nonce}");
        }
        let nth = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            *calls += 1;
            *calls
        };
        if self.flags.die_on_call == Some(nth) {
            return Some(ExitCode::from(9));
        }
        let token = params["_meta"].get("progressToken").cloned();
        let modern = offers::is_modern(params);
        let call =
            tools::Call { id: id.clone(), arguments: params["arguments"].clone(), nonce, token, modern };
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        match name.as_str() {
            "list_change" => self.listens.tools_changed(modern),
            "touch" => self.listens.touched(call.arguments["uri"].as_str().unwrap_or_default(), modern),
            "log" if !modern || params["_meta"].get("io.modelcontextprotocol/logLevel").is_some() => {
                let level = call.arguments["level"].as_str().unwrap_or("info");
                say(&offers::log(level, call.size(), &call.nonce));
            }
            _ => {}
        }
        if name == "pid" {
            call.say(&std::process::id().to_string());
            return None;
        }
        if self.flags.tasks && self.tasks.call(id, &name, params, &self.listens) {
            return None;
        }
        // It is not listed: whoever looks at all tools has no use for it.
        if name == "declared" {
            let of_all = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
            let own = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            call.say(&if modern { own } else { &*of_all }.to_string());
            return None;
        }
        if name == "page" && self.flags.apps {
            let result = apps::called();
            answer(id, &if modern { offers::modern("tools/call", result) } else { result });
            return None;
        }
        if name == "task" {
            let task = json!({ "taskId": call.nonce, "status": "working" });
            answer(
                id,
                &if modern {
                    json!({ "resultType": "task", "taskId": call.nonce })
                } else {
                    json!({ "task": task })
                },
            );
            return None;
        }
        if name == "question" && modern {
            match offers::question(params) {
                Some(needs) => answer(id, &needs),
                None => call.say(&params.to_string()),
            }
            return None;
        }
        if name == "question" {
            // Its answer comes when ours does: see `told`.
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
            self.pen.lock().unwrap_or_else(PoisonError::into_inner).write("run", &call.nonce);
            say(&talk::question("roots"));
            return None;
        }
        // Slow tools have threads of their own, unless the server is of the kind that has only one.
        if !self.flags.single_threaded && matches!(name.as_str(), "sleep" | "hang" | "progress") {
            let server = Arc::clone(self);
            std::thread::spawn(move || server.run_tool(&name, &call));
            return None;
        }
        self.run_tool(&name, &call)
    }

    fn run_tool(&self, name: &str, call: &tools::Call) -> Option<ExitCode> {
        if self.run_habit(name, call) {
            return None;
        }
        self.ran(&call.nonce);
        tools::run(name, call)
    }
}

fn answer(id: &Value, result: &Value) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn refuse(id: &Value, code: i32, message: &str) {
    say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
}

fn say(message: &Value) {
    say_raw(&format!("{message}\n"));
}

fn say_raw(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

//! A server that runs tasks, of either era. Its ids are 1, 2, 3 …, and a new process begins anew: no id is worse for whoever is between.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::listens::Listens;
use super::{answer, refuse, say};
use crate::offers;

/// The name of the extension in the modern era.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Tasks on one page of a list.
const PAGE: usize = 2;

/// Tools that are about tasks.
const TOOLS: [&str; 2] = ["job", "finish"];

#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Vec<Task>>);

#[derive(Debug)]
struct Task {
    status: &'static str,
    nonce: String,
    ttl: Value,
    /// Requests that wait for its result.
    waiting: Vec<Value>,
}

/// What it declares in the legacy era.
pub(super) fn capability() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

/// Whether somebody wants to hear of tasks who has not said that it knows them.
pub(super) fn is_undeclared(params: &Value) -> bool {
    let declares = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
    params["notifications"].get("taskIds").is_some() && declares.get(EXTENSION).is_none()
}

/// Its tools.
pub(super) fn tools() -> [Value; 2] {
    TOOLS.map(|name| {
        let support = if name == "job" { "optional" } else { "forbidden" };
        json!({ "name": name, "inputSchema": { "type": "object" }, "execution": { "taskSupport": support } })
    })
}

impl Tasks {
    fn all(&self) -> MutexGuard<'_, Vec<Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one of its tools; `false` if it is none, or not called as a task.
    pub(super) fn call(&self, id: &Value, name: &str, params: &Value, listens: &Listens) -> bool {
        let modern = offers::is_modern(params);
        let arguments = &params["arguments"];
        let declares = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        match name {
            "job" if params.get("task").is_some() || declares.get(EXTENSION).is_some() => {
                let nonce = arguments["nonce"].as_str().unwrap_or("-").to_owned();
                let ttl = params["task"].get("ttl").unwrap_or(&arguments["ttl"]).clone();
                let mut all = self.all();
                all.push(Task { status: "working", nonce, ttl, waiting: Vec::new() });
                let mut task = told(all.len(), &all[all.len() - 1], modern);
                if modern {
                    task["resultType"] = "task".into();
                }
                answer(id, &if modern { task } else { json!({ "task": task }) });
                true
            }
            "finish" => {
                let number = arguments["task"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
                let mut all = self.all();
                let Some(task) = usize::checked_sub(number, 1).and_then(|at| all.get_mut(at)) else {
                    return false;
                };
                task.status = "completed";
                for waits in std::mem::take(&mut task.waiting) {
                    answer(&waits, &result(number, task));
                }
                if modern {
                    let mut params = told(number, task, true);
                    params["result"] = result(number, task);
                    listens.task_changed(&params);
                } else {
                    let params = told(number, task, false);
                    say(
                        &json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params }),
                    );
                }
                drop(all);
                let done = json!({ "content": [{ "type": "text", "text": "finished" }] });
                answer(id, &if modern { offers::modern("tools/call", done) } else { done });
                true
            }
            _ => false,
        }
    }

    /// Answers a request that is about tasks.
    pub(super) fn request(&self, id: &Value, method: &str, params: &Value) {
        let modern = offers::is_modern(params);
        let mut all = self.all();
        if method == "tasks/list" && !modern {
            let from: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let page: Vec<_> = (all.iter().enumerate().skip(from).take(PAGE))
                .map(|(at, task)| told(at + 1, task, false))
                .collect();
            let mut result = json!({ "tasks": page });
            if from + PAGE < all.len() {
                result["nextCursor"] = (from + PAGE).to_string().into();
            }
            return answer(id, &result);
        }
        let number: usize = params["taskId"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
        let Some(task) = number.checked_sub(1).and_then(|at| all.get_mut(at)) else {
            return refuse(id, -32602, "Task not found");
        };
        match (method, modern) {
            ("tasks/get", false) => answer(id, &told(number, task, false)),
            ("tasks/get", true) => {
                let mut state = told(number, task, true);
                if task.status == "completed" {
                    state["result"] = result(number, task);
                }
                answer(id, &offers::modern(method, state));
            }
            ("tasks/cancel", modern) => {
                task.status = "cancelled";
                answer(
                    id,
                    &if modern { offers::modern(method, json!({})) } else { told(number, task, false) },
                );
            }
            ("tasks/update", true) => {
                task.nonce = params["inputResponses"].to_string();
                answer(id, &offers::modern(method, json!({})));
            }
            ("tasks/result", false) if task.status == "completed" => answer(id, &result(number, task)),
            ("tasks/result", false) => task.waiting.push(id.clone()),
            _ => refuse(id, -32601, "method not found"),
        }
    }
}

fn told(number: usize, task: &Task, modern: bool) -> Value {
    let mut told = json!({
        "taskId": number.to_string(), "status": task.status,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    });
    told[if modern { "ttlMs" } else { "ttl" }] = task.ttl.clone();
    told
}

fn result(number: usize, task: &Task) -> Value {
    json!({
        "content": [
            { "type": "text", "text": format!("done: {}", task.nonce) },
            { "type": "resource_link", "uri": "note://done", "name": "done" },
        ],
        "_meta": { "io.modelcontextprotocol/related-task": { "taskId": number.to_string() } },
    })
}

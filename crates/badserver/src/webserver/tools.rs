//! The tools that do what they should. Those that do not are in the rooms beside.

use std::time::Duration;

use serde_json::{Value, json};

use super::answers::Teller;
use super::calls::Call;
use super::house::Change;
use super::manners::Manners;
use super::post::{Asked, Era};
use super::{legacy, reply};
use crate::{arguments, offers};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The tool that selects something in a session, if the server keeps anything there.
const USE: &str = "use";

/// The tools, and what each does. The first is declared read-only. How a fault answers says nothing about whether it ran:
/// every one of them takes `run`, which decides that. What stands here is what it does if it is not told.
pub const TOOLS: &[(&str, &str)] = &[
    ("echo", "answers with its arguments"),
    ("write", "answers with its arguments; not declared safe"),
    ("sleep", "answers after `ms`"),
    ("hang", "never answers; an answer by stream has its headers"),
    ("progress", "reports `n` times, `ms` apart, if the request has a token; then answers"),
    ("big", "answers with `bytes` bytes"),
    ("list_change", "changes the list of tools and says so, then answers"),
    ("touch", "says that the resource `uri` changed to whoever asked for that, then answers"),
    (
        "log",
        "says a log message of `level` and `bytes` bytes more; in the modern era, if it was asked to. Then answers",
    ),
    ("question", "asks for the agent's roots, and answers with what it is told"),
    (
        "exact",
        "writes its params into the file `heard` as they were spelt, and answers with the file `answer`",
    ),
    ("routed", "answers; its argument `region` has to be in a header in the modern era"),
    ("tool_error", "answers with isError"),
    (
        "any",
        "runs or does not, and answers anything, both drawn by `seed` and the call; `challenges` draws 401 and 403 with a challenge too, \
         `silence` silence",
    ),
    ("reset_before", "resets the connection before the headers; does not run"),
    ("reset_after_run", "runs, and resets the connection before the headers"),
    ("close_before", "runs, and closes the connection before the headers"),
    ("silent", "runs, and says nothing at all"),
    ("half_body", "runs, and closes in the middle of its body"),
    ("cut_sse", "runs, and ends its stream without an answer; `abrupt` cuts it"),
    (
        "cut_sse_resumable",
        "runs, and cuts its stream `times` (1) times after an event id; then the answer can be resumed",
    ),
    ("early_close", "answers, and closes the connection without having said so"),
    ("goaway", "answers, and says good-bye to the connection"),
    ("refused", "refuses an HTTP/2 stream; closes an HTTP/1 connection; does not run"),
    ("disowned", "says GOAWAY below its HTTP/2 stream; closes an HTTP/1 connection; does not run"),
    ("drip", "answers one byte each `ms`"),
    ("endless_body", "runs, and answers with a body that never ends; silent after `bytes`"),
    ("endless_event", "runs, and answers with an event that never ends; silent after `bytes`"),
    ("bomb", "runs, and answers with gzip that nobody asked for, `bytes` (64 MiB) long when unpacked"),
    ("deny", "runs, forgets all sessions after `ms` (0), and then says that it does not know the session"),
    ("html", "200 and a page; does not run"),
    ("accepted", "202, as if it were a notification; does not run"),
    ("wrong_id", "runs, and answers an id that nobody asked"),
    ("no_id", "400 and an error without an id; `status` for another one; does not run"),
    ("no_id_200", "200 and an error without an id; does not run"),
    (
        "status",
        "answers with `code`, and does not run; `retry_after`; `with_result` for a result, `with_id` for an error with the request's id and the code `error`; \
         `challenge`: false for 401 without one; `scope` for 403",
    ),
    ("redirect", "redirects with `code` (307) to `to` (the same origin, where it answers); does not run"),
];

/// How often the list has changed decides what the extra tool is called.
fn extra(version: u32) -> Option<String> {
    (version > 0).then(|| format!("extra_{version}"))
}

pub(super) fn known(name: &str, version: u32, contexts: bool) -> bool {
    contexts && name == USE
        || TOOLS.iter().any(|(known, _)| *known == name)
        || extra(version).is_some_and(|extra| extra == name)
}

pub(super) fn list(asked: &Asked, era: Era, manners: &Manners) -> Value {
    let mut tools: Vec<_> = TOOLS
        .iter()
        .map(|(name, what)| json!({ "name": name, "description": what, "inputSchema": arguments::schema(name) }))
        .collect();
    tools[0]["annotations"] = json!({ "readOnlyHint": true });
    for tool in tools.iter_mut().filter(|tool| tool["name"] == "routed") {
        let region = json!({ "type": "string", "x-mcp-header": manners.param_header });
        tool["inputSchema"]["properties"]["region"] = region;
    }
    if manners.contexts {
        tools.push(json!({ "name": USE, "inputSchema": arguments::schema(USE) }));
    }
    if let Some(name) = extra(asked.house.tools_version()) {
        tools.push(json!({ "name": name, "inputSchema": arguments::schema(&name) }));
    }
    match era {
        Era::Legacy => json!({ "tools": tools }),
        Era::Modern => {
            json!({ "tools": tools, "ttlMs": 0, "cacheScope": "private", "resultType": "complete" })
        }
    }
}

/// Runs a tool; what it comes to is the whole message.
pub(super) async fn run(call: &Call, teller: &Teller) -> Value {
    let selecting = call.asked.header(legacy::SESSION).filter(|_| call.name == USE);
    if let Some(session) = selecting {
        call.asked.house.select(session, call.text("what"));
        call.runs(true);
        return call.said(&format!("selected {} in context {session}", call.text("what")));
    }
    call.runs(true);
    let pause = Duration::from_millis(call.number("ms").unwrap_or(0));
    match call.name.as_str() {
        "sleep" => tokio::time::sleep(pause).await,
        "hang" => std::future::pending().await,
        "progress" => progress(call, teller, pause).await,
        "big" => return call.said(&"x".repeat(size(call))),
        "list_change" => call.asked.house.change_tools(),
        "touch" => drop(call.asked.house.changes.send(Change::Resource(call.text("uri").to_owned()))),
        "log" if call.era == Era::Legacy || !call.asked.meta(LOG_LEVEL).is_null() => {
            teller.tell(&offers::log(call.text("level"), size(call), call.asked.nonce())).await;
        }
        "question" => return question(call, teller).await,
        "tool_error" => {
            let mut message = call.said("no");
            message["result"]["isError"] = true.into();
            return message;
        }
        _ => {}
    }
    call.echo()
}

/// In the legacy era a question is a request of its own; in the modern one it is an answer.
async fn question(call: &Call, teller: &Teller) -> Value {
    match call.era {
        Era::Legacy => {
            let (id, told) = call.asked.house.ask();
            teller.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" })).await;
            call.said(&told.await.unwrap_or_default().to_string())
        }
        Era::Modern => match offers::question(call.asked.params()) {
            Some(needs) => reply::result(call.asked.id(), &needs),
            None => call.said(&call.asked.params().to_string()),
        },
    }
}

async fn progress(call: &Call, teller: &Teller, pause: Duration) {
    let token = call.asked.meta("progressToken");
    if token.is_null() {
        return;
    }
    for done in 1..=call.number("n").unwrap_or(3) {
        let mut params = json!({ "progressToken": token, "progress": done });
        if call.asked.nonce() != "-" {
            params["message"] = call.asked.nonce().into();
        }
        teller.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })).await;
        tokio::time::sleep(pause).await;
    }
}

fn size(call: &Call) -> usize {
    usize::try_from(call.number("bytes").unwrap_or(0)).unwrap_or(usize::MAX)
}

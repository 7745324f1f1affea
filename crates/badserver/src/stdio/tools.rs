//! Faults in the middle of a call: each is a tool.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use super::{answer, say, say_raw, talk};
use crate::{itself, offers};

/// The tools, and what each does. The first is declared read-only.
pub const TOOLS: &[(&str, &str)] = &[
    ("echo", "answers with its arguments"),
    ("write", "answers with its arguments; not declared safe"),
    ("sleep", "answers after `ms`"),
    ("hang", "never answers"),
    ("exit", "exits with `status`, without an answer"),
    ("kill", "kills itself, without an answer"),
    ("half", "answers with half a line, and exits"),
    ("stop", "stops itself"),
    ("close_stdout", "closes its output, and lives on"),
    ("close_stdin", "answers, closes its input, and lives on"),
    ("big", "answers with `bytes` bytes"),
    ("endless", "answers without end for `bytes` bytes, and never with a line break"),
    ("noise", "writes noise before and around its answer"),
    ("wrong_id", "answers an id that nobody asked, then the right one"),
    ("twice", "answers twice"),
    ("string_id", "answers with its id as a string"),
    ("no_id", "answers with an error without an id"),
    ("spoof", "answers with members beside its own that a reader who folds case takes for another answer"),
    ("neither", "answers with neither a result nor an error"),
    ("null", "answers with a null result"),
    ("glued", "answers glued to a notification on one line"),
    ("flood_stderr", "writes `bytes` bytes to stderr, then answers"),
    ("spin", "burns the processor for `ms`, then answers"),
    ("tool_error", "answers with isError"),
    ("endless_no_id", "as `endless`, and its id would come last"),
    ("orphan", "leaves `times` helpers to themselves, which end at once, and answers"),
    ("progress", "reports progress `times` times, one each `ms`, then answers; and once more after that"),
    ("flood_list_changed", "says `times` times that its tools changed, then answers"),
    ("question", "asks for the agent's roots, and answers with what it is told"),
    (
        "exact",
        "writes its params into the file `heard` as they were spelt, and answers with the file `answer`",
    ),
    ("list_change", "says that its tools changed, then answers"),
    ("touch", "says that the resource `uri` changed to whoever asked for that, then answers"),
    (
        "log",
        "says a log message of `level` and `bytes` bytes more; in the modern era, if it was asked to. Then answers",
    ),
    ("pid", "answers with the number of its process"),
    ("task", "begins a task whose id is the nonce, and says so"),
    ("use", "keeps `what` in the memory of its process"),
    ("drop_all", "answers with what `use` said last in this process; `prod`, if it said nothing"),
    ("leave", "answers, and exits with status 0"),
    ("question_withdrawn", "asks for the agent's roots, takes the question back, and answers"),
];

/// One call of a tool.
pub(super) struct Call {
    pub(super) id: Value,
    pub(super) arguments: Value,
    pub(super) nonce: String,
    /// What the caller wants its progress to be called.
    pub(super) token: Option<Value>,
    pub(super) modern: bool,
}

/// Runs a tool. A status ends the server.
pub(super) fn run(name: &str, call: &Call) -> Option<ExitCode> {
    let id = &call.id;
    match name {
        "sleep" => {
            #[expect(clippy::disallowed_methods, reason = "slowness is the fault")]
            std::thread::sleep(Duration::from_millis(call.number("ms")));
            call.echo();
        }
        "hang" => loop {
            std::thread::park();
        },
        "exit" => return Some(ExitCode::from(u8::try_from(call.number("status")).unwrap_or(1))),
        "kill" => itself::kill(),
        "half" => {
            say_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"resu"#));
            return Some(ExitCode::SUCCESS);
        }
        "stop" => itself::stop(),
        "close_stdout" => itself::close_stdout(),
        "close_stdin" => {
            call.echo();
            itself::close_stdin();
            loop {
                std::thread::park();
            }
        }
        "big" => answer(id, &json!({ "content": [{ "type": "text", "text": "x".repeat(call.size()) }] })),
        "endless" => {
            say_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":""#));
            for _ in 0..call.size() / 65536 {
                say_raw(&"x".repeat(65536));
            }
            loop {
                std::thread::park();
            }
        }
        "endless_no_id" => {
            say_raw(r#"{"jsonrpc":"2.0","result":""#);
            for _ in 0..call.size() / 65536 {
                say_raw(&"x".repeat(65536));
            }
            loop {
                std::thread::park();
            }
        }
        "noise" => {
            say_raw("starting work\n{\"half\": \n\n");
            let text = json!({ "jsonrpc": "2.0", "id": id, "result": call.arguments });
            say_raw(&format!("INFO done {text}\nmore noise\n"));
        }
        "wrong_id" => {
            say(&json!({ "jsonrpc": "2.0", "id": 999_999, "result": {} }));
            say(&json!({ "jsonrpc": "2.0", "id": "nobody", "result": {} }));
            call.echo();
        }
        "twice" => {
            call.echo();
            answer(id, &json!({ "second": true }));
        }
        "string_id" => answer(&Value::String(id.to_string()), &call.arguments),
        "no_id" => say(&json!({ "jsonrpc": "2.0", "error": { "code": -32700, "message": "parse error" } })),
        "spoof" => say_raw(&spoofed(id)),
        "neither" => say(&json!({ "jsonrpc": "2.0", "id": id })),
        "null" => answer(id, &Value::Null),
        "glued" => {
            let note =
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info" } });
            let text = json!({ "jsonrpc": "2.0", "id": id, "result": call.arguments });
            say_raw(&format!("{note}{text}\n"));
        }
        "flood_stderr" => {
            let mut stderr = std::io::stderr().lock();
            for _ in 0..call.size() / 1000 {
                let _ = stderr.write_all(&[b'e'; 1000]);
            }
            call.echo();
        }
        "spin" => {
            #[expect(clippy::disallowed_methods, reason = "burning time is the fault")]
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(call.number("ms")) {
                std::hint::spin_loop();
            }
            call.echo();
        }
        "leave" => {
            call.echo();
            return Some(ExitCode::SUCCESS);
        }
        "tool_error" => {
            answer(id, &json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }));
        }
        _ => talk::run(name, call),
    }
    None
}

impl Call {
    pub(super) fn echo(&self) {
        self.say(&self.arguments.to_string());
    }

    /// Answers with this text.
    pub(super) fn say(&self, text: &str) {
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        answer(&self.id, &if self.modern { offers::modern("tools/call", result) } else { result });
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        self.arguments[name].as_u64().unwrap_or(0)
    }

    pub(super) fn size(&self) -> usize {
        usize::try_from(self.number("bytes")).unwrap_or(usize::MAX)
    }
}

/// An answer, and another one for whoever folds case.
fn spoofed(id: &Value) -> String {
    let own = format!(r#""jsonrpc":"2.0","id":{id},"result":{{"content":[]}}"#);
    format!("{{{own},\"ID\":77,\"Result\":{{\"spoof\":true}},\"extra\":1.50}}\n")
}

//! Tools that say more than their answer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::tools::Call;
use super::{refuse, say};
use crate::itself;

/// A question to the agent.
pub(super) fn question(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" })
}

/// What `use` said last.
fn in_use() -> MutexGuard<'static, Option<String>> {
    static IN_USE: Mutex<Option<String>> = Mutex::new(None);
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one of them; whatever is none of them answers with its arguments.
pub(super) fn run(name: &str, call: &Call) {
    match name {
        "progress" => {
            let report = |step: u64| {
                if let Some(token) = &call.token {
                    // Whose it is can be told by the nonce alone.
                    let message = if call.nonce == "-" { "on it" } else { &call.nonce };
                    let params = json!({ "progressToken": token, "progress": step, "message": message });
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
                }
            };
            for step in 1..=call.number("times") {
                #[expect(clippy::disallowed_methods, reason = "slowness is the fault")]
                std::thread::sleep(Duration::from_millis(call.number("ms")));
                report(step);
            }
            call.echo();
            report(call.number("times") + 1);
        }
        "orphan" => {
            for _ in 0..call.number("times") {
                itself::orphan();
            }
            call.echo();
        }
        "flood_list_changed" => {
            for _ in 0..call.number("times") {
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            }
            call.echo();
        }
        "question_withdrawn" => {
            say(&question("withdrawn"));
            let params = json!({ "reason": "never mind", "requestId": "withdrawn" });
            say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
            call.echo();
        }
        // It is not listed: the answer is no result.
        "invalid" => refuse(&call.id, -32602, "Invalid request parameters"),
        "use" => {
            *in_use() = call.arguments["what"].as_str().map(str::to_owned);
            call.echo();
        }
        "drop_all" => call.say(&format!("dropped {}", in_use().as_deref().unwrap_or("prod"))),
        _ => call.echo(),
    }
}

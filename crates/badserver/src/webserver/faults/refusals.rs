//! Answers that are no answer: other statuses, other media, other ids.

use http::header::{LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::put;
use crate::book::LOOKS_LOST;
use crate::webserver::body::Out;
use crate::webserver::calls::Call;
use crate::webserver::reply::{self, Answer};

const PAGE: &str = "<!doctype html><title>Sign in</title><p>Accept the terms of this network.";

pub(super) fn run(call: &Call) -> Option<Answer> {
    Some(match call.name.as_str() {
        "html" => {
            call.runs(false);
            reply::answer(200, "text/html", Out::whole(PAGE))
        }
        "accepted" => {
            call.runs(false);
            reply::accepted()
        }
        "wrong_id" => {
            call.runs(true);
            let mut message = call.echo();
            message["id"] = 999_999.into();
            reply::json(200, &message)
        }
        "no_id" => {
            call.runs(false);
            let status = call.number("status").and_then(|code| u16::try_from(code).ok()).unwrap_or(400);
            let answer = reply::json(status, &no_id());
            promise(call, &answer, None);
            answer
        }
        "no_id_200" => {
            call.runs(false);
            reply::json(200, &no_id())
        }
        "status" => status(call),
        "redirect" if call.asked.head.uri.path() != "/moved" => redirect(call),
        _ => return None,
    })
}

fn no_id() -> Value {
    json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": "cannot say whose" } })
}

/// Writes down what a client may take this answer for: a refusal that comes before the work, or not.
pub(super) fn promise(call: &Call, answer: &Answer, code: Option<i64>) {
    let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let reason = match (answer.status().as_u16(), code) {
        (400, Some(-32020 | -32022)) => "protocol",
        (401, _) if challenge.is_some() => "auth",
        (403, _) if challenge.is_some_and(|words| words.contains("insufficient_scope")) => "auth",
        (429, _) => "rate-limited",
        (400 | 404, _) => LOOKS_LOST,
        _ => return,
    };
    call.refuses(reason);
}

fn status(call: &Call) -> Answer {
    call.runs(false);
    let code = call.number("code").and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    let mut answer = if call.flag("with_result") {
        reply::json(code, &call.echo())
    } else if call.flag("with_id") {
        let error = call.arguments["error"].as_i64().unwrap_or(-32603);
        reply::json(code, &reply::error(call.asked.id(), error, "refused on purpose"))
    } else {
        reply::text(code, format!("{code} on purpose"))
    };
    match &call.arguments["retry_after"] {
        Value::Null => {}
        Value::String(when) => put(&mut answer, RETRY_AFTER, when),
        seconds => put(&mut answer, RETRY_AFTER, &seconds.to_string()),
    }
    if code == 401 && call.arguments["challenge"].as_bool().unwrap_or(true) {
        let origin = &call.asked.house.origin;
        let metadata = format!("Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource\"");
        put(&mut answer, WWW_AUTHENTICATE, &metadata);
    }
    if code == 403
        && let Some(scope) = call.arguments["scope"].as_str()
    {
        put(
            &mut answer,
            WWW_AUTHENTICATE,
            &format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""),
        );
    }
    if !call.flag("with_result") {
        promise(call, &answer, call.arguments["error"].as_i64().filter(|_| call.flag("with_id")));
    }
    answer
}

fn redirect(call: &Call) -> Answer {
    call.runs(false);
    call.refuses("redirect");
    let code = call.number("code").and_then(|code| u16::try_from(code).ok()).unwrap_or(307);
    let mut answer = reply::text(code, "");
    put(&mut answer, LOCATION, call.arguments["to"].as_str().unwrap_or("/moved"));
    answer
}

//! The methods that both eras share, and those of one of them.

use http::HeaderValue;
use serde_json::{Value, json};

use super::body::Gone;
use super::calls::Call;
use super::manners::Manners;
use super::post::{Asked, Era};
use super::reply::{self, Answer};
use super::{answers, calls, legacy, streams, tools};
use crate::offers;

/// Versions of the legacy era, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Answers a request that was let in.
pub(super) async fn answer(asked: Asked, era: Era, manners: &Manners) -> Result<Answer, Gone> {
    let result = match (asked.method(), era) {
        ("initialize", Era::Legacy) => return Ok(initialize(&asked, manners).await),
        ("server/discover", Era::Modern) => discovered(manners),
        ("ping", Era::Legacy) => json!({}),
        ("tools/list", _) => tools::list(&asked, era, manners),
        ("tools/call", _) => {
            let (name, arguments) = (&asked.params()["name"], asked.params()["arguments"].clone());
            let name = name.as_str().unwrap_or_default().to_owned();
            return calls::answer(Call::new(asked, era, name, arguments), manners).await;
        }
        ("subscriptions/listen", Era::Modern) => return Ok(streams::listen(&asked, manners)),
        (method @ ("logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"), Era::Legacy) => {
            asked.house.write("run", &format!("{method}:{}", asked.params()));
            asked.house.subscribes(method, asked.params());
            json!({})
        }
        (method, era) => match offers::answer(method, asked.params()).filter(|_| manners.full) {
            Some(result) if era == Era::Modern => offers::modern(method, result),
            Some(result) => result,
            None => return Ok(unknown(&asked, era)),
        },
    };
    let message = reply::result(asked.id(), &result);
    Ok(answers::respond(&asked, manners.answers, manners, |_| async { message }).await)
}

/// An unknown method: the modern era has a status for it.
pub(super) fn unknown(asked: &Asked, era: Era) -> Answer {
    let status = if era == Era::Modern { 404 } else { 200 };
    reply::json(status, &reply::error(asked.id(), -32601, "method not found"))
}

async fn initialize(asked: &Asked, manners: &Manners) -> Answer {
    let version = asked.params()["protocolVersion"].as_str().unwrap_or_default();
    // MCP 2025-11-25, lifecycle: a version that is not supported is answered with one that is.
    let version = if LEGACY.contains(&version) { version } else { LEGACY[0] };
    let message = reply::result(
        asked.id(),
        &json!({
            "protocolVersion": version,
            "capabilities": capabilities(manners),
            "serverInfo": { "name": "badserver", "version": "1" },
        }),
    );
    let mut answer = answers::respond(asked, manners.answers, manners, |_| async { message }).await;
    if !manners.stateless
        && let Ok(session) = HeaderValue::from_str(&asked.house.open_session())
    {
        answer.headers_mut().insert(legacy::SESSION, session);
    }
    answer
}

fn capabilities(manners: &Manners) -> Value {
    if manners.full { offers::capabilities() } else { json!({ "tools": { "listChanged": true } }) }
}

fn discovered(manners: &Manners) -> Value {
    json!({
        "supportedVersions": manners.modern_versions,
        "capabilities": capabilities(manners),
        "ttlMs": 0, "cacheScope": "private", "resultType": "complete",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "badserver", "version": "1" } },
    })
}

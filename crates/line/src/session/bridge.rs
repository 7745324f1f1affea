//! Between the eras: the members that one has and the other has not. Everything else passes as it was spelt.

use linetender_wire::frame::{self, Members};
use linetender_wire::handshake::{
    CAPABILITIES_IN_META, CLIENT_IN_META, Era, LEGACIES, LEGACY, MODERN, VERSION_IN_META,
};
use serde_json::{Value, json};

use super::text::{LARGE, Text};
use crate::basics::kind::Kind;
use crate::basics::params::put_first;
use crate::call::Reply;

/// What a modern result says of how long it is good; here: not at all, and for nobody else.
const CACHE: &str = r#""ttlMs":0,"cacheScope":"private""#;

/// How long a list, or what a server says of itself, is good, in milliseconds, where the server does not say so. Agents that want to
/// know earlier listen.
pub const LIST_TTL: u64 = 10_000;

const META: &str = "io.modelcontextprotocol/";

/// The extension of the modern era by which servers begin tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// An answer as the agent is to read it.
pub(super) fn answer(answer: &Reply, agent: Era, method: &str, id: &str) -> Text {
    if agent == Era::Modern && !answer.is_modern() && answer.error().is_none() {
        return frame::reply(id, &completed(method, answer.result())).into();
    }
    match answer.around_id(id, LARGE) {
        Some((pieces, ours)) => Text::Pieces { pieces, ours },
        None => answer.framed(id).into(),
    }
}

/// A result that is not the server's own, as the agent is to read it.
pub(super) fn result(agent: Era, method: &str, result: String) -> String {
    match agent {
        Era::Legacy => result,
        Era::Modern => completed(method, &result),
    }
}

/// A legacy result with what a modern one must have.
// MCP 2026-07-28: `resultType` on every result, `ttlMs` and `cacheScope` on what may be cached.
fn completed(method: &str, result: &str) -> String {
    // Not read into values: a number that no value can hold is still a number.
    let Some(has) = Members::of(result) else { return result.to_owned() };
    let mut members = Vec::new();
    if has.get("resultType").is_none() {
        members.push(r#""resultType":"complete""#);
    }
    let list;
    if has.get("ttlMs").is_none() {
        if Kind::asked_by(method).is_some() {
            list = format!(r#""ttlMs":{LIST_TTL},"cacheScope":"private""#);
            members.push(&list);
        } else if method == "resources/read" {
            members.push(CACHE);
        }
    }
    if members.is_empty() { result.to_owned() } else { put_first(result, &members.join(",")) }
}

/// Whether a modern result is a question.
pub(super) fn needs_input(result: &str) -> bool {
    // Nearly all results are long and are no questions: most need not be read.
    result.contains("input_required")
        && Members::of(result)
            .and_then(|members| serde_json::from_str::<String>(members.get("resultType")?.get()).ok())
            .is_some_and(|kind| kind == "input_required")
}

/// Params with these members before their own.
pub(super) fn with_members(params: Option<&str>, members: &str) -> String {
    if members.is_empty() {
        params.unwrap_or("{}").to_owned()
    } else {
        put_first(params.unwrap_or("{}"), members)
    }
}

/// Params with these members in their `_meta`.
pub(super) fn with_meta(params: Option<&str>, members: &str) -> String {
    crate::basics::params::with_meta_member(params, members)
}

/// Params by which a modern server knows from which level on log messages are wanted.
pub(super) fn with_log_level(params: Option<&str>, level: &str) -> String {
    crate::basics::params::with_meta_member(params, &format!(r#""{META}logLevel":{}"#, frame::respell(level)))
}

/// The params of a `logging/setLevel`.
pub(super) fn level(level: &str) -> String {
    json!({ "level": level }).to_string()
}

/// What a modern agent says of itself, as a legacy server wants to hear it. No sampling, elicitation or roots: a server's
/// question could not be asked. Extensions are the same in both eras.
pub(super) fn legacy_hello(params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    let info = params["_meta"][format!("{META}clientInfo")].clone();
    let info = if info.is_object() { info } else { json!({ "name": "agent", "version": "unknown" }) };
    let mut capabilities = json!({});
    if let Some(extensions) = extensions(&params["_meta"][CAPABILITIES_IN_META]) {
        capabilities["extensions"] = extensions;
    }
    Some(json!({ "protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": info }).to_string())
}

/// What a legacy agent says of itself to a modern server on a line that it shares, as members of the `_meta` of each of its
/// requests: there extensions are declared by the request, and not by the line. `None` if it declares none.
pub(super) fn modern_hello(params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    let mut meta = json!({
        VERSION_IN_META: MODERN,
        CAPABILITIES_IN_META: { "extensions": extensions(&params["capabilities"])? },
    });
    if params["clientInfo"].is_object() {
        meta[CLIENT_IN_META] = params["clientInfo"].clone();
    }
    let members = meta.to_string();
    Some(members.strip_prefix('{')?.strip_suffix('}')?.to_owned())
}

/// The extensions among these capabilities that mean the same in both eras. Tasks do not: each era begins them in its own way.
fn extensions(capabilities: &Value) -> Option<Value> {
    let mut all = capabilities["extensions"].as_object()?.clone();
    all.remove(TASKS);
    (!all.is_empty()).then_some(all.into())
}

/// A modern server's word about itself, as the answer to a legacy agent's `initialize`.
pub(super) fn initialized(discovered: &str, asked: Option<&str>, name: &str) -> String {
    let discovered: Value = serde_json::from_str(discovered).unwrap_or_default();
    let mut capabilities = discovered["capabilities"].clone();
    // An agent of this era does not know the result that begins such a task.
    if let Some(extensions) = capabilities.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove(TASKS);
    }
    let mut result = json!({
        "protocolVersion": version(asked),
        "capabilities": capabilities,
        "serverInfo": info(&discovered["_meta"][format!("{META}serverInfo")], name),
    });
    if let Some(instructions) = discovered.get("instructions") {
        result["instructions"] = instructions.clone();
    }
    result.to_string()
}

/// A legacy server's word about itself, as the answer to a modern agent's `server/discover`.
pub(super) fn discovered(initialized: &str, name: &str) -> String {
    let initialized: Value = serde_json::from_str(initialized).unwrap_or_default();
    let mut capabilities = initialized["capabilities"].clone();
    // An agent of this era does not ask for such a task.
    if let Some(all) = capabilities.as_object_mut() {
        all.remove("tasks");
    }
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities,
        "ttlMs": LIST_TTL,
        "cacheScope": "private",
        "_meta": { (format!("{META}serverInfo")): info(&initialized["serverInfo"], name) },
    });
    if let Some(instructions) = initialized.get("instructions") {
        result["instructions"] = instructions.clone();
    }
    result.to_string()
}

/// A legacy server's word about itself with a version that this agent understands: on a shared line another was agreed on.
pub(super) fn same_era(initialized: &str, asked: Option<&str>) -> String {
    let spelt = frame::respell(&version(asked)).into_owned();
    crate::basics::params::respell_member(initialized, "protocolVersion", &spelt)
        .unwrap_or_else(|| initialized.to_owned())
}

/// The revision that a legacy agent asked for, if it is one; else the newest.
fn version(asked: Option<&str>) -> String {
    let asked = asked.and_then(|params| serde_json::from_str::<Value>(params).ok());
    let asked = asked.as_ref().and_then(|params| params["protocolVersion"].as_str());
    asked.filter(|version| LEGACIES.contains(version)).unwrap_or(LEGACY).to_owned()
}

fn info(said: &Value, name: &str) -> Value {
    if said.is_object() { said.clone() } else { json!({ "name": name, "version": "unknown" }) }
}

#[cfg(test)]
mod tests {
    use super::{
        LIST_TTL, completed, discovered, initialized, legacy_hello, modern_hello, needs_input, same_era,
        with_log_level,
    };
    use serde_json::{Value, json};

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_legacy_result_gets_what_a_modern_one_must_have_and_keeps_every_byte() {
        let list = r#"{"tools":[{"name":"a","x":1.50}],"nextCursor":"c"}"#;
        let made = completed("tools/list", list);
        assert!(made.ends_with(&list[1..]), "{made}");
        assert_eq!(read(&made)["ttlMs"], LIST_TTL);
        assert_eq!(read(&made)["resultType"], "complete");
        assert_eq!(
            read(&completed("tools/call", r#"{"content":[]}"#)),
            json!({ "resultType": "complete", "content": [] })
        );
        let odd = r#"{"n":[1e400,18446744073709551616],"\ud800":1}"#;
        assert_eq!(completed("tools/call", odd), format!(r#"{{"resultType":"complete",{}"#, &odd[1..]));
        for odd in ["null", "[1]", r#"{"resultType":"task"}"#] {
            assert_eq!(completed("tools/call", odd), odd);
        }
    }

    #[test]
    fn each_era_is_introduced_in_the_words_of_the_other() {
        let modern = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}"#;
        let told = read(&initialized(modern, Some(r#"{"protocolVersion":"2024-11-05"}"#), "n"));
        assert_eq!(told["protocolVersion"], "2024-11-05");
        assert_eq!(told["serverInfo"]["name"], "s");
        assert_eq!(
            (&told["capabilities"]["tools"]["listChanged"], &told["instructions"]),
            (&json!(true), &json!("i"))
        );
        assert_eq!(
            read(&initialized("{}", Some(r#"{"protocolVersion":"1999"}"#), "n"))["protocolVersion"],
            "2025-11-25"
        );
        let legacy = r#"{"protocolVersion":"2025-11-25","capabilities":{"prompts":{}},"serverInfo":{"name":"s","version":"2"}}"#;
        let told = read(&discovered(legacy, "n"));
        assert_eq!(told["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "s");
        assert_eq!((&told["ttlMs"], &told["cacheScope"]), (&json!(LIST_TTL), &json!("private")));
        assert_eq!(
            read(&same_era(legacy, Some(r#"{"protocolVersion":"2025-03-26"}"#)))["protocolVersion"],
            "2025-03-26"
        );
        let agent = r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}"#;
        let hello = read(&legacy_hello(agent).unwrap());
        assert_eq!((&hello["clientInfo"]["name"], &hello["capabilities"]), (&json!("a"), &json!({})));
    }

    #[test]
    fn extensions_cross_the_eras_but_not_those_that_each_has_in_its_own_way() {
        let ui = json!({ "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } });
        let mut all = ui.clone();
        all["io.modelcontextprotocol/tasks"] = json!({});
        let capabilities = json!({ "extensions": all, "sampling": {}, "tasks": {} });
        let modern = json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": capabilities } });
        assert_eq!(
            read(&legacy_hello(&modern.to_string()).unwrap())["capabilities"],
            json!({ "extensions": ui })
        );
        let legacy = json!({ "capabilities": capabilities, "clientInfo": { "name": "a" } });
        let meta = read(&format!("{{{}}}", modern_hello(&legacy.to_string()).unwrap()));
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({ "extensions": ui }));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "a");
        assert_eq!(modern_hello(r#"{"capabilities":{"extensions":{}}}"#), None);
        let told = read(&initialized(&json!({ "capabilities": capabilities }).to_string(), None, "n"));
        assert_eq!(told["capabilities"]["extensions"], ui);
        let told = read(&discovered(&json!({ "capabilities": capabilities }).to_string(), "n"));
        assert!(
            told["capabilities"].get("tasks").is_none() && told["capabilities"].get("extensions").is_some()
        );
    }

    #[test]
    fn a_question_is_told_from_a_result_that_mentions_one() {
        assert!(needs_input(r#"{"resultType":"input_required","requestState":"x"}"#));
        assert!(needs_input(r#"{"n":1e400,"resultType":"input_required"}"#));
        assert!(!needs_input(r#"{"content":[{"type":"text","text":"input_required"}]}"#));
    }

    #[test]
    fn a_log_level_goes_into_the_meta() {
        let made = read(&with_log_level(Some(r#"{"name":"x","_meta":{"a":1}}"#), "debug"));
        assert_eq!(made["_meta"], json!({ "a": 1, "io.modelcontextprotocol/logLevel": "debug" }));
        assert_eq!(made["name"], "x");
    }
}

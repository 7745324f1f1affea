//! One half of `tools/differential`: messages that two readers may read differently, and what linetender decides on for each.
//!
//! `differential make SEED COUNT` prints a line for each message that linetender passes on: what it decided, and the bytes that
//! the other side gets; the last line counts the refusals. `differential read` reads such bytes, a text a line, and prints what
//! `serde_json` reads in them.

#[path = "differential/dice.rs"]
mod dice;
#[path = "differential/made.rs"]
mod made;
#[path = "differential/read.rs"]
mod read;

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};

use bytes::Bytes;
use linetender_wire::frame::{self, Limits, Message, Outcome, Routing, string};
use made::Made;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const LIMITS: Limits = Limits { length: 1 << 20, depth: 64 };

/// What was decided: a place in the message, and the JSON there; `None` where there is nothing.
type Decided = BTreeMap<&'static str, Option<String>>;

fn main() -> std::io::Result<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if words.first().is_some_and(|word| word == "read") {
        for line in std::io::stdin().lock().lines() {
            writeln!(out, "{}", read::all(&line?))?;
        }
        return out.flush();
    }
    let (seed, count) = (number(1), number(2));
    let mut refused = BTreeMap::<String, u64>::new();
    for nth in 0..count {
        let made = made::message(seed, nth);
        match decide(&made, nth) {
            Ok((decided, passed)) => {
                let line = json!({ "came": made.text, "passed": passed, "decided": decided });
                writeln!(out, "{line}")?;
            }
            Err(why) => *refused.entry(why).or_default() += 1,
        }
    }
    writeln!(out, "{}", json!({ "made": count, "refused": refused }))?;
    out.flush()
}

/// What we decided, and the text that the other side gets; or why it gets none.
fn decide(made: &Made, nth: u64) -> Result<(Decided, String), String> {
    if made.is_entry {
        // An entry of a list, whose name decides whether it is shown.
        let name = frame::sole(&made.text, "name").map_err(|_| "ambiguous entry")?;
        let name = name.filter(|name| string(name).is_some()).ok_or("entry without a name")?;
        return Ok((Decided::from([("entry", Some(name.get().to_owned()))]), made.text.clone()));
    }
    let frame = frame::parse(&Bytes::from(made.text.clone()), LIMITS).map_err(|bad| format!("{bad:?}"))?;
    match frame.message() {
        Message::Request { method, params, .. } => {
            let mut decided = routed(method, params)?;
            decided.insert("id", Some(nth.to_string()));
            Ok((decided, text(frame::request(nth, method, params))))
        }
        Message::Notification { method, params } => {
            let mut decided = routed(method, params)?;
            decided.insert("id", None);
            Ok((decided, text(frame)))
        }
        Message::Response { id, outcome } => {
            // It goes to somebody who asked under another id.
            let id =
                id.map(|id| if nth.is_multiple_of(2) { format!(r#""for {nth}""#) } else { id.to_owned() });
            let of = |which| outcome.filter(|(is, _)| *is == which).map(|(_, text)| text.to_owned());
            let decided = Decided::from([
                ("method", None),
                ("result", of(Outcome::Result)),
                ("error", of(Outcome::Error)),
                ("id", id.clone()),
            ]);
            let frame = id.map_or_else(|| frame.clone(), |id| frame.with_id(&id));
            Ok((decided, text(frame)))
        }
    }
}

fn text(frame: frame::Frame) -> String {
    String::from_utf8_lossy(frame.one_line().text()).into_owned()
}

/// What the params decide. A gateway answers a request that does not name its target, and passes no such notification on.
fn routed(method: &str, params: Option<&str>) -> Result<Decided, String> {
    let read = Routing::of(method, params).map_err(|ambiguous| ambiguous.to_string())?;
    let raw = |value: Option<&RawValue>| value.map(|value| value.get().to_owned());
    let named = |value: Option<&RawValue>| {
        let text = value.filter(|value| string(value).is_some()).map(|value| value.get().to_owned());
        text.map(Some).ok_or_else(|| "nameless".to_owned())
    };
    let mut decided = Decided::from([
        ("method", Some(Value::from(method).to_string())),
        ("_meta.progressToken", raw(read.meta.token)),
        ("_meta.version", raw(read.meta.version)),
        ("_meta.client", raw(read.meta.client)),
        ("_meta.capabilities", raw(read.meta.capabilities)),
    ]);
    match method {
        "tools/call" | "prompts/get" => decided.insert("name", named(read.name)?),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            decided.insert("uri", named(read.uri)?)
        }
        "notifications/resources/updated" => decided.insert("uri", named(read.uri)?),
        "notifications/cancelled" => {
            decided.insert("requestId", Some(raw(read.request_id).ok_or("nameless")?))
        }
        "notifications/progress" => decided.insert("progressToken", Some(raw(read.token).ok_or("nameless")?)),
        "completion/complete" => {
            let about = read.reference.and_then(|about| frame::Members::of(about.get())).ok_or("nameless")?;
            match (about.get("name"), about.get("uri")) {
                (name, None) => decided.insert("ref.name", named(name)?),
                (_, uri) => decided.insert("ref.uri", named(uri)?),
            };
            decided.insert("ref.type", raw(about.get("type")))
        }
        _ => None,
    };
    Ok(decided)
}

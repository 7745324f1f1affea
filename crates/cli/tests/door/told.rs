//! What the agent was told: the server's own word, or ours in its place.

use linetender_badserver::Failure;
use serde_json::Value;

/// The server's word, whatever it says; or what we say of a call that it could not answer.
pub fn told(answer: &Value) -> Result<(), Failure> {
    let ours = [&answer["result"]["_meta"]["linetender"], &answer["error"]["data"]];
    match ours.into_iter().find(|fields| fields["source"] == "linetender") {
        Some(fields) => Err(Failure::of_fields(fields)),
        None => Ok(()),
    }
}

/// A failure that leaves nobody in doubt: what a program reads has all five fields, and what a model or a person reads
/// names the server, the cause, whether the call ran, and what happens next.
#[track_caller]
pub fn assert_full(answer: &Value) -> Failure {
    let failure = told(answer).expect_err("a failure of ours");
    assert!(!failure.is_silent(), "{answer}");
    assert_eq!(failure.server, "bad", "{answer}");
    let text = if let Some(result) = answer.get("result") {
        assert_eq!(result["isError"], true, "{answer}");
        result["content"][0]["text"].as_str().unwrap()
    } else {
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!(!(-32768..=-32000).contains(&code), "nobody may take it for the server's: {answer}");
        answer["error"]["message"].as_str().unwrap()
    };
    assert!(text.contains("bad") && text.contains(&failure.cause), "{text}");
    let ran: &[&str] = match failure.delivery.as_str() {
        "not executed" => &["not executed"],
        "refused" => &["linetender cannot check that"],
        "unknown" => &["unknown"],
        "answered" => &["processed the call", "answered"],
        other => panic!("no such delivery: {other}"),
    };
    assert!(ran.iter().any(|words| text.contains(words)), "{text}");
    let next_try = format!("next try: {}", failure.next_try);
    let next: &[&str] = match (failure.delivery.as_str(), failure.next_try.as_str()) {
        // What the server asks for.
        ("refused", _) => {
            &["Wait before calling it again.", "The same call would probably be refused again."]
        }
        (_, "now") => &["is connected to the server", "still running", "still alive"],
        _ => &[&next_try, "still running", "still alive"],
    };
    assert!(next.iter().any(|words| text.contains(words)), "{text}");
    failure
}

//! What `why` does besides telling a story.

use serde_json::{Value, json};

use crate::agent::LINETENDER;
use crate::kit::{Dir, Shim};

#[test]
fn with_nothing_known_it_says_what_to_type() {
    let dir = Dir::new();
    let output = dir.run(&["why"]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("linetender run -- COMMAND"));
    let output = dir.run(&["why", "git"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_and_all() {
    let shim = Shim::works(&["--", LINETENDER, "__badserver", "--era", "legacy"]);
    let output = shim.dir.run(&["why", "bda"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("did you mean `bad`?") && text.contains("Known servers: bad"), "{text}");
}

#[test]
fn without_a_name_it_tells_of_the_one_that_is_worst_off_and_programs_get_it_as_data() {
    let shim = Shim::start(&["--", "linetender-no-such-command"]).parked();
    let output = shim.dir.run(&["why"]);
    assert_eq!(output.status.code(), Some(1), "it is down");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("bad is parked: it cannot work"));
    let output = shim.dir.run(&["why", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["version"], 1);
    let story = &document["story"];
    assert_eq!((&story["server"], &story["now"]["state"]), (&json!("bad"), &json!("parked")));
    assert_eq!(story["deaths"][0]["cause"]["seen"], "not-runnable", "{story}");
}

#[test]
fn a_story_is_told_after_linetender_has_ended() {
    let mut shim = Shim::works(&["--", LINETENDER, "__badserver", "--era", "legacy"]);
    shim.agent.call(&json!("kill"), "kill", &json!({}));
    let mut shim = shim.back();
    shim.agent.to = None;
    shim.agent.shim.wait().unwrap();
    let output = shim.dir.run(&["why", "bad"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("was shut down") && text.contains("SIGKILL"), "{text}");
    assert!(!text.contains("redial"), "there is nobody to ask: {text}");
}

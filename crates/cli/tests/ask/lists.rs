//! `linetender tools`.

use serde_json::Value;

use crate::kit::LINETENDER;
use crate::{Place, text, timeless};

#[test]
fn tools_are_listed_with_what_may_be_repeated() {
    let place = Place::new(
        "[servers.one]\nBAD[]\nsafe_tools = ['sleep']\ntools.include = ['echo', 'sleep', 'write']\n\
         [servers.two]\nBAD[]\ntrust_annotations = true\ntools.include = ['echo']\n[servers.gone]\ncommand = 'lt-none'",
    );
    let done = place.run(&["tools"]);
    assert_eq!(done.status.code(), Some(1), "one of them did not answer");
    insta::assert_snapshot!(timeless(&text(&done.stdout)));
    assert!(text(&done.stderr).starts_with("linetender: gone: cannot run lt-none"), "{}", text(&done.stderr));
    let done = place.run(&["tools", "two", "--json"]);
    assert_eq!(done.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let tool = &report["servers"][0]["tools"][0];
    assert_eq!((&tool["name"], &tool["retry"]), (&"echo".into(), &"safe".into()), "{report}");
    assert!(tool["tool"]["inputSchema"].is_object(), "{report}");
    place.nothing_is_left();
}

#[test]
fn a_command_needs_no_configuration() {
    let place = Place::new("");
    let done = place.run(&["tools", "--", LINETENDER, "__badserver"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("answers with its arguments"), "{}", text(&done.stdout));
    let nowhere = place.run(&["tools", "https://"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("no host in the URL"), "{}", text(&nowhere.stderr));
    assert_eq!(place.run(&["tools", "one"]).status.code(), Some(2), "the file has no servers");
}

#[test]
fn a_renamed_tool_is_listed_under_both_names() {
    let place = Place::new(
        "[servers.one]\nBAD[]\ntools = { include = ['echo', 'sleep'], rename = { echo = 'say' }, describe = { echo = 'Says it.' } }",
    );
    let done = place.run(&["tools"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let listed = timeless(&text(&done.stdout));
    assert!(listed.contains("one echo (shown as say) declared Says it."), "{listed}");
    let done = place.run(&["tools", "one", "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let names = |at: usize| {
        let tool = &report["servers"][0]["tools"][at];
        [&tool["name"], &tool["shown"]].map(|name| name.as_str().unwrap().to_owned())
    };
    assert_eq!((names(0), names(1)), (["echo", "say"].map(Into::into), ["sleep", "sleep"].map(Into::into)));
    place.nothing_is_left();
}

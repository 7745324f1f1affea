//! What a gateway writes down.

use serde_json::{Value, json};

use crate::kit::Home;

#[test]
fn a_server_that_was_killed_is_written_down_with_its_cause() {
    let home = Home::new(
        "journal",
        "[servers.a]\nstate = 'none'\n{bad} --stderr hard-at-work\n[servers.b]\n{bad}\n",
    );
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.wait_for("b__echo", "{}");
    // Calls wait 40 ms for a status. On a busy machine the reaper may take longer: one of three is in time.
    for _ in 0..3 {
        agent.ask("tools/call", &json!({ "name": "a__kill", "arguments": {} }));
        agent.wait_for("a__echo", "{}");
    }
    let holder = agent.serves.0.id();
    assert!(agent.leaves().success());
    let journal = home.journal();
    assert!(journal.iter().all(|entry| entry["holder"] == holder && entry["door"] == "serve"), "{journal:?}");
    let of = |server: &str, state: &str| -> Vec<&Value> {
        journal.iter().filter(|entry| entry["server"] == server && entry["state"] == state).collect()
    };
    // The other one ended too, but only when everything did.
    assert!(of("b", "ending").iter().all(|ending| ending["generation"] == 1), "{journal:?}");
    let killed =
        |ending: &&Value| ending["cause"]["text"].as_str().is_some_and(|text| text.contains("SIGKILL"));
    let endings = of("a", "ending");
    assert_eq!(
        endings.iter().filter(|ending| ending["generation"].as_u64() < Some(4)).count(),
        3,
        "{journal:?}"
    );
    let ending = endings.into_iter().find(killed).unwrap_or_else(|| panic!("nobody was killed: {journal:?}"));
    assert!(ending["cause"]["stderr"].as_str().unwrap().contains("hard-at-work"), "{ending}");
    assert!(ending["budget_millis"].as_u64().unwrap() < 5000, "it was charged: {ending}");
    assert!(of("a", "up").iter().any(|up| up["generation"] == 2), "{journal:?}");
    assert_eq!(journal[0]["what"], "begin");
    let last = journal.last().unwrap();
    assert_eq!((&last["what"], &last["why"]), (&json!("end"), &json!("the agent disconnected")));
}

//! Several principals on one gateway: each gets what is its own, and nothing else.

use crate::soak;

/// A few seconds of it; `drill soak gateway 60 --principals 64` is the same for longer.
#[test]
fn eight_principals_on_one_gateway_never_get_what_is_anothers() {
    let done = soak(&["gateway", "6", "1", "--principals", "8", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
    println!("{said}");
    let isolation = &serde_json::from_str::<serde_json::Value>(&said).unwrap()["isolation"];
    assert_eq!(isolation["principals"], 8);
    for (part, kind) in [
        ("heard", "answers"),
        ("heard", "lists"),
        ("heard", "progress notifications"),
        ("heard", "resource updates"),
        ("tried", "another's session (POST)"),
        ("tried", "a token that was just removed"),
        ("looked", "requests at web servers"),
        ("looked", "processes of one principal"),
    ] {
        let count = &isolation[part][kind];
        assert!(count["right"].as_u64() > Some(0) && count["wrong"] == 0, "{kind}: {isolation}");
    }
}

//! Our own doors, at the small size; the large one is `linetender drill soak`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kit::{SLACK, drill, rows, run};

fn keeps_every_promise(target: &str, least: usize) {
    let (kept, results, told) = run(&["--suite", "promises", "--target", target, "--slack", SLACK]);
    assert!(kept, "{told}");
    assert_eq!((results.format, results.targets.len()), (2, 1));
    let promises: BTreeSet<_> = rows(&results).flat_map(|row| row.promises.clone()).collect();
    assert_eq!(promises.len(), 9, "{promises:?}");
    assert!(rows(&results).count() > least, "{told}");
    for row in rows(&results) {
        let calls = row.calls;
        assert!(row.kept && row.runs == 1 && calls.made > 0, "{row:?}");
        assert_eq!(
            calls.hung + calls.ran_twice + calls.wrong + calls.unexplained + calls.empty,
            0,
            "{row:?}"
        );
        assert_eq!((row.orphans, row.provable.recovered), (0, row.provable.calls), "{row:?}");
    }
    assert!(results.targets[0].timeline.as_ref().is_some_and(|timeline| timeline.events.len() > 20));
    assert!(told.contains("P9") && told.contains("kept"), "{told}");
}

#[test]
fn the_library_keeps_every_promise() {
    keeps_every_promise("line", 80);
}

#[test]
fn the_shim_keeps_every_promise() {
    keeps_every_promise("shim", 80);
}

/// Only servers over stdio are shared.
#[test]
fn a_shared_server_keeps_every_promise() {
    keeps_every_promise("shared", 50);
}

#[test]
fn the_gateway_keeps_every_promise() {
    keeps_every_promise("gateway", 80);
}

#[test]
fn a_short_soak_ends_with_a_verdict() {
    // This seed draws every habit of a server, with faults that end the server.
    let asked =
        ["soak", "--target", "shim", "--faults", "100", "--seed", "23", "--slack", SLACK, "--json", "-"];
    let output = drill(&asked);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let verdicts: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdicts[0]["findings"], json!([]), "{verdicts}");
    assert!(verdicts[0]["faults"].as_u64() >= Some(80), "{verdicts}");
    assert!(text.contains("seed 23: ") && text.contains("KEPT: 0 hung, 0 run twice"), "{text}");
    assert!(
        text.contains("0 on a fresh context without notice, 0 strangers killed, 0 two at once, 0 saves lost"),
        "{text}"
    );
    let laws = |what: &str| {
        let rows = verdicts[0]["rows"].as_array().into_iter().flatten();
        rows.filter_map(|row| row["laws"][what].as_u64()).sum::<u64>()
    };
    for (what, least) in [
        ("set_up", 20),
        ("losses_told", 20),
        ("refused_by_rule", 20),
        ("strangers", 3),
        ("locks", 5),
        ("saves", 3),
    ] {
        assert!(laws(what) >= least, "{what}: {}, {text}", laws(what));
    }
}

#[test]
fn rows_are_listed_those_that_are_not_played_too() {
    let output = drill(&["list"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("S05-provable") && text.contains("A01") && text.contains("not played"), "{text}");
}

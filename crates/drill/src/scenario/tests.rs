//! Every row has a file, and every file says what it means.

use std::collections::BTreeSet;

use super::{Fault, Kind, Over, ROWS, Scenario, files};

fn all() -> Vec<Scenario> {
    Scenario::all().unwrap()
}

#[test]
fn every_row_of_the_catalogue_has_a_scenario() {
    let rows: BTreeSet<_> = all().into_iter().map(|scenario| scenario.row).collect();
    let missing: Vec<_> = ROWS.iter().filter(|row| !rows.contains(**row)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(rows.iter().all(|row| ROWS.contains(&row.as_str())), "{rows:?}");
}

#[test]
fn every_file_in_the_folder_is_one_of_them() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let on_disk: BTreeSet<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let known: BTreeSet<_> = files::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(on_disk, known);
}

#[test]
fn a_scenario_is_named_after_its_row_and_names_promises_or_why_it_is_not_played() {
    for scenario in all() {
        assert!(scenario.name.starts_with(&scenario.row), "{}", scenario.name);
        assert!(scenario.skip.is_some() || !scenario.promises.is_empty(), "{}", scenario.name);
        let known = |promise: &String| {
            promise
                .strip_prefix('P')
                .and_then(|number| number.parse().ok())
                .is_some_and(|n: u8| (1..=9).contains(&n))
        };
        assert!(scenario.promises.iter().all(known), "{}: {:?}", scenario.name, scenario.promises);
    }
}

#[test]
fn a_fault_fits_its_server() {
    for scenario in all().into_iter().filter(|scenario| scenario.skip.is_none()) {
        let over = match scenario.fault {
            Fault::Kill | Fault::KillLast | Fault::Stop { .. } | Fault::KillReaper | Fault::ChangeAndKill => {
                Over::Stdio
            }
            Fault::Restart
            | Fault::Flip
            | Fault::ForgetSessions
            | Fault::Refuse
            | Fault::Silence
            | Fault::Reset
            | Fault::Meet { .. } => Over::Http,
            Fault::None
            | Fault::KillTarget
            | Fault::TermTarget
            | Fault::Mend
            | Fault::TakeBack
            | Fault::Redial { .. } => continue,
        };
        assert_eq!(scenario.server.over, over, "{}", scenario.name);
    }
}

#[test]
fn every_promise_that_a_drill_can_show_is_shown() {
    for promise in 1..=9 {
        let word = format!("P{promise}");
        let shown = all().iter().filter(|s| s.skip.is_none() && s.promises.contains(&word)).count();
        assert!(shown >= 2, "{word} is shown by {shown} scenarios");
    }
}

#[test]
fn what_scenarios_pass_to_a_tool_is_declared() {
    for scenario in all().iter().filter(|scenario| scenario.server.kind == Kind::Bad) {
        for load in &scenario.load {
            let schema = linetender_badserver::schema(&load.tool);
            for (name, value) in &load.args {
                let kind = match value {
                    serde_json::Value::Bool(_) => "boolean",
                    serde_json::Value::String(_) => "string",
                    _ => "integer",
                };
                assert_eq!(schema["properties"][name]["type"], kind, "{}: {name}", scenario.name);
            }
        }
    }
}

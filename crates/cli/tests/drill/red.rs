//! Targets that do what no target may: each is found out, by its rows and by the exit code.

use linetender_drill::results::Row;

use crate::kit::{Dir, drill, rows, run, run_as_told};

const LIAR: &str = include_str!("liar.py");

/// The file of a target that lies like this.
fn liar(dir: &Dir, how: &str) -> String {
    let liar = dir.write("liar.py", LIAR);
    let adapter = format!(
        "name = 'liar'\neras = ['legacy']\n[stdio]\ncommand = ['python3', '{liar}', '{how}', '{{server...}}']\n"
    );
    dir.write("liar.toml", &adapter)
}

/// The row of a target that lies like this.
fn lies(how: &str, row: &str) -> Row {
    let dir = Dir::new();
    let adapter = liar(&dir, how);
    let (kept, results, told) = run(&["--row", row, "--target", &adapter]);
    assert!(!kept, "{told}");
    assert!(told.contains("BROKEN"), "{told}");
    let row = rows(&results).find(|played| played.row == row).cloned().unwrap();
    assert!(!row.kept && !row.findings.is_empty(), "{row:?}");
    row
}

#[test]
fn a_target_that_sends_every_call_twice_is_found_out() {
    let row = lies("twice", "S03");
    assert_eq!(row.calls.ran_twice, row.calls.made, "{row:?}");
}

#[test]
fn a_target_that_swallows_the_death_of_its_server_is_found_out() {
    let row = lies("swallow", "S11");
    assert!(row.calls.hung > 0, "{row:?}");
    assert_eq!(row.back_ms, [None], "{row:?}");
}

#[test]
fn a_target_that_let_a_call_hang_and_then_works_again_is_back() {
    let row = lies("late", "S11");
    assert!(row.calls.hung == 1 && row.back_ms[0].is_some_and(|ms| ms > 15_000.0), "{row:?}");
}

#[test]
fn a_target_that_says_what_is_not_so_is_found_out() {
    let row = lies("lie", "S11");
    assert!(row.calls.wrong > 0, "{row:?}");
}

#[test]
fn a_target_that_says_nothing_in_its_errors_is_found_out() {
    let row = lies("mute", "S11");
    assert!(row.calls.empty > 0, "{row:?}");
}

#[test]
fn a_target_that_starts_a_slow_server_twice_is_found_out() {
    let row = lies("hasty", "S03");
    assert!(row.findings.iter().any(|finding| finding.contains("was started 2 times")), "{row:?}");
}

#[test]
fn a_target_without_a_list_is_found_out() {
    for row in ["S04", "S22"] {
        let row = lies("listless", row);
        let told = |finding: &String| finding.contains("the list of tools could not be read");
        assert!(row.findings.iter().any(told), "{row:?}");
    }
}

#[test]
fn a_target_that_panics_is_found_out_even_if_it_was_started_again() {
    let row = lies("panic", "S11");
    assert!(row.findings.iter().any(|finding| finding.contains("has a panic")), "{row:?}");
}

#[test]
fn no_supervision_at_all_breaks_what_it_must_and_keeps_what_it_can() {
    let dir = Dir::new();
    let adapter = dir.write("bare.toml", "name = 'nothing between'\n[stdio]\ncommand = ['{server...}']\n");
    let (kept, results, told) = run(&["--row", "S11", "--row", "S03", "--target", &adapter]);
    assert!(!kept, "{told}");
    let row = |name: &str| rows(&results).find(|row| row.row == name).cloned().unwrap();
    assert!(row("S03").kept, "{told}");
    let died = row("S11");
    assert!(!died.kept && died.calls.empty == 1 && died.reconnects == 1, "{died:?}");
    let (shown, ..) = run(&["--row", "S11", "--target", &adapter, "--report-only"]);
    assert!(shown, "a board is no judgement");
}

#[test]
fn what_a_soak_finds_can_be_played_again_by_its_command() {
    let dir = Dir::new();
    let adapter = liar(&dir, "listless");
    // Of what this seed draws, the liar breaks S37 alone.
    let output = drill(&["soak", "--target", &adapter, "--faults", "6", "--seed", "5", "--slack", "7"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, again) = told.split_once("again: linetender drill run ").expect(&told);
    let again = again.lines().next().unwrap();
    assert!(again.contains("--scenario S37 ") && again.contains("--slack 7 --policy drill"), "{again}");
    let (kept, results, told) = run_as_told(&again.split(' ').collect::<Vec<_>>());
    assert!(!kept && results.targets[0].rows.len() == 1, "{told}");
}

#[test]
fn where_nothing_was_played_nothing_was_kept() {
    let (kept, results, told) = run(&["--row", "G01", "--target", "line"]);
    assert!(!kept && results.is_empty() && told.contains("no scenario was run"), "{told}");
    let dir = Dir::new();
    let adapter =
        dir.write("x.toml", "name = 'x'\n[http]\ncommand = ['true']\nurl = 'http://127.0.0.1:{port}'\n");
    let output = drill(&["soak", "--faults", "1", "--target", &adapter]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && told.contains("NOTHING PLAYED"), "{told}");
}

#[test]
fn what_cannot_be_meant_is_said_in_a_sentence() {
    for (words, sentence) in [
        (["run", "--row", "S99"], "there is no row S99"),
        (["run", "--scenario", "S5"], "there is no scenario S5"),
        (["run", "--slack", "nan"], "not a number above 0"),
        (["soak", "--hours", "inf"], "not a number above 0"),
        (["soak", "--faults", "0"], "0 is not in 1.."),
        (["soak", "--jobs", "0"], "0 is not in 1.."),
        (["run", "--target", "nobody.toml"], "neither line, shim, shared, gateway nor a file"),
    ] {
        let output = drill(&words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(sentence), "{told}");
    }
}

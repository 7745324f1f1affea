//! Worlds that every change has to survive: two halves of a sweep, side by side, and those that broke a law once.

use linetender_sim::{Declared, REGRESSIONS, play, play_day, sweep};

/// Worlds per half; some four hundred calls each.
const WORLDS: u64 = 130;

fn half(number: u64) {
    let swept = sweep(number * WORLDS..(number + 1) * WORLDS, usize::MAX, usize::MAX, 1);
    println!("{}{} worlds, {} calls", swept.coverage, swept.worlds, swept.calls);
    assert!(swept.broken.is_empty(), "{}", swept.complaints().join("\n"));
    assert!(swept.calls >= 50_000, "only {} calls", swept.calls);
    assert!(swept.ran_again > 0, "no server ran a call and then refused it so that it ran again");
}

#[test]
fn laws_hold_in_random_worlds_first_half() {
    half(0);
}

#[test]
fn laws_hold_in_random_worlds_second_half() {
    half(1);
}

#[test]
fn worlds_that_broke_a_law_once_keep_it_now() {
    for seed in REGRESSIONS {
        let played = play(seed, false);
        assert_eq!(played.findings, [], "world {seed}");
    }
}

#[test]
fn a_world_is_the_same_each_time_it_is_played() {
    for seed in 0..40 {
        let (first, second) = (play(seed, false), play(seed, false));
        assert_eq!(first.coverage, second.coverage, "world {seed}");
        assert_eq!(first.hash, second.hash, "world {seed}");
    }
}

#[test]
fn a_working_day_has_one_notice_for_each_replaced_server_and_none_without_a_memory() {
    let (default, stateless) = (play_day(1, Declared::Nothing), play_day(1, Declared::Stateless));
    for day in [&default, &stateless] {
        assert_eq!(day.sum(|server| server.failed), 0, "{day}");
    }
    assert_eq!(stateless.sum(|server| server.refused), 0, "{stateless}");
    assert!(default.sum(|server| server.refused) > 0, "{default}");
    for server in &default.servers {
        assert!(server.notices <= server.replaced, "{default}");
    }
}

//! The reaper's logic in worlds that are made up, on any system.

#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod real;
mod world;

use crate::seen::Exit;
use crate::stdio::control::Record;

use super::reaping::Done;
use super::{Kernel as _, Look, Reaping, Start};
use world::{LAUNCHD, State, Temper, World};

fn reaping(world: World) -> Reaping<World> {
    let server = rustix::process::Pid::from_raw(world.server).unwrap();
    Reaping::of(server, world)
}

/// Runs a world to its end, and holds it against what was promised; how often a number was given out again in it.
fn run(seed: u64, temper: Temper) -> u64 {
    let mut reaping = reaping(World::new(seed, temper));
    let done = reaping.run();
    let world = &reaping.kernel;
    let exits = world.told.iter().filter(|told| matches!(told, Record::Exited(_))).count();
    assert_eq!(done, Done::Clear, "everything here can die");
    assert_eq!(exits, 1, "the status is told once: {:?}", world.told);
    assert_eq!(world.told.last(), Some(&Record::Clear), "and before the end");
    assert_eq!(world.told.iter().filter(|told| **told == Record::Clear).count(), 1);
    world.reused
}

/// Names the world that fails.
fn run_all(seeds: std::ops::Range<u64>, temper: Temper) {
    let mut reused = 0;
    for seed in seeds {
        let Ok(more) = std::panic::catch_unwind(|| run(seed, temper)) else {
            panic!("world {seed}, {temper:?}");
        };
        reused += more;
    }
    assert!(reused > 1000, "numbers are not used again: {reused}");
}

#[test]
fn nothing_of_a_tree_is_left_where_everything_is_told_in_time() {
    run_all(0..600, Temper::Calm);
}

#[test]
fn nothing_that_was_seen_is_left_and_no_stranger_is_hurt_where_anything_happens_at_any_time() {
    run_all(0..600, Temper::Wild);
}

#[test]
fn a_reaper_that_is_told_nothing_looks_for_itself() {
    run_all(0..300, Temper::Deaf);
}

fn scripted() -> World {
    let mut world = World::new(7, Temper::Calm);
    world.is_scripted = true;
    world
}

#[test]
fn a_daemon_that_left_its_group_and_lost_its_parent_is_killed_with_the_server() {
    let mut world = scripted();
    let between = world.fork(world.server).unwrap();
    let daemon = world.fork(between).unwrap();
    world.procs.get_mut(&daemon).unwrap().group = daemon;
    let mut reaping = reaping(world);
    // It is seen while its parent lives, and remembered.
    reaping.family.learn(&mut reaping.kernel);
    reaping.kernel.end(between, Exit::Status(0));
    assert_eq!(reaping.kernel.procs[&daemon].parent, LAUNCHD);
    assert_eq!(reaping.end(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
}

#[test]
fn an_orphan_that_stayed_in_the_group_is_found_though_nobody_saw_it_start() {
    let mut world = scripted();
    let between = world.fork(world.server).unwrap();
    let orphan = world.fork(between).unwrap();
    world.end(between, Exit::Status(0));
    world.end(world.server, Exit::Status(3));
    assert_eq!(world.procs[&orphan].parent, LAUNCHD);
    // There is nothing else to know it by.
    world.has_session = false;
    world.runs_another_program(orphan);
    let mut reaping = reaping(world);
    assert_eq!(reaping.run(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
    assert_eq!(reaping.kernel.told, [Record::Exited(Exit::Status(3)), Record::Clear]);
}

#[test]
fn a_job_whose_parent_was_gone_before_it_was_seen_is_found_in_the_session() {
    let mut world = scripted();
    let between = world.fork(world.server).unwrap();
    let job = world.fork(between).unwrap();
    world.procs.get_mut(&job).unwrap().group = job;
    world.end(between, Exit::Status(0));
    assert_eq!(world.procs[&job].parent, LAUNCHD);
    world.script.push_back(|world| world.end(world.server, Exit::Status(0)));
    let mut reaping = reaping(world);
    assert_eq!(reaping.run(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
}

#[test]
fn a_daemon_is_found_below_a_server_that_is_already_on_its_way_out() {
    let mut world = scripted();
    world.script.push_back(|world| {
        let daemon = world.fork(world.server).unwrap();
        let proc = world.procs.get_mut(&daemon).unwrap();
        (proc.group, proc.session) = (daemon, daemon);
        // It closes its pipes, and takes its time.
        world.procs.get_mut(&world.server).unwrap().is_ending = true;
    });
    world.script.push_back(|world| {
        let daemon = world.procs.iter().find(|(_, proc)| proc.parent == world.server);
        let daemon = *daemon.unwrap().0;
        world.end(world.server, Exit::Status(0));
        world.runs_another_program(daemon);
    });
    let mut reaping = reaping(world);
    assert_eq!(reaping.run(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
    assert_eq!(reaping.kernel.told, [Record::Exited(Exit::Status(0)), Record::Clear]);
}

#[test]
fn a_daemon_whose_parent_ended_before_anybody_looked_is_known_by_whose_child_it_was() {
    let mut world = scripted();
    let between = world.fork(world.server).unwrap();
    let mut reaping = reaping(world);
    // The one between is seen; what it starts right before its end is not.
    reaping.family.learn(&mut reaping.kernel);
    let world = &mut reaping.kernel;
    let daemon = world.fork(between).unwrap();
    let proc = world.procs.get_mut(&daemon).unwrap();
    (proc.group, proc.session) = (daemon, daemon);
    world.end(between, Exit::Status(0));
    assert_eq!(world.procs[&daemon].parent, LAUNCHD);
    assert_eq!(reaping.end(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
}

#[test]
fn a_daemon_whose_parent_was_dead_when_it_was_first_seen_is_known_by_it_too() {
    let mut world = scripted();
    let between = world.fork(world.server).unwrap();
    let daemon = world.fork(between).unwrap();
    let proc = world.procs.get_mut(&daemon).unwrap();
    (proc.group, proc.session) = (daemon, daemon);
    // Nobody has waited for it yet.
    world.end(between, Exit::Status(0));
    assert_eq!(world.procs[&between].state, State::Dead);
    let mut reaping = reaping(world);
    assert_eq!(reaping.end(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
}

#[test]
fn a_stranger_that_gets_the_number_of_an_orphan_is_not_taken_for_it() {
    let mut world = scripted();
    let between = world.fork(world.server).unwrap();
    let mut reaping = reaping(world);
    reaping.family.learn(&mut reaping.kernel);
    let world = &mut reaping.kernel;
    let daemon = world.fork(between).unwrap();
    let proc = world.procs.get_mut(&daemon).unwrap();
    (proc.group, proc.session) = (daemon, daemon);
    world.end(between, Exit::Status(0));
    world.is_replaced = Some(daemon);
    assert_eq!(reaping.end(), Done::Clear);
    assert!(reaping.kernel.is_replaced.is_none() && !reaping.kernel.procs[&daemon].is_ours);
    assert_eq!(reaping.kernel.procs[&daemon].state, State::Runs);
}

#[test]
fn one_that_became_another_users_is_not_taken_for_one_that_ended() {
    let start = |seconds| Start { seconds, micros: 0 };
    let lives = |seconds| Look::Lives { start: start(seconds), parent: None, group: None };
    assert!(Look::Gone.is_end_of(Some(start(7))) && Look::Gone.is_end_of(None));
    assert!(!lives(7).is_end_of(Some(start(7))), "it lives");
    assert!(lives(8).is_end_of(Some(start(7))), "another has its number");
    assert!(!Look::Others.is_end_of(Some(start(7))), "sudo is still there");
    assert!(!Look::Others.is_end_of(None) && !lives(7).is_end_of(None));
}

#[test]
fn a_daemon_is_seen_now_and_then_where_no_fork_is_told() {
    let mut world = scripted();
    world.temper = Temper::Deaf;
    world.script.push_back(|world| {
        let between = world.fork(world.server).unwrap();
        let daemon = world.fork(between).unwrap();
        let proc = world.procs.get_mut(&daemon).unwrap();
        (proc.group, proc.session) = (daemon, daemon);
    });
    // A moment goes by, and everything is looked at. Later there is nothing else to know it by.
    world.script.push_back(|world| {
        let between = world.procs.iter().find(|(_, proc)| proc.parent == world.server);
        let between = *between.unwrap().0;
        let daemon = world.procs.iter().find(|(_, proc)| proc.parent == between);
        let daemon = *daemon.unwrap().0;
        world.end(between, Exit::Status(0));
        world.runs_another_program(daemon);
    });
    world.script.push_back(|world| world.end(world.server, Exit::Status(0)));
    let mut reaping = reaping(world);
    assert_eq!(reaping.run(), Done::Clear);
    assert_eq!(reaping.kernel.living(), Vec::<i32>::new());
}

#[test]
fn a_status_that_is_lost_does_not_keep_the_line_waiting() {
    let mut world = scripted();
    world.loses_status = true;
    world.script.push_back(|world| world.end(world.server, Exit::Status(0)));
    let mut reaping = reaping(world);
    assert_eq!(reaping.run(), Done::Clear);
    assert_eq!(reaping.kernel.told, [Record::Clear]);
}

#[test]
fn what_another_user_owns_is_named_and_left() {
    let mut world = scripted();
    let sudo = world.fork(world.server).unwrap();
    world.procs.get_mut(&sudo).unwrap().is_others = true;
    let mut reaping = reaping(world);
    reaping.family.learn(&mut reaping.kernel);
    assert_eq!(reaping.end(), Done::Clear);
    assert!(reaping.kernel.told.contains(&Record::Left(sudo)), "{:?}", reaping.kernel.told);
}

#[test]
fn a_tree_that_does_not_die_is_given_up_only_when_nobody_listens() {
    let mut world = scripted();
    let stuck = world.fork(world.server).unwrap();
    world.procs.get_mut(&stuck).unwrap().is_immortal = true;
    let mut reaping = reaping(world);
    assert!(reaping.kernel.parent_lives());
    assert_eq!(reaping.end(), Done::GaveUp);
    let told = &reaping.kernel.told;
    assert!(told.iter().filter(|told| **told == Record::Busy).count() > 3, "as long as somebody listened");
    assert!(!told.contains(&Record::Clear));
    assert!(!reaping.kernel.parent_lives);
}

//! Which program becomes the reaper: never one that did not say that it can.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// An example of this crate. Cargo builds them with the tests.
fn program(example: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples").join(example);
    assert!(path.exists(), "{} is missing: build the examples", path.display());
    path
}

/// A folder of the test's own.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-reaper-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program that forgot, and returns what it was told. It must have been started once.
fn told(words: &[&str], path: &Path, mark: bool) -> String {
    let dir = Dir::new();
    let mut command = Command::new(program("forgetful"));
    command.args(words).env("TMPDIR", &dir.0).env("PATH", format!("{}:/usr/bin:/bin", path.display()));
    command.env_remove("LINETENDER_REAPER_OF");
    if mark {
        command.env("LINETENDER_REAPER_OF", "1");
    }
    let done = command.output().unwrap();
    let starts = std::fs::read_dir(dir.0.join("starts")).unwrap().count();
    assert_eq!(starts, 1, "it was started again as its own reaper");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn a_program_that_forgot_is_told_which_line_to_add_and_never_started_again() {
    let nothing = Dir::new();
    let told = told(&[], &nothing.0, false);
    assert!(told.contains("add `if let Some(done) = linetender::reaper::run_if_asked()"), "{told}");
    assert!(told.contains("not executed") && told.contains("next try"), "{told}");
}

#[test]
fn a_program_that_asks_inside_a_runtime_is_told_so() {
    let nothing = Dir::new();
    let told = told(&["late"], &nothing.0, false);
    assert!(told.contains("was called inside an async runtime"), "{told}");
}

#[test]
fn a_reaper_on_path_serves_a_program_that_cannot_ask() {
    let found = Dir::new();
    std::os::unix::fs::symlink(program("calls"), found.0.join("linetender-reaper")).unwrap();
    // The server runs: it is `cat`, and that is what the call is told.
    let told = told(&[], &found.0, false);
    assert!(told.contains("not an MCP server: it echoes its input"), "{told}");
}

#[test]
fn a_program_that_does_not_understand_that_it_is_a_reaper_starts_nothing() {
    let found = Dir::new();
    std::os::unix::fs::symlink(program("calls"), found.0.join("linetender-reaper")).unwrap();
    let told = told(&[], &found.0, true);
    assert!(told.contains("this process was started as a reaper"), "{told}");
}

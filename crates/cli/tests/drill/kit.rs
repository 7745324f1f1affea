//! The command, and what it writes for programs.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use linetender_drill::results::{Results, Row};

/// How many times longer than on an idle machine things may take here.
pub(crate) const SLACK: &str = "20";

/// A folder of the test's own.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-drills-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file in it, and its path as a word.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn drill(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linetender")).arg("drill").args(words).output().unwrap()
}

/// Runs it with these words, and reads what it writes for programs; whether it was content, and what people read.
pub(crate) fn run(words: &[&str]) -> (bool, Results, String) {
    run_as_told(&[&["--seed", "1"], words].concat())
}

/// The same, with a seed of its own.
pub(crate) fn run_as_told(words: &[&str]) -> (bool, Results, String) {
    let output = drill(&[&["run", "--json", "-"], words].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let results = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    (output.status.success(), results, told)
}

pub(crate) fn rows(results: &Results) -> impl Iterator<Item = &Row> {
    results.targets.iter().flat_map(|target| &target.rows).filter(|row| row.skipped.is_none())
}

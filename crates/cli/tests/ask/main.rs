//! The commands that start servers for a moment: `doctor`, `tools`, `call`.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

mod calls;
mod doctors;
#[path = "../holders/kit.rs"]
#[allow(dead_code, reason = "others need the rest of it")]
mod kit;
mod lists;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kit::{Home, LINETENDER};

/// A home with a configuration, and a `PATH` that is the same on every machine.
pub(crate) struct Place(Home);

impl Place {
    /// `BAD` in the text stands for the server that misbehaves, on stdio.
    pub(crate) fn new(config: &str) -> Self {
        let home = Home::new();
        let bad = format!("command = '{LINETENDER}'\nargs = ['__badserver', ");
        std::fs::write(home.path().join("linetender.toml"), config.replace("BAD[", &bad)).unwrap();
        Self(home)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.0.linetender(words);
        command.current_dir(self.0.path()).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// Waits until no process is left that has this home.
    pub(crate) fn nothing_is_left(&self) {
        let mark = format!("HOME={}\0", self.0.path().display());
        let lives = || {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let environs = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
            environs.filter(|text| String::from_utf8_lossy(text).contains(&mark)).count()
        };
        kit::until("processes are left", || lives() == 0);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The text with its times replaced, and with the gaps of its columns made the same, for they depend on them.
pub(crate) fn timeless(text: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // How long to wait follows from how long the start took.
        if let ["fix:", "set", "wait", "=", time] = words.as_mut_slice() {
            *time = "TIME";
        }
        let mut at = 1;
        while at < words.len() {
            if matches!(words[at].trim_end_matches([',', ')']), "ms" | "s")
                && words[at - 1].parse::<f64>().is_ok()
            {
                words[at - 1] = "TIME";
                words.remove(at);
            } else {
                at += 1;
            }
        }
        format!("{}{}", " ".repeat(indent), words.join(" "))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n").replace(LINETENDER, "LINETENDER")
}

/// Whether this took no longer.
pub(crate) fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    assert!(begin.elapsed() < limit, "{:?}", begin.elapsed());
    done
}

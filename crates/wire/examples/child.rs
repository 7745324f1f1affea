//! A server for the tests of this crate that run on every system: what it does is its first argument.
//!
//! Whether a process lives can be asked everywhere in the same way if it listens at a port: so each of them does, and says which.

#![allow(clippy::disallowed_methods, reason = "a program of the tests' own")]

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use handles::{close_stdin, close_stdout};
use linetender_core::{ClosePolicy, Limits};
use linetender_wire::Item;
use linetender_wire::seam::{Listener, Loss};
use linetender_wire::stdio::{Child, Env, Launch, Program, Reaper};

pub(crate) fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    match what.as_str() {
        // Each line comes back.
        "echo" => drop(std::io::copy(&mut std::io::stdin().lock(), &mut std::io::stdout().lock())),
        // Last words, then the end: at once, or after the first line.
        "exit" => {
            eprintln!("no API key, token=abc");
            say("up");
            if args.next().is_some() {
                let _ = std::io::stdin().lock().read_line(&mut String::new());
            }
            say("dying");
            return ExitCode::from(37);
        }
        "abort" => std::process::abort(),
        // Its arguments, one on each line.
        "args" => args.for_each(|arg| say(&format!("arg {arg}."))),
        "env" => std::env::vars().for_each(|(name, value)| say(&format!("{name}={value}"))),
        "dir" => say(&std::env::current_dir().unwrap_or_default().display().to_string()),
        // A line of so many bytes.
        "long" => say(&"x".repeat(args.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0))),
        "flood" => {
            let _ = std::io::stderr().write_all(&b"e".repeat(10_000_000));
            say("done");
            stay();
        }
        // Closes one of its pipes, and lives on.
        "close" => {
            say("up");
            if args.next().as_deref() == Some("stdin") {
                close_stdin();
                stay();
            }
            close_stdout();
            loop {
                std::thread::park();
            }
        }
        // Never reads, never ends.
        "deaf" => stay(),
        // Ends at end of file, and has to do something before that.
        "polite" => {
            say("up");
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            std::fs::write(args.next().unwrap_or_default(), "bye").unwrap_or_default();
        }
        // A process below this one, which holds its pipes and lives longer.
        "tree" => {
            let this = std::env::current_exe().unwrap_or_default();
            let below = Command::new(this).arg("deaf").spawn();
            if args.next().is_some() {
                let _ = std::io::stdin().lock().read_line(&mut String::new());
                return ExitCode::from(38);
            }
            drop(below);
            stay();
        }
        "owner" => own(args.next().and_then(|trees| trees.parse().ok()).unwrap_or(1)),
        other => eprintln!("child: what is {other}?"),
    }
    ExitCode::SUCCESS
}

#[cfg(windows)]
#[allow(unsafe_code, reason = "a standard handle can only be closed by its number")]
mod handles {
    use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};

    pub(crate) fn close_stdin() {
        // SAFETY: nobody owns it: the standard library looks the handle up each time.
        drop(unsafe { OwnedHandle::from_raw_handle(std::io::stdin().as_raw_handle()) });
    }

    pub(crate) fn close_stdout() {
        // SAFETY: as above.
        drop(unsafe { OwnedHandle::from_raw_handle(std::io::stdout().as_raw_handle()) });
    }
}

/// Elsewhere the tests have a shell.
#[cfg(not(windows))]
mod handles {
    pub(crate) const fn close_stdin() {}

    pub(crate) const fn close_stdout() {}
}

fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(format!("{text}\n").as_bytes());
    let _ = stdout.flush();
}

/// Says where it can be found, and stays there.
fn stay() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    say(&format!("port {}", listener.local_addr().expect("an address").port()));
    loop {
        // Those who look are let in, or the place where they wait would be full one day.
        drop(listener.accept());
    }
}

struct Ears;

impl Listener for Ears {
    fn hear(&self, item: Item) {
        if let Item::Noise(noise) = item {
            say(&String::from_utf8_lossy(&noise));
        }
    }

    fn heard(&self) {}

    fn lost(&self, _: u64, _: Loss) {}

    fn gap(&self) {}
}

/// Owns so many trees, and says what they say, until it is killed.
fn own(trees: usize) {
    let this = std::env::current_exe().unwrap_or_default();
    let launch = Launch {
        program: Program { argv: vec![this.into(), "tree".into()], dir: None, env: Env::Ours },
        container: None,
        reaper: Reaper::None,
        lifeline: None,
        start: None,
        close: ClosePolicy::default(),
        sizes: Limits::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (tell, mut events) = tokio::sync::mpsc::channel(16);
        let launch = || Child::launch(&launch, Arc::new(Ears), tell.clone()).ok();
        let _children: Vec<_> = (0..trees).map(|_| launch().expect("a child")).collect();
        while events.recv().await.is_some() {}
        tokio::time::sleep(Duration::from_secs(600)).await;
    });
}

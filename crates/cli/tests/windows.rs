//! What only a Windows has: a console that tells a program to stop, and pipes that nobody can wait for.

#![cfg(windows)]
#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::windows::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use linetender_badserver::process::{ask_to_end, descendants, lives};

const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// `CREATE_NO_WINDOW`: with a console of its own, which nobody sees. `CREATE_NEW_PROCESS_GROUP`: a Ctrl-Break for it alone.
const OWN_CONSOLE: u32 = 0x0800_0000;
const OWN_GROUP: u32 = 0x200;

/// Set for the process that has a console.
const INSIDE: &str = "LINETENDER_TEST_HAS_CONSOLE";

const LONG: Duration = Duration::from_secs(20);

/// Less than answers are waited for that are still to come.
const SOON: Duration = Duration::from_secs(2);

/// This test in a process with a console.
#[test]
fn a_ctrl_break_ends_a_shim_as_a_sigterm_does() {
    if std::env::var_os(INSIDE).is_some() {
        return told_by_its_console();
    }
    let this = std::env::current_exe().unwrap();
    let inside = Command::new(this)
        .args(["--exact", "a_ctrl_break_ends_a_shim_as_a_sigterm_does", "--nocapture"])
        .env(INSIDE, "1")
        .creation_flags(OWN_CONSOLE)
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&inside.stdout).into_owned() + &String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success(), "{said}");
    print!("{said}");
}

/// What stands in for a Windows here has no console that could tell anybody anything.
fn is_wine() -> bool {
    std::path::Path::new(r"C:\windows\system32\winecfg.exe").exists()
}

/// A shim whose server has answered, and both ends of its pipes.
fn shim() -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut shim = Command::new(LINETENDER)
        .args(["run", "--no-journal", "--"])
        .arg(linetender_badserver::program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .creation_flags(OWN_GROUP)
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let mut to = shim.stdin.take().unwrap();
    writeln!(to, "{hello}").unwrap();
    let mut from = BufReader::new(shim.stdout.take().unwrap());
    let mut answer = String::new();
    from.read_line(&mut answer).unwrap();
    assert!(answer.contains("result"), "{answer}");
    (shim, to, from)
}

#[test]
fn an_agent_that_neither_asks_nor_reads_is_gone_for_good() {
    let (mut shim, mut to, from) = shim();
    writeln!(to, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang","arguments":{"nonce":"n"}}}"#;
    writeln!(to, "{call}").unwrap();
    // As if it were killed.
    drop((to, from));
    let gone = Instant::now();
    while shim.try_wait().unwrap().is_none() {
        assert!(gone.elapsed() < SOON, "it waits for an answer that nobody would read");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn told_by_its_console() {
    let (mut shim, to, _from) = shim();
    let below = descendants(&shim.id().to_string());
    assert!(below.iter().any(|pid| lives(*pid)), "there is no server");
    if !ask_to_end(shim.id().cast_signed()) {
        let error = std::io::Error::last_os_error();
        assert!(is_wine(), "no Ctrl-Break: {error}");
        println!("skipped: wine sends no Ctrl-Break ({error})");
        let _ = shim.kill();
        return;
    }
    let told = Instant::now();
    let status = loop {
        if let Some(status) = shim.try_wait().unwrap() {
            break status;
        }
        assert!(told.elapsed() < LONG, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    // The agent has not closed its end: it was the console that ended it.
    drop(to);
    assert_eq!(status.code(), Some(128 + 15), "as after a SIGTERM");
    while below.iter().any(|pid| lives(*pid)) {
        assert!(told.elapsed() < LONG, "its server is left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

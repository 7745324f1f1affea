//! What whoever asks is told.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{Home, Shim, until};

fn pids(status: &Value) -> Vec<u64> {
    status["holders"].as_array().unwrap().iter().map(|holder| holder["pid"].as_u64().unwrap()).collect()
}

fn sorted(shims: &[Shim]) -> Vec<u64> {
    let mut pids: Vec<_> = shims.iter().map(|shim| u64::from(shim.pid())).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn with_nothing_running_it_says_so_and_what_to_type() {
    let home = Home::new();
    let output = home.run(&["status"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "No linetender process is running. To supervise a server: linetender run -- COMMAND\n");
    assert_eq!(home.status(), json!({ "version": 1, "holders": [] }));
}

#[test]
fn top_without_a_terminal_says_what_scripts_use_instead() {
    let output = Home::new().run(&["top"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "not a byte of a screen");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "linetender: top needs a terminal; for scripts: linetender status --json\n");
}

#[test]
fn every_running_shim_is_listed_and_a_dead_one_is_dropped() {
    let home = Home::new();
    let mut shims: Vec<_> = (0..3).map(|_| home.shim(&[], &[])).collect();
    shims[1].kill_server();
    let is_known = |holder: &Value| !holder["report"]["lines"][0]["pid"].is_null();
    until("the servers' processes", || home.status()["holders"].as_array().unwrap().iter().all(is_known));
    let status = home.status();
    assert_eq!(pids(&status), sorted(&shims));
    let of =
        |pid: u32| status["holders"].as_array().unwrap().iter().find(|holder| holder["pid"] == pid).unwrap();
    let line = &of(shims[1].pid())["report"]["lines"][0];
    assert_eq!(
        (&line["server"], &line["state"], &line["generation"]),
        (&json!("bad"), &json!("up"), &json!(2))
    );
    assert!(line["cause"]["text"].as_str().unwrap().contains("SIGKILL"), "why it last ended: {line}");
    assert!(line["pid"].as_u64().unwrap() > 1, "{line}");
    assert_eq!(line["budget_most_millis"], 5000);
    assert!(of(shims[0].pid())["report"]["lines"][0]["cause"].is_null());

    // One that is killed cannot clean up after itself.
    let dead = shims.remove(0);
    let socket = home.state().join(format!("run/{}.sock", dead.pid()));
    assert!(socket.exists());
    drop(dead);
    assert!(socket.exists());
    assert_eq!(pids(&home.status()), sorted(&shims));
    assert!(!socket.exists(), "whoever finds it removes it");

    // One that ends by itself does.
    let leaving = shims.remove(0);
    let socket = home.state().join(format!("run/{}.sock", leaving.pid()));
    leaving.leave();
    assert!(!socket.exists());
}

#[test]
fn the_next_shim_removes_what_a_killed_one_left() {
    let home = Home::new();
    let dead = home.shim(&[], &[]);
    let socket = home.state().join(format!("run/{}.sock", dead.pid()));
    drop(dead);
    assert!(socket.exists());
    let _next = home.shim(&[], &[]);
    until("the socket is gone", || !socket.exists());
}

#[test]
fn a_stopped_shim_is_shown_as_stopped_and_not_waited_for() {
    let home = Home::new();
    let stopped = home.shim(&[], &[]);
    let well = home.shim(&[], &[]);
    until("both are up", || {
        let status = home.status();
        let holders = status["holders"].as_array().unwrap();
        holders.iter().filter(|holder| holder["report"]["lines"][0]["state"] == "up").count() == 2
    });
    stopped.signal("-STOP");
    let begin = Instant::now();
    let status = home.status();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    for holder in status["holders"].as_array().unwrap() {
        if holder["pid"] == stopped.pid() {
            assert_eq!(holder["silent"], "stopped", "{status}");
        } else {
            assert_eq!(holder["pid"], well.pid());
            assert_eq!(holder["report"]["lines"][0]["state"], "up", "{status}");
        }
    }
    let table = String::from_utf8(home.run(&["status"]).stdout).unwrap();
    assert!(table.contains("process is stopped"), "{table}");
    stopped.signal("-CONT");
    assert_eq!(
        home.status()["holders"].as_array().unwrap().iter().filter(|one| one["silent"].is_null()).count(),
        2
    );
}

#[test]
fn a_shim_without_an_agent_yet_is_listed_by_its_servers_name() {
    let home = Home::new();
    let shim = Shim::start(home.linetender(&[]), &[], &[]);
    until("it is listed", || pids(&home.status()) == [u64::from(shim.pid())]);
    let table = String::from_utf8(home.run(&["status"]).stdout).unwrap();
    assert!(table.contains("bad") && table.contains("no request from the agent yet"), "{table}");
}

#[test]
fn a_shim_whose_agent_hands_on_no_variables_is_found_from_a_desktop() {
    let home = Home::new();
    let shim = home.shim(&[], &[]);
    let desktop = home.path().join("run-user");
    let mut status = home.linetender(&["status", "--json"]);
    let output = status
        .env("XDG_RUNTIME_DIR", &desktop)
        .env("XDG_STATE_HOME", home.path().join("s"))
        .output()
        .unwrap();
    assert_eq!(pids(&serde_json::from_slice(&output.stdout).unwrap()), [u64::from(shim.pid())]);
}

#[test]
fn a_parked_line_says_why_and_when_it_is_tried_next() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    for _ in 0..8 {
        shim.call("kill", &json!({}));
    }
    // The last call is answered before what is left of its server is gone.
    until("it is parked", || home.status()["holders"][0]["report"]["lines"][0]["state"] == "parked");
    let status = home.status();
    let line = &status["holders"][0]["report"]["lines"][0];
    assert!(line["next_try"].as_str().unwrap().starts_with("in "), "{line}");
    let table = String::from_utf8(home.run(&["status"]).stdout).unwrap();
    assert!(table.contains("parked") && table.contains("SIGKILL") && table.contains("NEXT TRY"), "{table}");
    assert!(!table.contains('\u{1b}'), "colours are for terminals: {table:?}");
}

#[test]
fn what_is_said_at_the_socket_hurts_nobody() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    let folder = home.state().join("run");
    let socket = folder.join(format!("{}.sock", shim.pid()));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&socket)), (0o700, 0o600));
    // More of them than are heard at once; they say nothing, or too much.
    let mut askers: Vec<_> = (0..20).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    for asker in askers.iter_mut().take(10) {
        let _ = asker.write_all(&vec![b'x'; 100_000]);
    }
    shim.kill_server();
    let mut odd = UnixStream::connect(&socket).unwrap();
    odd.write_all(b"{\"ask\":\"the moon\"}\n").unwrap();
    let mut answer = String::new();
    odd.read_to_string(&mut answer).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&answer).unwrap(),
        json!({ "version": 1, "error": "unknown request" })
    );
    until("those who only sit there have gone", || home.status()["holders"][0]["report"].is_object());
    shim.echo();
}

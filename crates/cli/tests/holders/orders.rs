//! What running shims are told to do, and what they say of calls.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::follows::Follows;
use crate::kit::{Home, LINETENDER, until};

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn line(home: &Home) -> Value {
    home.status()["holders"][0]["report"]["lines"][0].clone()
}

/// A question at the socket of a shim.
fn ask(home: &Home, pid: u32, question: &Value) -> UnixStream {
    let mut socket = UnixStream::connect(home.state().join("run").join(format!("{pid}.sock"))).unwrap();
    writeln!(socket, "{question}").unwrap();
    socket
}

#[test]
fn a_server_is_redialled_parked_and_woken_by_its_name() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    let done = home.run(&["redial", "bad"]);
    assert!(done.status.success() && said(&done).contains("connection 2 is up"), "{}", said(&done));
    assert!(home.run(&["park", "bad"]).status.success());
    assert_eq!(line(&home)["state"], "parked");
    let refused = shim.call("echo", &json!({ "n": 1 }));
    assert!(refused.to_string().contains("linetender wake bad"), "{refused}");
    let why = home.run(&["why", "bad"]);
    assert!(said(&why).contains("an operator took it out of service"), "{}", said(&why));
    assert!(home.run(&["wake", "bad"]).status.success());
    shim.echo();
    let unknown = home.run(&["redial", "other"]);
    assert!(!unknown.status.success() && said(&unknown).contains("there are: bad"), "{}", said(&unknown));
    let reload = home.run(&["reload"]);
    assert!(
        !reload.status.success() && said(&reload).contains("has no configuration file"),
        "{}",
        said(&reload)
    );
    assert!(home.run(&["log-level", "debug"]).status.success());
    assert!(!home.run(&["log-level", "loud"]).status.success());
    let counts = &home.status()["holders"][0]["report"]["servers"][0];
    assert_eq!(
        (&counts["tool_calls"]["answered"], &counts["tool_calls"]["not_executed"]),
        (&json!(1), &json!(1)),
        "{counts}"
    );
    assert_eq!((&counts["starts"], &counts["planned_ends"]), (&json!(3), &json!(2)), "{counts}");
}

#[test]
fn two_processes_with_one_name_are_not_told_by_mistake() {
    let home = Home::new();
    let (_one, other) = (home.shim(&[], &[]), home.shim(&[], &[]));
    let which = home.run(&["redial", "bad"]);
    assert!(!which.status.success() && said(&which).contains("--all"), "{}", said(&which));
    let pid = other.pid().to_string();
    let one = home.run(&["redial", "bad", "--pid", &pid]);
    assert!(one.status.success() && said(&one).starts_with(&format!("{pid}: ")), "{}", said(&one));
    assert_eq!(said(&home.run(&["redial", "bad", "--all"])).lines().count(), 2);
}

#[test]
fn calls_are_listed_while_they_run_and_followed_as_they_end() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    let follows = Follows::start(&home, &["calls", "-f", "--json"]);
    // It is followed once a call of ours is told.
    until("a call is followed", || {
        shim.echo();
        follows.has_some()
    });
    let pid = shim.pid();
    std::thread::scope(|scope| {
        scope.spawn(|| shim.call("kill", &json!({ "after": 1 })));
        follows.until(r#""tool":"kill""#);
    });
    let mut socket = ask(&home, pid, &json!({ "ask": "calls" }));
    let mut calls = String::new();
    socket.read_to_string(&mut calls).unwrap();
    assert_eq!(calls.trim(), "[]", "all have ended");
}

#[test]
fn orders_that_wait_for_a_server_that_hangs_keep_nobody_from_the_status() {
    let home = Home::new();
    let marker = home.path().join("hang");
    let script =
        format!("test -e {} && exec sleep 60; exec {LINETENDER} __badserver --era legacy", marker.display());
    let mut shim = crate::kit::Shim::start_script(home.linetender(&[]), &script).greeted();
    shim.echo();
    std::fs::write(&marker, "").unwrap();
    let pid = shim.pid();
    let orders: Vec<_> =
        (0..20).map(|_| ask(&home, pid, &json!({ "ask": "redial", "server": "bad" }))).collect();
    until("the server hangs", || line(&home)["state"] == "dialing");
    let began = Instant::now();
    assert_eq!(line(&home)["generation"], 2);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // What concerns the process and no server is not kept out by them: a shim says that it has no configuration.
    let mut told = String::new();
    BufReader::new(ask(&home, pid, &json!({ "ask": "reload" }))).read_line(&mut told).unwrap();
    assert!(told.contains("has no configuration file"), "{told}");
    // More orders than are carried out at once are refused, and say so.
    let mut refusals = 0;
    for order in orders {
        order.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut told = String::new();
        if BufReader::new(order).read_line(&mut told).is_ok() {
            assert!(told.contains("orders are being carried out already"), "{told}");
            refusals += 1;
        }
    }
    assert_eq!(refusals, 12);
}

//! A gateway that runs and does not answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use serde_json::json;

use crate::kit::{Home, Serves, until};

#[test]
fn a_gateway_that_is_stopped_is_not_called_gone() {
    let home = Home::new("silent", "[servers.a]\n{bad}\n");
    let (serves, _) = home.listens();
    until("a server that is up", || {
        home.journal().iter().any(|entry| entry["server"] == "a" && entry["state"] == "up").then_some(())
    });
    let said = |words: &[&str]| {
        let output = home.linetender(words).output().unwrap();
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    serves.signal("-STOP");
    let (code, text) = said(&["why", "a"]);
    let (_, all) = said(&["why"]);
    let (_, redial) = said(&["redial", "a"]);
    serves.signal("-CONT");
    let pid = serves.0.id();
    assert!(code == Some(1) && text.contains(&format!("(pid {pid}) is stopped")), "{code:?}: {text}");
    assert!(text.contains(&format!("kill -CONT {pid}")) && !text.contains("gone"), "{text}");
    assert!(all.contains("is stopped") && !all.contains("No linetender process is running"), "{all}");
    assert!(redial.contains(&format!("do not answer now (pid {pid})")), "{redial}");
    assert_eq!(said(&["why", "a"]).0, Some(0), "it answers again");
}

#[test]
fn whoever_follows_calls_is_told_that_some_are_missing_after_it_was_disconnected() {
    let home = Home::new("disconnected", "");
    let folder = home.path().join("linetender");
    std::fs::create_dir_all(&folder).unwrap();
    let pid = std::process::id();
    let listener = UnixListener::bind(folder.join(format!("{pid}.sock"))).unwrap();
    // A process that lives, and disconnects whoever watches it, as a gateway does with one that does not read.
    std::thread::spawn(move || {
        for asker in listener.incoming().map_while(Result::ok) {
            let mut asker = BufReader::new(asker);
            let mut asked = String::new();
            let _ = asker.read_line(&mut asked);
            if asked.contains("status") {
                let about =
                    json!({ "pid": pid, "door": "serve", "version": "1", "began": "", "began_millis": 1 });
                let _ =
                    writeln!(asker.get_mut(), "{}", json!({ "version": 1, "holder": about, "lines": [] }));
            }
        }
    });
    let mut follow = home.linetender(&["calls", "-f"]);
    let mut follower = Serves(follow.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut told = String::new();
    BufReader::new(follower.0.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains(&format!("{pid}: ")) && told.contains("calls in between are missing"), "{told}");
}

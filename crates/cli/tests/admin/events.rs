//! Server-sent events.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kill;
use crate::kit::{House, PATIENCE};

/// The next event of this name, and its data.
fn next(lines: &mut BufReader<TcpStream>, name: &str, is: impl Fn(&Value) -> bool) -> Value {
    let (begun, mut line, mut event) = (Instant::now(), String::new(), String::new());
    while begun.elapsed() < PATIENCE {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(of) = line.strip_prefix("event: ") {
            of.trim_end().clone_into(&mut event);
        }
        if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            if event == name && is(&data) {
                return data;
            }
        }
    }
    panic!("there was no such {name}");
}

#[test]
fn a_death_is_told_within_a_second() {
    let house = House::up("death", "[servers.one]\n{bad}\n");
    // It may be known a moment after the server is up: its reaper tells it.
    let pid = house.until("the server's process", || house.line("one")?["pid"].as_i64());
    let mut events = house.events("?calls=1");
    let killed = Instant::now();
    kill(pid);
    let death = next(&mut events, "entry", |entry| entry["state"] == "ending");
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
    assert_eq!(death["server"], "one", "{death}");
    let up = next(&mut events, "entry", |entry| entry["state"] == "up");
    assert_eq!(up["server"], "one", "{up}");
}

#[test]
fn there_is_room_for_so_many_watchers_and_a_place_is_free_when_one_goes() {
    let house = House::up("watchers", "[servers.one]\n{bad}\n");
    let mut watchers: Vec<_> = (0..16).map(|_| house.events("")).collect();
    let answer = house.ask("GET", "/api/v1/events");
    assert_eq!(answer.status, 503, "{answer:?}");
    drop(watchers.pop());
    house.until("a place", || {
        let stream = house.ask_head("/api/v1/events");
        (stream == 200).then_some(())
    });
}

#[test]
fn a_watcher_that_does_not_read_harms_nobody() {
    let house = House::up("slow", "[servers.one]\n{bad}\n");
    house.wait_for_state("one", "up");
    let (mut slow, mut quick) = (house.events(""), house.events(""));
    let begun = Instant::now();
    let mut redials = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        let answer = house.ask("POST", "/api/v1/servers/one/redial");
        redials += u32::from(answer.status == 200);
        next(&mut quick, "entry", |entry| entry["state"] == "up");
    }
    assert!(redials > 1, "{redials} redials while somebody did not read");
    let mut rest = Vec::new();
    slow.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let _ = slow.read_to_end(&mut rest);
    assert!(!rest.is_empty());
}

//! An audit in a process of its own: killed at any moment, and on a disk that is full for a while.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a child of the test is told by its environment what to do")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use linetender_holder::audit::{
    Arguments, Audit, Damage, Record, Rotation, Settings, SyncPolicy, Verdict, Verified, verify,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

const FILE: &str = "LINETENDER_TEST_AUDIT";
const MODE: &str = "LINETENDER_TEST_SYNC";

/// How long a line may not be on disk, where it need not be there at once.
const INTERVAL: Duration = Duration::from_millis(100);

/// Tasks of the child that write at the same time.
const TASKS: u64 = 4;

/// The child: writes until it is killed, and says on stdout what it was promised.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let Ok(file) = std::env::var(FILE) else { return };
    linetender::signals::own();
    let is_call = std::env::var(MODE).is_ok_and(|mode| mode == "call");
    let sync = if is_call { SyncPolicy::Call } else { SyncPolicy::Interval(INTERVAL) };
    let rotation = Rotation { bytes: 64 * 1024, kept: 1000 };
    let audit = Audit::open(&Settings { sync, rotation, ..Settings::new(file) }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = tokio::task::LocalSet::new();
    for task in 0..TASKS {
        tasks.spawn_local(write_for_ever(audit.clone(), task));
    }
    runtime.block_on(tasks);
}

async fn write_for_ever(audit: Audit, task: u64) {
    let begin = tokio::time::Instant::now();
    for call in (task..).step_by(usize::try_from(TASKS).unwrap()) {
        if let Err(why) = audit.check() {
            println!("refused {why}");
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        }
        let arguments = Arguments::full(format!("{{\"text\":\"{}\"}}", "x".repeat(200)).as_bytes());
        let at = Record::now();
        let record = Record { at, call, arguments, verdict: Verdict::Answered, ..Record::default() };
        let Some(receipt) = audit.write(record) else {
            println!("wrote {call} {}", begin.elapsed().as_millis());
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        match receipt.await {
            Ok(seq) => println!("ack {call} {}", seq.unwrap()),
            Err(why) => println!("failed {call} {why}"),
        }
    }
}

/// A folder with an audit, and whoever writes it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-audits-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    fn writer(&self, mode: &str) -> Writer {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env(FILE, self.file())
            .env(MODE, mode)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Writer { child, said }
    }

    fn verify(&self) -> Verified {
        verify(&self.file(), None).unwrap()
    }

    /// The calls that have a line, by its number.
    fn calls(&self) -> BTreeMap<u64, u64> {
        let mut calls = BTreeMap::new();
        for file in self.verify().files {
            let text = fs::read(Path::new(&file)).unwrap();
            for line in String::from_utf8_lossy(&text).lines() {
                let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
                if line["what"] == "call" {
                    calls.insert(line["seq"].as_u64().unwrap(), line["call"].as_u64().unwrap());
                }
            }
        }
        calls
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Writer {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Writer {
    /// The next line that begins so.
    fn next(&mut self, begin: &str) -> Option<String> {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            // The first one stands behind what the test's harness says.
            if let Some(at) = line.find(begin)
                && line.ends_with('\n')
            {
                return Some(line[at + begin.len()..].trim().to_owned());
            }
            line.clear();
        }
        None
    }

    /// The next line that begins so, and what was said before it that begins otherwise.
    fn next_after(&mut self, begin: &str, other: &str, before: &mut Vec<String>) -> String {
        loop {
            let line = self.next("").unwrap();
            if let Some(rest) = line.strip_prefix(begin) {
                return rest.to_owned();
            }
            before.extend(line.strip_prefix(other).map(str::to_owned));
        }
    }

    /// Kills it, and returns what it still said.
    fn kill(mut self, begin: &str) -> Vec<String> {
        self.child.kill().unwrap();
        let said = std::iter::from_fn(|| self.next(begin)).collect();
        self.child.wait().unwrap();
        said
    }

    fn limit(&self, current: Option<u64>) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        prlimit(pid, Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pair(text: &str) -> (u64, u64) {
    let (one, other) = text.split_once(' ').unwrap();
    (one.parse().unwrap(), other.parse().unwrap())
}

fn is_whole_but_for_its_end(found: &Verified) -> bool {
    found.bad.as_ref().is_none_or(|bad| bad.damage == Damage::TornEnd)
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let place = Place::new("call");
    let mut acknowledged = Vec::new();
    for round in 0_u32..25 {
        let mut writer = place.writer("call");
        // How far it comes differs from round to round, and where in a write the kill meets it is chance.
        for _ in 0..(round * 37) % 90 {
            acknowledged.extend(writer.next("ack "));
        }
        acknowledged.extend(writer.kill("ack "));
        if !place.file().exists() {
            continue;
        }
        let found = place.verify();
        assert!(is_whole_but_for_its_end(&found), "{found:?}");
    }
    let calls = place.calls();
    assert!(acknowledged.len() > 200, "{}", acknowledged.len());
    for (call, seq) in acknowledged.iter().map(|said| pair(said)) {
        assert_eq!(calls.get(&seq), Some(&call), "line {seq}");
    }
    assert!(place.0.join("audit.1.jsonl").exists(), "it was put away");
}

#[test]
fn a_kill_loses_no_more_than_the_interval() {
    let place = Place::new("interval");
    for round in 0_u32..8 {
        let before = if place.file().exists() { place.verify().last.unwrap_or(0) } else { 0 };
        let mut writer = place.writer("interval");
        let mut wrote: Vec<String> =
            (0..100 + (round * 71) % 190).filter_map(|_| writer.next("wrote ")).collect();
        wrote.extend(writer.kill("wrote "));
        let found = place.verify();
        assert!(is_whole_but_for_its_end(&found), "{found:?}");
        let wrote: Vec<_> = wrote.iter().map(|said| pair(said)).collect();
        let last = wrote.iter().map(|(_, at)| *at).max().unwrap();
        let there: Vec<u64> = place.calls().range(before + 1..).map(|(_, call)| *call).collect();
        let interval = u64::try_from(INTERVAL.as_millis()).unwrap();
        for (call, at) in wrote {
            assert!(there.contains(&call) || at + interval >= last, "call {call} at {at} of {last} ms");
        }
    }
}

#[test]
fn a_full_disk_refuses_calls_and_loses_nothing_that_was_acknowledged() {
    let place = Place::new("full");
    let mut writer = place.writer("call");
    let mut acknowledged: Vec<_> = (0..20).filter_map(|_| writer.next("ack ")).collect();
    // It is far enough away not to be passed yet, and then there is room for a part of a line.
    writer.limit(Some(fs::metadata(place.file()).unwrap().len() + 20_300));
    let failed = writer.next_after("failed ", "ack ", &mut acknowledged);
    assert!(failed.contains("has no line in the audit file: File too large"), "{failed}");
    let refused = writer.next("refused ").unwrap();
    assert!(refused.contains("cannot be written: File too large"), "{refused}");
    assert!(refused.contains("To fix it: make room on the disk"), "{refused}");
    let meanwhile = fs::read(place.file()).unwrap();
    assert_eq!(meanwhile.last(), Some(&b'\n'), "no part of a line is left");
    writer.limit(None);
    acknowledged.extend((0..20).filter_map(|_| writer.next("ack ")));
    acknowledged.extend(writer.kill("ack "));
    let found = place.verify();
    assert!(is_whole_but_for_its_end(&found), "{found:?}");
    assert!(found.gaps >= 1 && found.missed >= 1 && found.torn == 0, "{found:?}");
    let calls = place.calls();
    for (call, seq) in acknowledged.iter().map(|said| pair(said)) {
        assert_eq!(calls.get(&seq), Some(&call), "line {seq}");
    }
}

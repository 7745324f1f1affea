//! Servers that turn against linetender: they run as the same user, so they may look at it, and stop or kill its processes.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test waits with a real clock")]

mod agent;

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use agent::{Agent, LINETENDER};
use serde_json::json;

/// How a server is started that leaves a daemon to its reaper first: in a session of its own, and nobody's child.
const DAEMON: &str = "(setsid sleep 613 >/dev/null 2>&1 </dev/null &); exec";

/// Waits until this is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(20), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    listed
        .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// `R`, `S`, `T`, `Z`; nothing if there is no such process.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn lives(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

/// A shim that had a child before it was a shim, and its server, which has left a daemon to the reaper.
struct Tree {
    agent: Agent,
    stranger: u32,
    reaper: u32,
    daemon: u32,
}

impl Tree {
    fn grown() -> Self {
        let elsewhere = std::env::temp_dir().join("linetender-tests");
        let server = format!("{DAEMON} '{LINETENDER}' __badserver --era legacy");
        let shim = format!(
            "sleep 617 >/dev/null 2>&1 </dev/null & \
             exec '{LINETENDER}' run --tree all --no-memory --no-journal --name bad -- sh -c \"$SERVER\""
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &shim]).env("SERVER", server);
        shell.env("XDG_STATE_HOME", &elsewhere).env("XDG_RUNTIME_DIR", &elsewhere);
        let agent = Agent::of_command(&mut shell).greeted();
        let named = |wanted: &str, of: u32| children(of).into_iter().find(|pid| name(*pid) == wanted);
        let shim = agent.shim.id();
        let (stranger, reaper) = (named("sleep", shim).unwrap(), named("lt-reaper", shim).unwrap());
        let mut daemon = None;
        until("the reaper has the daemon", || {
            daemon = named("sleep", reaper);
            daemon.is_some()
        });
        Self { agent, stranger, reaper, daemon: daemon.unwrap() }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for pid in [self.stranger, self.daemon] {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

#[test]
fn x11_what_a_server_leaves_behind_that_killed_its_reaper_is_found_and_nobody_else_is_hurt() {
    let mut tree = Tree::grown();
    signal("-KILL", tree.reaper);
    until("the daemon is gone", || !lives(tree.daemon));
    let answer = tree.agent.call(&json!(1), "echo", &json!({ "n": 1 }));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"n":1}"#, "{answer}");
    assert!(lives(tree.stranger), "it was there before us");
    let shim = tree.agent.shim.id();
    until("the dead are buried", || !children(shim).into_iter().any(|pid| state(pid) == Some('Z')));
    // The next generation has a daemon too, and goes whole.
    let reaper = children(shim).into_iter().find(|pid| name(*pid) == "lt-reaper").unwrap();
    let below = children(reaper);
    tree.agent.to = None;
    assert!(tree.agent.shim.wait().unwrap().success());
    until("nothing is left", || !below.iter().any(|pid| lives(*pid)));
}

#[test]
fn x11_a_server_that_kills_its_reaper_takes_no_other_server_with_it() {
    let home = std::env::temp_dir().join(format!("linetender-siblings-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let config = home.join("linetender.toml");
    let server = |name: &str| {
        format!(
            "[servers.{name}]\ncommand = 'sh'\nargs = ['-c', '{DAEMON} \"$0\" __badserver', '{LINETENDER}']\n"
        )
    };
    std::fs::write(&config, server("a") + &server("b")).unwrap();
    let mut gateway = Command::new(LINETENDER)
        .args(["serve", "--no-journal", "--listen", "127.0.0.1:0", "--config"])
        .arg(&config)
        .env("XDG_RUNTIME_DIR", &home)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let daemon = |reaper: &u32| children(*reaper).into_iter().find(|pid| name(*pid) == "sleep");
    // Those whose server has left its daemon.
    let grown = || {
        let reapers = children(gateway.id()).into_iter().filter(|pid| name(*pid) == "lt-reaper");
        reapers.filter_map(|reaper| Some((reaper, daemon(&reaper)?))).collect::<Vec<_>>()
    };
    until("both have started", || grown().len() == 2);
    let [(killed, orphan), (kept, sibling)] = grown()[..] else { panic!("one is gone again") };
    signal("-KILL", killed);
    until("the orphan is gone", || !lives(orphan));
    until("its server has started again", || {
        grown().iter().any(|(reaper, _)| ![killed, kept].contains(reaper))
    });
    let alive = lives(kept) && lives(sibling);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    assert!(alive, "the other server and what it started are still there");
}

#[test]
fn x11_a_child_that_came_from_elsewhere_is_buried() {
    let tree = Tree::grown();
    signal("-KILL", tree.stranger);
    until("it is buried", || state(tree.stranger).is_none());
}

#[test]
fn x11_a_reaper_that_its_server_stopped_goes_on() {
    let mut tree = Tree::grown();
    // Its parent is held up, so that it can be seen.
    signal("-STOP", tree.agent.shim.id());
    signal("-STOP", tree.reaper);
    until("it is stopped", || state(tree.reaper) == Some('T'));
    signal("-CONT", tree.agent.shim.id());
    until("it is woken", || state(tree.reaper) != Some('T'));
    tree.agent.to = None;
    assert!(tree.agent.shim.wait().unwrap().success());
    until("nothing is left", || !lives(tree.daemon) && !lives(tree.reaper));
}

#[test]
fn x11_a_stopped_reaper_cleans_up_when_linetender_is_killed() {
    let mut tree = Tree::grown();
    // Stopped first, so that it cannot wake its reaper.
    signal("-STOP", tree.agent.shim.id());
    signal("-STOP", tree.reaper);
    until("it is stopped", || state(tree.reaper) == Some('T'));
    signal("-KILL", tree.agent.shim.id());
    tree.agent.shim.wait().unwrap();
    until("nothing is left", || !lives(tree.daemon) && !lives(tree.reaper));
}

/// A folder with a copy of the program that every user may run.
struct Copy(PathBuf);

impl Copy {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-copy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(LINETENDER, folder.join("linetender")).unwrap();
        Self(folder)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn x11_a_server_cannot_read_what_linetender_and_its_reaper_hold() {
    const LOOK: &str = r#"
        reaper=$PPID; shim=$(cut -d' ' -f4 /proc/$reaper/stat)
        for pid in $reaper $shim; do
            cat /proc/$pid/environ >/dev/null 2>&1 && echo "environ of $(cat /proc/$pid/comm)" >&2
            (: </proc/$pid/mem) 2>/dev/null && echo "mem of $(cat /proc/$pid/comm)" >&2
            ls /proc/$pid/fd >/dev/null 2>&1 && echo "fd of $(cat /proc/$pid/comm)" >&2
        done
        cat /proc/$$/environ >/dev/null && echo "looked at $(cat /proc/$shim/comm)" >&2
        exec "$0" __badserver --era legacy"#;
    let copy = Copy::new();
    let linetender = copy.0.join("linetender");
    let words = ["run", "--no-memory", "--no-journal", "--name", "bad", "--", "sh", "-c", LOOK];
    // Root can read everything: as root this is for somebody else to try.
    let mut shim = if rustix::process::geteuid().is_root() {
        let mut shim = Command::new("setpriv");
        shim.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&linetender);
        shim
    } else {
        Command::new(&linetender)
    };
    shim.args(words).arg(&linetender).env_remove("XDG_RUNTIME_DIR").env("HOME", "/nonexistent");
    let (mut from, to) = std::io::pipe().unwrap();
    let mut agent = Agent::with_stderr(&mut shim, to).greeted();
    drop(shim);
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
    let mut said = String::new();
    from.read_to_string(&mut said).unwrap();
    assert!(said.contains("looked at linetender"), "{said}");
    let read = said
        .lines()
        .filter(|line| line.starts_with("environ") || line.contains("mem of") || line.contains("fd of"));
    assert_eq!(read.collect::<Vec<_>>(), Vec::<&str>::new(), "{said}");
}

/// A server that answers its first call with one line of 15 MB, which has this again and again in an array, or in one string.
const CROWDED: &str = r#"
import json, sys
kind, long = sys.argv[1], 15 << 20
def say(message): sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
def line():
    if kind == "one": return '{"jsonrpc":"2.0","method":"n","params":{"x":"' + "a" * long + '"}}\n'
    return "[" + ",".join([kind] * (long // (len(kind) + 1))) + "]\n"
for line_in in sys.stdin:
    asked = json.loads(line_in)
    if "id" not in asked or "method" not in asked: continue
    method, result = asked["method"], {}
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "badserver", "version": "1"}}
    if method == "tools/list": result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        sys.stdout.write(line()); sys.stdout.flush()
        result = {"content": []}
    say({"jsonrpc": "2.0", "id": asked["id"], "result": result})
"#;

/// The most memory that a process has had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn x13_a_line_of_a_million_tiny_messages_costs_no_more_memory_than_one_message_of_its_length() {
    let growth = |kind: &str| {
        let server = ["--no-memory", "--no-journal", "--name", "bad", "--", "python3", "-c", CROWDED, kind];
        let mut shim = Command::new(LINETENDER);
        let mut agent = Agent::of_command(shim.arg("run").args(server)).greeted();
        let before = peak(agent.shim.id());
        let answer = agent.call(&json!(1), "t", &json!({}));
        (peak(agent.shim.id()) - before, answer)
    };
    // The line, and what is made of it for the agent.
    let (one, answer) = growth("one");
    assert!(answer["result"]["content"].is_array(), "{answer}");
    for kind in [r#"{"method":"n"}"#, r#"{"id":99999,"result":1}"#, "{}"] {
        let (many, answer) = growth(kind);
        assert!(many < one + one / 4, "{kind}: {many} KiB, and {one} KiB for one message");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("more than 1024 messages"), "the call is told: {answer}");
    }
}

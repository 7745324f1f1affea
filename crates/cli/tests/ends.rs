//! Agents that end badly, or behave badly: the shim and its server are gone, or bounded.

#![allow(clippy::disallowed_methods, reason = "a test waits with a real clock")]

mod agent;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agent::{Agent, LINETENDER};
use serde_json::{Value, json};

/// Waits until this is so.
fn until(what: &str, limit: Duration, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < limit, "still not after {limit:?}: {what}");
        std::thread::yield_now();
    }
}

/// Everything below a process.
fn below(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            found.push(child);
            found.extend(below(child));
        }
    }
    found
}

/// Whether a process lives; a zombie does not.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Its resident memory, in MiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn an_agent_that_is_killed_takes_shim_and_server_with_it() {
    // A program of its own holds both pipes, and is killed with a call under way and an escapee below the server.
    let script = format!(
        r#"coproc S {{ '{LINETENDER}' run --no-memory -- '{LINETENDER}' __badserver --escapee; }}
           echo '{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"a","version":"1"}}}}}}' >&"${{S[1]}}"
           read -r answer <&"${{S[0]}}"
           echo '{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"hang","arguments":{{}}}}}}' >&"${{S[1]}}"
           echo ready
           wait"#
    );
    let mut agent = Command::new("bash")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "ready");
    let tree = below(agent.id());
    assert!(tree.len() >= 3, "the shim, its reaper and the server: {tree:?}");
    agent.kill().unwrap();
    agent.wait().unwrap();
    // A call is under way, and nobody is left to be answered.
    until("nothing is left", Duration::from_secs(3), || !tree.iter().any(|pid| lives(*pid)));
}

/// As under `nohup`: the agent ignores the hangup of its terminal too.
#[test]
fn a_hangup_that_was_ignored_before_is_still_ignored() {
    let script = format!(
        "trap '' HUP; exec '{LINETENDER}' run --no-memory --name bad -- '{LINETENDER}' __badserver --era legacy"
    );
    let mut agent = Agent::of_command(Command::new("bash").args(["-c", &script]));
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    agent.ask(&json!(1), "initialize", &hello);
    Command::new("kill").args(["-HUP", &agent.shim.id().to_string()]).status().unwrap();
    for number in 2..300 {
        agent.ask(&json!(number), "ping", &json!({}));
    }
    assert!(lives(agent.shim.id()));
}

/// S57: the second signal ends linetender, and the server writes to its log before it has saved.
#[test]
fn a_server_that_logs_while_it_saves_meets_no_broken_pipe() {
    let folder = std::env::temp_dir().join(format!("linetender-saves-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let at = |name: &str| folder.join(name);
    let script = format!(
        r"cd '{}'; exec 3<&0
           '{LINETENDER}' __badserver <&3 &
           trap 'touch begun; until [ -e go ]; do sleep 0.02; done; echo saving >&2; echo saving; touch saved; exit' TERM
           wait; wait",
        folder.display()
    );
    let mut agent = Command::new(LINETENDER)
        .args(["run", "--no-memory", "--", "bash", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    writeln!(agent.stdin.as_mut().unwrap(), "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let limit = Duration::from_secs(10);
    let terminate = || Command::new("kill").args(["-TERM", &agent.id().to_string()]).status().unwrap();
    terminate();
    until("the server saves", limit, || at("begun").exists());
    terminate();
    until("linetender is gone", limit, || !lives(agent.id()));
    std::fs::write(at("go"), "").unwrap();
    until("it has saved", limit, || at("saved").exists());
    agent.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_agent_that_closes_its_input_gets_the_answers_that_are_under_way() {
    let mut agent = Agent::up(&[]);
    let tree = below(agent.shim.id());
    agent.send(&json!(1), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 300 } }));
    agent.to = None;
    assert_eq!(agent.hear()["id"], 1);
    assert!(agent.shim.wait().unwrap().success());
    until("nothing is left", Duration::from_secs(2), || !tree.iter().any(|pid| lives(*pid)));
}

#[test]
fn an_agent_that_sends_garbage_is_served_on_and_told_where_it_can_be() {
    let mut agent = Agent::up(&[]);
    let to = agent.to.as_mut().unwrap();
    let mut garbage = vec![
        b"not json\n".to_vec(),
        b"\xff\xfe\x00\n".to_vec(),
        b"{}\n[]\n[[]]\n\"text\"\n42\nnull\n".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n".to_vec(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":\"never asked\",\"error\":1}\n".to_vec(),
        [vec![b'['; 100_000], b"\n".to_vec()].concat(),
    ];
    garbage.push(
        [b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":\"".to_vec(), vec![b'x'; 17 << 20]]
            .concat(),
    );
    garbage.push(b"\"}\n".to_vec());
    // Its complaints are read meanwhile: an agent that reads nothing is another test.
    for bytes in garbage {
        to.write_all(&bytes).unwrap();
    }
    // An empty batch, and one of something that is no message, are answered, as JSON-RPC wants it.
    // Of all the rest, only the last says which request it is. Which answer comes first is not said.
    let heard = [agent.hear(), agent.hear(), agent.hear()];
    let is = |error: &Value, id: Value| error["id"] == id && error["error"]["code"] == -32600;
    let count = |is: &dyn Fn(&Value) -> bool| heard.iter().filter(|heard| is(heard)).count();
    assert_eq!(count(&|heard| heard.is_object() && is(heard, json!(null))), 1, "{heard:?}");
    assert_eq!(
        count(&|heard| heard.as_array().is_some_and(|all| all.len() == 1 && is(&all[0], json!(null)))),
        1
    );
    assert_eq!(count(&|heard| is(heard, json!(7))), 1, "{heard:?}");
    let answer = agent.call(&json!("after"), "echo", &json!({ "n": 1 }));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"n":1}"#, "{answer}");
    assert!(resident(agent.shim.id()) < 64, "{} MiB", resident(agent.shim.id()));
}

#[test]
fn an_agent_that_stops_reading_is_not_read_either_and_loses_nothing() {
    const CALLS: u32 = 400;
    let mut shim = Command::new(LINETENDER)
        .args(["run", "--no-memory", "--no-journal", "--", LINETENDER, "__badserver"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (shim.stdin.take().unwrap(), BufReader::new(shim.stdout.take().unwrap()));
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello }))
        .unwrap();
    from.read_line(&mut String::new()).unwrap();
    // Each answer is a hundred kilobytes: four hundred of them lie somewhere until somebody reads them.
    let text = "x".repeat(100_000);
    let asking = std::thread::spawn(move || {
        for id in 0..CALLS {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "echo", "arguments": { "text": text } } });
            writeln!(to, "{call}").unwrap();
        }
        // Not closed before everything is answered: there is a bound on what comes after that.
        to
    });
    let (start, mut most) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(1) {
        most = most.max(resident(shim.id()));
    }
    assert!(most < 200, "{most} MiB");
    let mut answered: Vec<String> = (0..CALLS).map(|_| id_of_next(&mut from)).collect();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), CALLS as usize, "every call is answered once");
    drop(asking.join().unwrap());
    assert!(shim.wait().unwrap().success());
}

/// The id of the next message, which is not read any further.
fn id_of_next(from: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let id = line.split(r#""id":"#).nth(1).unwrap();
    id.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn an_agent_that_gives_its_servers_sockets_is_served_like_any_other() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let end = || Stdio::from(OwnedFd::from(theirs.try_clone().unwrap()));
    let mut shim = Command::new(LINETENDER)
        .args(["run", "--no-memory", "--", LINETENDER, "__badserver"])
        .stdin(end())
        .stdout(end())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(theirs);
    let (mut to, mut from) = (ours.try_clone().unwrap(), BufReader::new(ours));
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }))
        .unwrap();
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert!(line.contains("badserver"), "{line}");
    to.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    from.read_to_string(&mut rest).unwrap();
    assert!(shim.wait().unwrap().success());
}

#[test]
fn a_pipe_that_is_a_shells_too_is_left_as_it_was() {
    // The shell reads on from the same pipe when the shim is done, and wants to wait for what is not there yet.
    let script = format!(
        "timeout --foreground 0.5 '{LINETENDER}' run --no-memory -- '{LINETENDER}' __badserver; echo over; exec cat"
    );
    let mut shell = Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert_eq!(line, "over\n");
    until("the shell is a cat", Duration::from_secs(5), || {
        std::fs::read_to_string(format!("/proc/{}/comm", shell.id())).is_ok_and(|name| name.trim() == "cat")
    });
    to.write_all(b"still here\n").unwrap();
    drop(to);
    let mut heard = String::new();
    from.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "still here\n");
    assert!(shell.wait().unwrap().success());
}

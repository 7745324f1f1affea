//! The rows that a real server can be put through, on real servers: Python and TypeScript, official and not.
//!
//! Needs `tools/real-servers`; without it there is nothing to test, and each test says so.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]

#[path = "../../line/tests/it/look.rs"]
#[allow(dead_code, reason = "other tests have use for all of it")]
mod look;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use linetender::{CallErrorKind, Eras, Line, Raw, Server, ServerState, State, StdioServer};
use look::{children, descendants, eventually, in_time, kill, lives, policy, speaks};

/// A real server, and what can be asked of it.
struct Real {
    name: &'static str,
    argv: Vec<String>,
    /// A tool that answers, and one that takes its time.
    quick: (&'static str, &'static str),
    slow: Option<(&'static str, &'static str)>,
    closes: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn servers() -> Vec<Real> {
    let real = root().join("target/real");
    if !real.join("node/.done").exists() {
        println!("no real servers here: run tools/real-servers");
        return Vec::new();
    }
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    let python = |name, venv: &str, script: &str| Real {
        name,
        argv: vec![
            path(real.join(venv).join("bin/python")),
            path(root().join("crates/drill/real").join(script)),
        ],
        quick: ("echo", r#"{"message":"hello"}"#),
        slow: Some(("nap", r#"{"seconds":60}"#)),
        closes: true,
    };
    // npx makes a tree of it: npx, a shell, node.
    let npx = |name, bin: &str, args: &[&str], quick, slow| {
        let mut argv = vec!["npx".to_owned(), "--prefix".to_owned(), path(real.join("node")), bin.to_owned()];
        argv.extend(args.iter().map(ToString::to_string));
        Real { name, argv, quick, slow, closes: false }
    };
    let slow = ("trigger-long-running-operation", r#"{"duration":60,"steps":2}"#);
    vec![
        python("mcp 2.3", "py2", "server_mcp.py"),
        python("mcp 1.30", "py1", "server_mcp.py"),
        python("fastmcp", "py2", "server_fastmcp.py"),
        npx(
            "everything",
            "mcp-server-everything",
            &["stdio"],
            ("echo", r#"{"message":"hello"}"#),
            Some(slow),
        ),
        npx("memory", "mcp-server-memory", &[], ("read_graph", "{}"), None),
    ]
}

impl Real {
    fn server(&self) -> StdioServer {
        let quick = policy(|settings| {
            settings.close.stdin = Duration::from_millis(500);
            settings.close.term = Duration::from_millis(500);
            settings.probe.timeout = Duration::from_millis(300);
            settings.call.limit = Duration::from_secs(15);
            settings.call.abandoned_after = Duration::from_secs(1);
            settings.state = ServerState::None;
        });
        Server::stdio("bad", &self.argv).reaper(look::badserver()).eras(Eras::Auto).policy(quick)
    }

    async fn works(&self, line: &Line) {
        let answer = in_time(line.call_tool(self.quick.0, Raw(self.quick.1))).await;
        answer.unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }
}

/// The processes of a line, the leader first.
async fn tree(line: &Line) -> Vec<i32> {
    let leader = eventually(|| line.pid()).await;
    let mut tree = vec![leader];
    tree.extend(descendants(leader));
    tree
}

async fn nothing_is_left(line: Line) {
    in_time(line.close()).await;
    eventually(|| children().is_empty().then_some(())).await;
}

#[tokio::test]
async fn s04_s06_killed_idle_leader_or_leaf_it_is_back() {
    for real in servers() {
        let line = Line::open(real.server());
        real.works(&line).await;
        let tools = in_time(line.list_tools()).await.unwrap();
        for leaf in [false, true] {
            let tree = tree(&line).await;
            let victim = if leaf { *tree.last().unwrap() } else { tree[0] };
            let generation = line.status().generation;
            kill("-9", victim);
            let next =
                in_time(line.wait_for(|status| status.state == State::Up && status.generation > generation))
                    .await;
            assert_eq!(next.generation, generation + 1, "{}", real.name);
            assert!(!tree.iter().any(|&pid| lives(pid)), "{}: something of the old tree lives", real.name);
            real.works(&line).await;
        }
        assert_eq!(in_time(line.list_tools()).await.unwrap(), tools, "{}", real.name);
        nothing_is_left(line).await;
    }
}

#[tokio::test]
async fn s05_killed_in_mid_call_the_call_ends_at_once() {
    for real in servers() {
        let Some((tool, arguments)) = real.slow else { continue };
        let line = Line::open(real.server());
        real.works(&line).await;
        let tree = tree(&line).await;
        let calls: Vec<_> = (0..5)
            .map(|_| {
                let line = line.clone();
                tokio::task::spawn(async move { line.call_tool(tool, Raw(arguments)).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let start = look::stopwatch();
        kill("-9", tree[0]);
        let mut unknown = 0;
        for call in calls {
            // What a single-threaded server never read is sent again, and then takes its time.
            match tokio::time::timeout(Duration::from_secs(2), call).await {
                Ok(outcome) => {
                    let error = outcome.unwrap().unwrap_err();
                    speaks(&error);
                    assert_eq!(error.delivery.name(), "unknown", "{}", real.name);
                    unknown += 1;
                }
                Err(_) => break,
            }
        }
        assert!(unknown > 0, "{}", real.name);
        assert!(start.elapsed() < Duration::from_secs(4));
        nothing_is_left(line).await;
    }
}

#[tokio::test]
async fn s07_a_closed_output_ends_the_call_at_once() {
    for real in servers().into_iter().filter(|real| real.closes) {
        let line = Line::open(real.server());
        real.works(&line).await;
        let start = look::stopwatch();
        let error = in_time(line.call_tool("close_output", Raw("{}"))).await.unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2), "{}: {:?}", real.name, start.elapsed());
        speaks(&error);
        real.works(&line).await;
        nothing_is_left(line).await;
    }
}

#[tokio::test]
async fn s09_stopped_it_is_found_out_and_replaced() {
    for real in servers() {
        let line = Line::open(real.server());
        real.works(&line).await;
        let tree = tree(&line).await;
        for &pid in &tree {
            kill("-STOP", pid);
        }
        let quick =
            linetender::Options::default().deadline(linetender::Deadline::after(Duration::from_millis(300)));
        let params = format!(r#"{{"name":"{}","arguments":{}}}"#, real.quick.0, real.quick.1);
        let error = in_time(line.request("tools/call", Raw(&params), quick)).await.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::TimedOut, "{}", real.name);
        speaks(&error);
        // It is replaced for a call that waits, and not before.
        let (tool, arguments) = real.quick;
        in_time(async { while line.call_tool(tool, Raw(arguments)).await.is_err() {} }).await;
        assert_eq!(line.status().generation, 2, "{}", real.name);
        assert!(!tree.iter().any(|&pid| lives(pid)), "{}", real.name);
        nothing_is_left(line).await;
    }
}

#[tokio::test]
async fn s18_deaf_to_end_of_file_and_term_it_is_killed() {
    for real in servers() {
        let line = Line::open(real.server());
        real.works(&line).await;
        let tree = tree(&line).await;
        for &pid in &tree {
            kill("-STOP", pid);
        }
        nothing_is_left(line).await;
        assert!(!tree.iter().any(|&pid| lives(pid)), "{}", real.name);
    }
}

#[tokio::test]
async fn s23_a_killed_holder_leaves_nothing() {
    for real in servers() {
        let mut shim = Command::new(env!("CARGO_BIN_EXE_linetender"))
            .args(["drill", "soak", "keep"])
            .args(&real.argv)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(shim.stdout.take().unwrap()), &mut ready)
            .unwrap();
        let pid = i32::try_from(shim.id()).unwrap();
        let tree = descendants(pid);
        assert!(tree.len() >= 2, "{}", real.name);
        kill("-9", pid);
        shim.wait().unwrap();
        let start = look::stopwatch();
        eventually(|| (!tree.iter().any(|&pid| lives(pid))).then_some(())).await;
        assert!(start.elapsed() < Duration::from_secs(1), "{}: {:?}", real.name, start.elapsed());
    }
}

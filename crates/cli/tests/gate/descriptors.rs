//! A machine without descriptors.

use std::time::Duration;

use linetender_badserver::agent::{in_time, text};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;
use tokio::net::TcpStream;

use crate::kit::{Gate, eventually};
use crate::look::kill;

const TWO: &str = "
[servers.runs]
{bad} --era legacy
[servers.dies]
{bad} --era legacy
";

/// Clock ticks in a second, as /proc counts them.
const TICKS: u64 = 100;

/// How many descriptors a process may have from now on.
fn allow(pid: i32, descriptors: u64) {
    let now = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: Some(descriptors), maximum: now.maximum };
    prlimit(Pid::from_raw(pid), Resource::Nofile, limit).unwrap();
}

/// What a process has used of the processor.
fn processor(pid: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o02_without_descriptors_it_waits_and_no_server_pays_for_it() {
    let gate = Gate::new(TWO);
    let serving = gate.serves().await;
    let agent = gate.web.agent("/mcp").await;
    let sleep = json!({ "name": "runs__sleep", "arguments": { "ms": 3000 } });
    let under_way = agent.request(1, "tools/call", sleep).await;
    let server = i32::try_from(gate.status(&serving, "dies")["pid"].as_i64().unwrap()).unwrap();
    // It keeps what it has, and gets nothing more: not even in the place of what it gives back.
    allow(serving.pid(), 3);
    let idle = TcpStream::connect(gate.web.address).await.unwrap();
    eventually("no more descriptors", async || {
        gate.log().contains("cannot accept connections").then_some(())
    })
    .await;
    let before = processor(serving.pid());
    kill("-9", server);
    let answer = under_way.last().await;
    assert!(text(&answer).contains("3000"), "what runs goes on: {answer}");
    assert!(gate.log().contains("cannot start a process: Too many open files"), "{}", gate.log());
    // Others have hung up meanwhile, and it is so still.
    for told in ["config reload failed", "cannot accept connections"] {
        assert!(gate.log().matches(told).count() <= 1, "it does not say one thing for ever: {}", gate.log());
    }
    let used = processor(serving.pid()).saturating_sub(before);
    assert!(used < Duration::from_secs(1), "it does not spin: {used:?} of three seconds");
    drop(idle);
    allow(serving.pid(), 1024);
    let late = in_time(gate.web.agent("/mcp")).await;
    assert_eq!(text(&late.call("runs__echo", json!({})).await), "{}", "who comes is let in again");
    gate.is_up().await;
    assert_eq!(text(&late.call("dies__echo", json!({})).await), "{}");
    let dies = gate.status(&serving, "dies");
    let [budget, most] = ["budget_millis", "budget_most_millis"].map(|of| dies[of].as_u64().unwrap());
    // It died once, and that counts; that nothing could be dialled did not.
    assert!(budget + 1000 >= most, "{dies}");
}

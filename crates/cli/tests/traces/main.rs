//! Traces of a shim, as a receiver of OTLP gets them.

#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

#[path = "../agent/mod.rs"]
mod agent;
mod receiver;

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use agent::{Agent, LINETENDER};
use receiver::{Receiver, attribute, hex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A folder of the test's own, gone with it.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lt-traces-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("answer"), "{}").unwrap();
        Self(path)
    }

    /// A shim whose environment names this receiver, and an agent that has been greeted.
    fn shim(&self, endpoint: &str, more: &[(&str, &str)]) -> Agent {
        let mut shim = Command::new(LINETENDER);
        shim.args(["run", "--no-memory", "--name", "bad", "--safe-tool", "exact", "--", LINETENDER])
            .args(["__badserver", "--era", "legacy"])
            .env_clear()
            .env("HOME", &self.0)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .env("OTEL_BSP_SCHEDULE_DELAY", "50")
            .envs(more.iter().copied());
        Agent::with_stderr(&mut shim, File::create(self.0.join("log")).unwrap()).greeted()
    }

    /// Calls a tool that writes down what it hears. What it heard in `_meta`.
    fn call(&self, agent: &mut Agent, id: u32, meta: &Value, dies: bool) -> Value {
        let path = |name: &str| self.0.join(name);
        let mut arguments = json!({ "heard": path("heard"), "answer": path("answer"), "secret": "hunter2" });
        if dies {
            arguments["dies"] = json!(path("dies"));
        }
        let params = json!({ "name": "exact", "arguments": arguments, "_meta": meta });
        let answer = agent.ask(&id.into(), "tools/call", &params);
        assert_eq!(answer["result"], json!({}), "{answer}");
        let heard: Value = serde_json::from_slice(&std::fs::read(path("heard")).unwrap()).unwrap();
        heard["_meta"].clone()
    }

    /// The agent goes. How long the shim takes to end, and what it logged.
    fn ends(&self, mut agent: Agent) -> (Duration, String) {
        let began = Instant::now();
        drop(agent.to.take());
        assert!(agent.shim.wait().unwrap().success());
        (began.elapsed(), std::fs::read_to_string(self.0.join("log")).unwrap())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_call_that_crosses_a_death_is_one_span_with_two_links() {
    let (home, receiver) = (Home::new(), Receiver::start());
    let mut agent = home.shim(&receiver.address, &[]);
    let theirs = json!({ "traceparent": format!("00-{TRACE}-{CALLER}-01"), "tracestate": "a=b", "k": 1 });
    let heard = home.call(&mut agent, 7, &theirs, true);
    let (took, log) = home.ends(agent);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!log.contains("not all spans"), "{log}");

    // The second generation ends with the agent: its span is the last.
    let is_second = |span: &_| {
        attribute(span, "linetender.cause").is_some()
            && attribute(span, "linetender.generation").as_deref() == Some("2")
    };
    let spans = receiver.until(is_second);
    assert!(!format!("{spans:?}").contains("hunter2"), "no arguments");
    let calls: Vec<_> = spans.iter().filter(|span| span.name == "tools/call exact").collect();
    let [call] = calls[..] else { panic!("{calls:#?}") };
    assert_eq!((hex(&call.trace_id).as_str(), hex(&call.parent_span_id).as_str()), (TRACE, CALLER));
    assert_eq!(call.kind, 3, "client");
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "exact"),
        ("gen_ai.operation.name", "execute_tool"),
        ("network.transport", "pipe"),
        ("linetender.server", "bad"),
        ("linetender.verdict", "answered"),
        ("linetender.attempts", "2"),
        ("linetender.generation", "2"),
    ] {
        assert_eq!(attribute(call, key).as_deref(), Some(value), "{key}: {call:#?}");
    }
    assert!(
        attribute(call, "jsonrpc.request.id").is_some() && attribute(call, "mcp.protocol.version").is_some()
    );
    assert_eq!(attribute(call, "error.type"), None);
    assert!(call.status.as_ref().is_none_or(|status| status.code != 2));
    assert!(call.start_time_unix_nano > 0 && call.end_time_unix_nano > call.start_time_unix_nano);

    // The server was told of our span, in the agent's trace.
    let ours = format!("00-{TRACE}-{}-01", hex(&call.span_id));
    assert_eq!(heard, json!({ "traceparent": ours, "tracestate": "a=b", "k": 1 }));
    assert_ne!(hex(&call.span_id), CALLER);

    // Both generations that it was given to are linked, and their spans came too.
    assert_eq!(call.links.len(), 2, "{call:#?}");
    for (link, (number, failed)) in call.links.iter().zip([("1", true), ("2", false)]) {
        let found = spans.iter().find(|span| span.span_id == link.span_id).expect("the generation's span");
        assert_eq!((found.name.as_str(), &found.trace_id), ("generation", &link.trace_id));
        assert_eq!(attribute(found, "linetender.generation").as_deref(), Some(number));
        assert_eq!(found.status.as_ref().is_some_and(|status| status.code == 2), failed, "{found:#?}");
        assert!(found.events.iter().any(|event| event.name == "up"), "{found:#?}");
    }
}

#[test]
fn what_the_sampler_leaves_out_is_said_so_to_the_server_and_not_exported() {
    let (home, receiver) = (Home::new(), Receiver::start());
    let mut agent = home.shim(&receiver.address, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    // What is no trace context begins a trace.
    let heard = home.call(&mut agent, 7, &json!({ "traceparent": "00-nonsense", "k": 1 }), false);
    let parent = heard["traceparent"].as_str().unwrap();
    assert!(parent.len() == 55 && parent.starts_with("00-") && parent.ends_with("-00"), "{parent}");
    assert_eq!(heard, json!({ "traceparent": parent, "k": 1 }));
    home.ends(agent);
    assert!(receiver.has_none());
}

#[test]
fn without_a_receiver_nothing_is_touched() {
    let home = Home::new();
    let theirs = json!({ "traceparent": "00-nonsense", "k": 1 });
    for more in [&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")][..], &[("OTEL_SDK_DISABLED", "true")]] {
        let mut agent = home.shim("http://127.0.0.1:9", more);
        assert_eq!(home.call(&mut agent, 7, &theirs, false), theirs);
        assert!(!home.ends(agent).1.contains("traces"));
    }
}

#[test]
fn a_receiver_that_is_not_there_is_said_once() {
    let home = Home::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut agent = home.shim(&format!("http://{closed}"), &[]);
    for id in 0..3 {
        home.call(&mut agent, id, &json!({}), false);
        let said = || std::fs::read_to_string(home.0.join("log")).unwrap().contains("cannot deliver traces");
        let began = Instant::now();
        while !said() {
            assert!(began.elapsed() < agent::PATIENCE, "it is not said");
            std::thread::yield_now();
        }
    }
    let (took, log) = home.ends(agent);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(log.matches("cannot deliver traces").count(), 1, "{log}");
    assert!(log.contains("not all spans were delivered"), "{log}");
}

#[test]
fn a_receiver_that_hangs_holds_nobody_up() {
    let (home, deaf) = (Home::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let mut agent =
        home.shim(&format!("http://{}", deaf.local_addr().unwrap()), &[("OTEL_BSP_MAX_QUEUE_SIZE", "4")]);
    let began = Instant::now();
    // It is connected to, and says nothing.
    home.call(&mut agent, 0, &json!({}), false);
    let held = deaf.accept().unwrap();
    for id in 1..50 {
        home.call(&mut agent, id, &json!({}), false);
    }
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let (took, log) = home.ends(agent);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(log.contains("not all spans were delivered"), "{log}");
    drop(held);
}

//! Dropped packets: nothing is refused, nothing is closed, nothing comes. Runs in a network namespace of its own, in which
//! it may do as it likes:
//!
//! `ip netns add hole; ip netns exec hole ip link set lo up; ip netns exec hole soak blackhole; ip netns del hole`

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use linetender::{CallErrorKind, Era, Eras, Line, Raw, Server, State};
use linetender_badserver::Book;
use linetender_badserver::webserver::{Answers, Config, WebServer};

use super::{runtime, tell};

/// How long a call may stay on a connection behind which nothing is.
const BOUND: Duration = Duration::from_secs(20);

/// A call in each era on connections that then lead nowhere.
pub fn blackhole() -> ExitCode {
    tell(runtime().block_on(drop_packets()))
}

async fn drop_packets() -> Result<String, String> {
    let path = std::env::temp_dir().join(format!("linetender-hole-{}", std::process::id()));
    let book = Book::at(&path);
    let mut config = Config { book: Some(path.clone()), ..Config::default() };
    config.manners.answers = Answers::Sse;
    let server = WebServer::start(config).map_err(|error| error.to_string())?;
    let (legacy, modern) = (line(&server, Era::Legacy), line(&server, Era::Modern));
    let calls = async { tokio::join!(hang(&legacy, "legacy"), hang(&modern, "modern")) };
    let hole = async {
        while book.runs().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        iptables(&["-A", "INPUT", "-p", "tcp", "-j", "DROP"])
    };
    let ((legacy_took, modern_took), dropped) = tokio::join!(calls, hole);
    dropped.and_then(|()| iptables(&["-F", "INPUT"]))?;
    let (legacy_took, modern_took) = (legacy_took?, modern_took?);
    for line in [&legacy, &modern] {
        let back = async { while line.call_tool("echo", Raw("{}")).await.is_err() {} };
        tokio::time::timeout(Duration::from_secs(60), back)
            .await
            .map_err(|_| "it never came back".to_owned())?;
        line.close().await;
    }
    let _ = std::fs::remove_file(&path);
    Ok(format!(
        "packets dropped: calls ended as unknown after {:.1} s (legacy) and {:.1} s (modern), at most {} s allowed; \
         the lines were suspect then, and work again",
        legacy_took.as_secs_f64(),
        modern_took.as_secs_f64(),
        BOUND.as_secs(),
    ))
}

fn line(server: &WebServer, era: Era) -> Line {
    Line::open(Server::http("hole", &server.url()).eras(Eras::Only(era)))
}

/// A call that nobody answers; how long it took to find out that nobody will.
#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
async fn hang(line: &Line, nonce: &str) -> Result<Duration, String> {
    line.ready().await.map_err(|error| error.to_string())?;
    let start = Instant::now();
    let arguments = format!(r#"{{"nonce":"{nonce}"}}"#);
    let ended = tokio::time::timeout(2 * BOUND, line.call_tool("hang", Raw(&arguments))).await;
    let error = match ended {
        Ok(Err(error)) => error,
        Ok(Ok(_)) => return Err(format!("{nonce}: it was answered")),
        Err(_) => return Err(format!("{nonce}: the call hung")),
    };
    let took = start.elapsed();
    if error.kind != CallErrorKind::Lost || error.delivery.name() != "unknown" || took > BOUND {
        return Err(format!("{nonce}: after {took:?}: {error}"));
    }
    // The call is told first, and then everybody else.
    let suspect = line.wait_for(|status| status.state != State::Up);
    match tokio::time::timeout(Duration::from_secs(1), suspect).await {
        Ok(_) => Ok(took),
        Err(_) => Err(format!("{nonce}: the line still called itself up")),
    }
}

fn iptables(rule: &[&str]) -> Result<(), String> {
    let done = Command::new("iptables").args(rule).status().map_err(|error| format!("iptables: {error}"))?;
    if done.success() { Ok(()) } else { Err("iptables refused".to_owned()) }
}

//! Dropped packets: nothing is refused, nothing is closed, nothing comes; of some connections, and then of all for a while. Runs in
//! a network namespace of its own, in which it may do as it likes:
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

/// How long the network is away, and how long the calls take that wait for their answers meanwhile.
const AWAY: Duration = Duration::from_secs(25);
const WORK: Duration = Duration::from_secs(15);

/// Longest time to the answer: TCP sends it again after pauses that double.
const ANSWERED: Duration = Duration::from_secs(90);

/// A call in each era on connections that then lead nowhere, while others can be made; and one in each while no packet comes at all.
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
        // New connections come about.
        let port = server.port().to_string();
        iptables(&["-A", "INPUT", "-p", "tcp", "--dport", &port, "!", "--syn", "-j", "DROP"])
    };
    let ((legacy_took, modern_took), dropped) = tokio::join!(calls, hole);
    dropped.and_then(|()| iptables(&["-F", "INPUT"]))?;
    let (legacy_took, modern_took) = (legacy_took?, modern_took?);
    let waited = outage(&legacy, &modern, &book).await?;
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
         the lines were suspect then, and work again; network away for {} s: calls of {} s were answered, after {:.1} s at most",
        legacy_took.as_secs_f64(),
        modern_took.as_secs_f64(),
        BOUND.as_secs(),
        AWAY.as_secs(),
        WORK.as_secs(),
        waited.as_secs_f64(),
    ))
}

/// No packet comes for a while, and then they come again: each call is answered, and was run once. How long that took.
#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
async fn outage(legacy: &Line, modern: &Line, book: &Book) -> Result<Duration, String> {
    let start = Instant::now();
    let call = |line: Line, nonce: &'static str| async move {
        let arguments = format!(r#"{{"nonce":"{nonce}","ms":{}}}"#, WORK.as_millis());
        let ended = tokio::time::timeout(ANSWERED, line.call_tool("sleep", Raw(&arguments))).await;
        ended.map_err(|_| format!("{nonce}: the call hung"))?.map_err(|error| format!("{nonce}: {error}"))
    };
    let calls = async { tokio::join!(call(legacy.clone(), "away-1"), call(modern.clone(), "away-2")) };
    let away = async {
        while !["away-1", "away-2"].iter().all(|nonce| book.runs().contains_key(*nonce)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        iptables(&["-A", "INPUT", "-p", "tcp", "-j", "DROP"])?;
        tokio::time::sleep(AWAY).await;
        iptables(&["-F", "INPUT"])
    };
    let ((one, two), away) = tokio::join!(calls, away);
    away?;
    one.and(two)?;
    let once = ["away-1", "away-2"].iter().all(|nonce| book.runs()[*nonce] == 1);
    if once { Ok(start.elapsed()) } else { Err(format!("a call ran twice: {:?}", book.runs())) }
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

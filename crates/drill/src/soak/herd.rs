//! A herd: many lines to one server that dies and returns. They must not come back in one moment.

use std::process::ExitCode;
use std::time::Duration;

use linetender::{Era, Eras, HttpServer, Line, Policy, Raw, Rig, Server, Settings, State};
use linetender_badserver::webserver::{Config, Ending, Sockets, WebServer};

use super::{runtime, tell};

/// In how much time no more than so many may come.
const BUCKET: Duration = Duration::from_millis(100);

/// How long the server is away after that: several attempts of every line.
const AWAY: Duration = Duration::from_secs(6);

/// Longer than the longest backoff and a place at the end of the line.
const BACK: Duration = Duration::from_secs(120);

/// So many lines, in each era.
pub fn herd(count: usize) -> ExitCode {
    tell(runtime().block_on(async {
        let legacy = stampede(count, Era::Legacy).await?;
        Ok(format!("{legacy}\n{}", stampede(count, Era::Modern).await?))
    }))
}

async fn stampede(count: usize, era: Era) -> Result<String, String> {
    let server = WebServer::start(Config::default()).map_err(|error| error.to_string())?;
    let rig = Rig::new();
    let lines: Vec<Line> = (0..count).map(|_| rig.open(target(&server, era))).collect();
    for line in &lines {
        line.ready().await.map_err(|error| error.to_string())?;
    }
    // Each line is in the middle of a call when the server dies.
    let calls = lines.iter().map(|line| async move { drop(line.call_tool("hang", Raw("{}")).await) });
    let calls = join_all(calls.collect());
    let death = async {
        while server.counters().calls < count as u64 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.set(|manners| manners.sockets = Sockets::Reset);
        server.end_connections(Ending::Reset);
    };
    tokio::join!(calls, death);
    // Each line finds out by itself that the server is gone. What comes after that is counted; when that is, is not for a
    // clock to say: on a busy machine it is late.
    let known = async {
        for line in &lines {
            line.wait_for(|status| {
                status.generation > 1 || matches!(status.state, State::Waiting | State::Parked)
            })
            .await;
        }
    };
    let known = tokio::time::timeout(BACK, known).await;
    known.map_err(|_| "some lines never found out".to_owned())?;
    let before = server.counters().attempts.len();
    tokio::time::sleep(AWAY).await;
    let later = server.counters().attempts.split_off(before);
    if later.len() < count {
        return Err(format!("{era:?}: {} attempts of {count} lines; nothing was seen", later.len()));
    }
    server.set(|manners| manners.sockets = Sockets::Open);
    let returned = tokio::time::timeout(BACK, come_back(&server, &lines)).await;
    let returned = returned.map_err(|_| "some lines never came back".to_owned())?;
    for line in &lines {
        line.close().await;
    }
    let (most, allowed) = (busiest(&later).max(returned), count / 20);
    if most > allowed {
        let away = busiest(&later);
        return Err(format!(
            "{era:?}: {away} attempts within {BUCKET:?} while it was away, {returned} when it returned; {allowed} allowed"
        ));
    }
    Ok(format!(
        "{count} {era:?} lines, a server away for {} s: after the second attempt at most {most} attempts within 100 ms \
         ({allowed} allowed), {} in all; every line is back",
        AWAY.as_secs(),
        later.len(),
    ))
}

fn target(server: &WebServer, era: Era) -> HttpServer {
    let mut settings = Settings::default();
    // Many can hang, and a death is found out sooner than in life.
    settings.probe.timeout = Duration::from_millis(300);
    let policy = Policy::new(settings).unwrap_or_default();
    Server::http("herd", &server.url()).eras(Eras::Only(era)).policy(policy)
}

async fn join_all<F: Future<Output = ()> + Send>(calls: Vec<F>) {
    let mut all: Vec<_> = calls.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|call| call.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Waits until every line is up, and counts the handshakes meanwhile: the most within a bucket.
async fn come_back(server: &WebServer, lines: &[Line]) -> usize {
    let handshakes = || {
        let counters = server.counters();
        usize::try_from(counters.initializes + counters.discovers).unwrap_or(usize::MAX)
    };
    let (mut most, mut before, mut looked) = (0, handshakes(), tokio::time::Instant::now());
    while lines.iter().any(|line| line.status().state != State::Up) {
        tokio::time::sleep(BUCKET).await;
        let (now, took) = (handshakes(), looked.elapsed());
        looked = tokio::time::Instant::now();
        // A look that comes late sees more than one bucket.
        let buckets = usize::try_from(took.as_millis().div_ceil(BUCKET.as_millis())).unwrap_or(1).max(1);
        most = most.max((now - before).div_ceil(buckets));
        before = now;
    }
    most
}

/// The most attempts within a bucket.
fn busiest(attempts: &[Duration]) -> usize {
    let mut end = 0;
    (0..attempts.len())
        .map(|start| {
            while end < attempts.len() && attempts[end] < attempts[start] + BUCKET {
                end += 1;
            }
            end - start
        })
        .max()
        .unwrap_or(0)
}

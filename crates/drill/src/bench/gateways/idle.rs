//! Agents that are connected and have nothing to say: what the process of an endpoint takes up for them.

use std::fmt;
use std::time::Duration;

use http::{Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::http::{Connection, Place};
use super::process::{Held, held};
use super::speech::Era;

/// How long a process may take until it is at rest: nothing that it holds has changed from one look to the next.
const REST: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(500);

/// An agent that listens, for as long as this is held.
struct Listener {
    _connection: Connection,
    _stream: Response<Incoming>,
}

/// What a process holds, at several moments.
#[derive(Debug)]
pub struct AtRest {
    agents: usize,
    moments: Vec<(&'static str, Held)>,
}

/// So many agents that only listen, of one era and then of the other: modern ones that have asked to hear of changes, and
/// legacy ones with a session and its own stream.
///
/// # Errors
/// If the process cannot be looked at, or an agent is not let in.
pub async fn idle(pid: u32, agents: usize, url: &str) -> Result<AtRest, String> {
    take_descriptors();
    let mut moments = vec![("nobody", at_rest(pid).await?)];
    for (era, here, gone) in [
        (Era::Modern, "modern agents listen", "they hung up"),
        (Era::Legacy, "legacy agents have a stream open", "they hung up, and have their sessions still"),
    ] {
        let mut listeners = Vec::new();
        for number in 0..agents {
            listeners.push(listen(url, era).await.map_err(|error| format!("agent {number}: {error}"))?);
        }
        moments.push((here, at_rest(pid).await?));
        drop(listeners);
        moments.push((gone, at_rest(pid).await?));
    }
    Ok(AtRest { agents, moments })
}

/// As many as we may have: each agent is a socket.
#[cfg(unix)]
fn take_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // With less, it is told by the agent that could not connect.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// There is no such limit.
#[cfg(windows)]
const fn take_descriptors() {}

async fn listen(url: &str, era: Era) -> Result<Listener, String> {
    let mut place = Place::of(url, era)?;
    place.greet().await?;
    let mut connection = place.connect().await?;
    let (method, headers, body) = match era {
        Era::Legacy => (Method::GET, place.headers("", None), String::new()),
        Era::Modern => (Method::POST, place.headers("subscriptions/listen", None), era.listen(1)),
    };
    let mut stream = connection.send(&place, method, headers, body.into()).await?;
    // What is said first shows that it is heard.
    stream
        .body_mut()
        .frame()
        .await
        .ok_or("a stream that ended at once")?
        .map_err(|error| error.to_string())?;
    Ok(Listener { _connection: connection, _stream: stream })
}

/// What a process holds once it does nothing more.
async fn at_rest(pid: u32) -> Result<Held, String> {
    let mut before = held(pid)?;
    let mut waited = Duration::ZERO;
    while waited < REST {
        tokio::time::sleep(LOOK).await;
        waited += LOOK;
        let now = held(pid)?;
        // What it shares with others may be counted otherwise because of them.
        if before == (Held { pss: before.pss, ..now }) {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}

impl AtRest {
    /// The bytes that each agent takes more than nobody does.
    fn each(&self, now: &Held) -> u64 {
        let nobody = self.moments.first().map_or(0, |(_, held)| held.pss);
        now.pss.saturating_sub(nobody) * 1024 / self.agents.max(1) as u64
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        let moment = |(when, held): &(&str, Held)| {
            json!({
                "when": when, "rss_kib": held.rss, "pss_kib": held.pss, "threads": held.threads,
                "descriptors": held.descriptors, "bytes_each": self.each(held),
            })
        };
        json!({ "agents": self.agents, "moments": self.moments.iter().map(moment).collect::<Vec<_>>() })
    }
}

/// As a Markdown table.
impl fmt::Display for AtRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} agents | RSS KiB | PSS KiB | bytes each | threads | descriptors |", self.agents)?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (when, held) in &self.moments {
            let Held { rss, pss, threads, descriptors } = held;
            let each = self.each(held);
            writeln!(f, "| {when} | {rss} | {pss} | {each} | {threads} | {descriptors} |")?;
        }
        Ok(())
    }
}

//! An endpoint that is measured: an address, or a command for a server on pipes; and so many callers at once before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};
use tokio::task::JoinSet;

use super::http::{Connection, Place};
use super::pipe::Pipe;
use super::process::processor;
use super::speech::Era;
use super::{Load, micros, now};
use crate::figures::{median, share};

/// The tool that answers with so many bytes, and with what.
const TOOL: &str = "big";
const TEXT: &[u8] = b"xxxxxxxx";

/// Where the text of an answer has to begin.
const HEAD: usize = 1024;

/// What one measurement came to; microseconds, and calls in a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) rate: f64,
    /// What the endpoint's process needed of the processor for one call, if it is known which that is.
    pub(super) processor: Option<f64>,
}

/// An endpoint that was opened.
pub(super) struct Endpoint {
    pub(super) name: String,
    /// What its tool is called there.
    tool: String,
    way: Way,
    last: Arc<AtomicU64>,
    era: Era,
    /// Its process.
    pid: Option<u32>,
}

/// Where calls go, and the headers that all of them have.
#[derive(Clone)]
struct At {
    place: Place,
    headers: HeaderMap,
}

enum Way {
    /// One agent with as many connections as it has calls in flight.
    Http {
        at: Box<At>,
        idle: Vec<Connection>,
    },
    Pipe(Arc<Pipe>),
}

/// A caller's way, for one measurement.
enum Caller {
    Http { at: Box<At>, connection: Connection },
    Pipe(Arc<Pipe>),
}

impl Endpoint {
    /// `NAME=URL`, `NAME=COMMAND AND ITS WORDS`; `NAME:PREFIX@PID=…` if tools have a prefix there, and if its process is known.
    pub(super) async fn open(text: &str, era: Era) -> Result<Self, String> {
        let (name, to) = text.split_once('=').ok_or(format!("an endpoint is NAME=URL, not {text}"))?;
        let (name, pid) = match name.split_once('@') {
            Some((name, pid)) => (name, Some(pid.parse().map_err(|_| format!("{pid} is no process"))?)),
            None => (name, None),
        };
        let (name, prefix) = name.split_once(':').unwrap_or((name, ""));
        let tool = format!("{prefix}{TOOL}");
        let way = if to.starts_with("http://") {
            let mut place = Place::of(to, era)?;
            place.greet().await.map_err(|error| format!("{name}: {error}"))?;
            let headers = place.headers("tools/call", Some(&tool));
            Way::Http { at: Box::new(At { place, headers }), idle: Vec::new() }
        } else {
            Way::Pipe(Arc::new(Pipe::open(to, era).await?))
        };
        Ok(Self { name: name.to_owned(), tool, way, last: Arc::default(), era, pid })
    }

    async fn caller(&mut self) -> Result<Caller, String> {
        Ok(match &mut self.way {
            Way::Pipe(pipe) => Caller::Pipe(Arc::clone(pipe)),
            Way::Http { at, idle } => {
                let connection = match idle.pop() {
                    Some(connection) => connection,
                    None => at.place.connect().await?,
                };
                Caller::Http { at: at.clone(), connection }
            }
        })
    }

    /// So many callers, each with one call after the other.
    pub(super) async fn measure(&mut self, load: Load) -> Result<Measured, String> {
        let mut callers = Vec::new();
        for _ in 0..load.in_flight {
            callers.push(self.caller().await?);
        }
        let mut tasks = JoinSet::new();
        let ran_before = self.pid.map(processor).transpose()?;
        let start = now();
        for caller in callers {
            let (last, tool, era) = (Arc::clone(&self.last), self.tool.clone(), self.era);
            tasks.spawn(caller.calls(load, last, tool, era));
        }
        let mut times = Vec::with_capacity(load.calls);
        while let Some(done) = tasks.join_next().await {
            let (caller, its) =
                done.map_err(|error| error.to_string())?.map_err(|error| self.failed(&error))?;
            times.extend(its);
            if let (Way::Http { idle, .. }, Caller::Http { connection, .. }) = (&mut self.way, caller) {
                idle.push(connection);
            }
        }
        let took = start.elapsed();
        let count = u32::try_from(times.len()).map_or(0.0, f64::from);
        let times: Vec<f64> = times.into_iter().map(micros).collect();
        let ran = self.pid.map(processor).transpose()?.zip(ran_before);
        Ok(Measured {
            p50: median(&times),
            p99: share(&times, 0.99),
            rate: count / took.as_secs_f64(),
            processor: ran.map(|(after, before)| micros(after.saturating_sub(before)) / count),
        })
    }

    fn failed(&self, error: &str) -> String {
        format!("{}: {error}", self.name)
    }
}

impl Caller {
    async fn calls(
        mut self,
        load: Load,
        last: Arc<AtomicU64>,
        tool: String,
        era: Era,
    ) -> Result<(Self, Vec<Duration>), String> {
        let mut times = Vec::new();
        for _ in 0..load.calls.div_ceil(load.in_flight) {
            let id = last.fetch_add(1, Ordering::Relaxed) + 1;
            let text = era.call(id, &tool, load.bytes);
            let start = now();
            match &mut self {
                Self::Pipe(pipe) => check(&pipe.ask(id, text).await?, load.bytes)?,
                Self::Http { at, connection } => {
                    let headers = at.headers.clone();
                    let answer = connection.send(&at.place, Method::POST, headers, text.into()).await?;
                    check(&connection.read(answer).await?, load.bytes)?;
                }
            }
            times.push(start.elapsed());
        }
        Ok((self, times))
    }
}

/// A failed call may be fast, and must not be taken for a good one.
fn check(answer: &[u8], bytes: usize) -> Result<(), String> {
    let head = &answer[..answer.len().min(HEAD)];
    if answer.len() > bytes && head.windows(TEXT.len()).any(|window| window == TEXT) {
        return Ok(());
    }
    Err(format!("a call failed: {}", String::from_utf8_lossy(head)))
}

//! The story of a server's last deaths, for somebody who knows nothing of linetender.
//!
//! In: its entries of the journal, and where it stands now if a process holds it. Out: plain sentences, and the same as data. Nothing
//! here reads a file or a clock, so that a terminal, a web page and a test are told the same.

mod advice;
mod meaning;
mod now;
mod print;
mod spans;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;

use crate::holder::{LineReport, Silence, Verdicts};
use crate::journal::{Charge, Entry, Reason, What};
use linetender::visible;
use linetender_wire::wall::from_rfc3339;
/// The time that a story is told at, for programs that have no clock of their own.
pub use linetender_wire::wall::wall_clock;

pub use advice::Advice;
pub use now::Now;

/// How many deaths a story tells of, where nothing else is said. Repetitions of one count as one.
pub const DEATHS: usize = 5;

/// How many of the last lines of stderr are shown, and how much of each.
const STDERR_LINES: usize = 8;
const STDERR_WIDTH: usize = 240;

/// How much of a sentence that others wrote is shown.
const SENTENCE: usize = 600;

/// The story of one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Story {
    /// Server name.
    pub server: String,
    /// Where it stands.
    pub now: Now,
    /// How it ended the last times, newest first.
    pub deaths: Vec<Death>,
    /// Ends before those.
    pub older: usize,
    /// Requests that linetender sent again by itself, by reason, as far back as the journal goes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub retries: BTreeMap<String, u64>,
    /// What happens next if nobody does anything.
    pub next: Vec<String>,
    /// What somebody can do.
    pub advice: Vec<Advice>,
}

/// One end of a server, or several in a row that look the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Death {
    /// When (RFC 3339).
    pub at: String,
    /// Milliseconds since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ago_millis: Option<u64>,
    /// Process id of the linetender process that saw it.
    pub holder: u32,
    /// Number of the connection attempt that ended.
    pub generation: u64,
    /// For how long it had served; absent if it never came up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_millis: Option<u64>,
    /// Whether somebody wanted it.
    pub planned: bool,
    /// What was seen.
    pub what: String,
    /// What that usually means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meaning: Vec<String>,
    /// The cause as the journal has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Reason>,
    /// The last lines of stderr.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// What it cost, in words.
    pub cost: String,
    /// The same as data; absent if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    /// What became of the calls that it had, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<String>,
    /// How long it took until the server served again; absent if it did not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_millis: Option<u64>,
    /// How often the same happened in a row, this time included.
    pub times: usize,
    /// When it did first (RFC 3339).
    pub first: String,
}

impl Story {
    /// Tells it. `entries` are the journal's entries of this server, oldest first; those of others are passed over. `live` is where it
    /// stands, if a running process holds it. At most `most` deaths are told.
    pub fn of(
        server: &str,
        entries: &[Entry],
        live: Option<&LineReport>,
        now: SystemTime,
        most: usize,
    ) -> Self {
        let scenes = scenes(server, entries);
        let mut deaths = deaths(&scenes, now);
        let older = deaths.iter().skip(most).map(|death| death.times).sum();
        deaths.truncate(most);
        let last = scenes.last();
        let stands = Now::of(live, last, now);
        let door = last.map_or("run", |scene| scene.door);
        let failed = deaths.first().filter(|death| !death.planned);
        let next = advice::next(&stands, failed);
        let advice = advice::advice(server, &stands, failed, door);
        let (server, retries) = (visible::line(server).into_owned(), retries(server, entries));
        Self { server, now: stands, deaths, older, retries, next, advice }
    }
}

impl Story {
    /// The process that held the server when the journal last told of it, unless a running process says where the server stands.
    pub const fn last_holder(&self) -> Option<u32> {
        self.now.last_holder
    }

    /// The same story if that process runs and does not answer: then nobody knows where the server stands.
    #[must_use]
    pub fn held_in_silence(mut self, why: Silence) -> Self {
        let Some(holder) = self.now.last_holder else { return self };
        let (how, text, command) = match why {
            Silence::Stopped => (
                "is stopped (SIGSTOP, or Ctrl-Z in a terminal)",
                "Let that process go on:",
                format!("kill -CONT {holder}"),
            ),
            Silence::NoAnswer => (
                "does not answer in time",
                "See whether it answers now, and what it is doing:",
                format!("linetender status; ps -o pid,stat,pcpu,etime,args -p {holder}"),
            ),
            Silence::NotUnderstood => (
                "runs another version of linetender",
                "See which program that is:",
                format!("ps -o pid,args -p {holder}"),
            ),
        };
        self.now.text =
            format!("in an unknown state: the linetender process that runs it (pid {holder}) {how}");
        "Whether calls are answered is not known.".clone_into(&mut self.now.calls);
        self.next = vec!["linetender looks after the server as soon as that process goes on.".to_owned()];
        self.advice.insert(0, Advice { text: text.to_owned(), command: Some(command) });
        self
    }
}

/// A change of the server's state, as the journal has it.
pub(crate) struct Scene<'a> {
    at: &'a str,
    holder: u32,
    door: &'a str,
    generation: u64,
    state: &'a str,
    cause: Option<&'a Reason>,
    charge: Option<Charge>,
    next_try: Option<&'a str>,
    calls: Option<Verdicts>,
}

fn scenes<'a>(name: &str, entries: &'a [Entry]) -> Vec<Scene<'a>> {
    let scene = |entry: &'a Entry| match &entry.what {
        What::State { server, generation, state, cause, charge, next_try, calls, .. } if server == name => {
            Some(Scene {
                at: &entry.at,
                holder: entry.holder,
                door: &entry.door,
                generation: *generation,
                state,
                cause: cause.as_ref(),
                charge: *charge,
                next_try: next_try.as_deref(),
                calls: *calls,
            })
        }
        _ => None,
    };
    entries.iter().filter_map(scene).collect()
}

fn retries(name: &str, entries: &[Entry]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        if let What::Retry { server, reason, .. } = &entry.what
            && server == name
        {
            *counts.entry(visible::line(reason).into_owned()).or_default() += 1;
        }
    }
    counts
}

/// All ends, newest first, repetitions folded. That an agent left, or linetender was shut down, is no death.
fn deaths(scenes: &[Scene<'_>], now: SystemTime) -> Vec<Death> {
    let mut deaths: Vec<Death> = Vec::new();
    for (at, scene) in scenes.iter().enumerate().rev() {
        let closes = |reason: &Reason| reason.planned() && reason.leaves.iter().any(|leaf| leaf == "close");
        if scene.state != "ending" || scene.cause.is_some_and(closes) {
            continue;
        }
        let death = death(&scenes[..at], scene, &scenes[at + 1..], now);
        match deaths.last_mut().filter(|later| later.repeats(&death)) {
            Some(later) => {
                later.times += 1;
                later.first = death.at;
            }
            None => deaths.push(death),
        }
    }
    deaths
}

fn death(before: &[Scene<'_>], scene: &Scene<'_>, after: &[Scene<'_>], now: SystemTime) -> Death {
    let mine = |other: &&Scene<'_>| other.holder == scene.holder;
    let up = before
        .iter()
        .rev()
        .filter(mine)
        .take_while(|other| other.generation == scene.generation)
        .filter(|other| other.state == "up")
        .last();
    let back = after.iter().filter(mine).find(|other| other.state == "up");
    let cause = fullest(scene, after);
    let planned = cause.as_ref().is_some_and(Reason::planned);
    let told = meaning::of(cause.as_ref(), up.is_some());
    Death {
        at: scene.at.to_owned(),
        ago_millis: from_rfc3339(scene.at).map(|at| spans::millis(at, now)),
        holder: scene.holder,
        generation: scene.generation,
        served_millis: up.and_then(|up| spans::between(up.at, scene.at)),
        planned,
        what: visible::cut(&told.what, SENTENCE),
        meaning: told.meaning,
        stderr: stderr(cause.as_ref()),
        cause,
        cost: cost(planned, scene.charge),
        charge: scene.charge,
        calls: taken_along(scene, after),
        back_millis: back.and_then(|back| spans::between(scene.at, back.at)),
        times: 1,
        first: scene.at.to_owned(),
    }
}

/// What a server died of may become known only while it is laid to rest: then the entries after the end say more. What it wrote to
/// stderr may stand in one of them alone.
fn fullest(scene: &Scene<'_>, after: &[Scene<'_>]) -> Option<Reason> {
    let mut cause = scene.cause;
    let mut stderr = cause.and_then(|reason| reason.stderr.as_ref());
    for later in after.iter().filter(|later| later.holder == scene.holder) {
        let of_this = match later.state {
            "dialing" => later.generation == scene.generation + 1,
            "waiting" | "parked" | "needs-auth" | "idle" => later.generation == scene.generation,
            _ => false,
        };
        if !of_this {
            break;
        }
        // That it was parked afterwards is not what it died of.
        if let Some(reason) = later.cause.filter(|reason| !reason.planned()) {
            cause = Some(reason);
            stderr = reason.stderr.as_ref().or(stderr);
        }
    }
    cause.map(|reason| Reason { stderr: stderr.cloned(), ..reason.clone() })
}

/// What became of the calls that the server had when it died, if it had any. They end a moment after it does, so the entries after
/// the end have them.
fn taken_along(scene: &Scene<'_>, after: &[Scene<'_>]) -> Option<String> {
    let of_this = |later: &&Scene<'_>| later.holder == scene.holder;
    let until_up = after.iter().filter(of_this).take_while(|later| later.state != "ending");
    let (mut not_executed, mut unknown) = (0, 0);
    for calls in until_up.filter_map(|later| later.calls) {
        not_executed += calls.not_executed;
        unknown += calls.unknown;
    }
    let word = |count| if count == 1 { "call was" } else { "calls were" };
    let not = format!("{not_executed} {} not executed", word(not_executed));
    let open = format!(
        "{unknown} {} with it when it failed: whether {} executed is unknown, and its caller was told so",
        word(unknown),
        if unknown == 1 { "it was" } else { "they were" },
    );
    match (unknown, not_executed) {
        (0, 0) => None,
        (0, _) => Some(format!("{not}.")),
        (_, 0) => Some(format!("{open}.")),
        _ => Some(format!("{open}; {not}.")),
    }
}

fn stderr(cause: Option<&Reason>) -> Vec<String> {
    let text = cause.and_then(|reason| reason.stderr.as_deref()).unwrap_or_default();
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(STDERR_LINES));
    shown.map(|line| visible::cut(line, STDERR_WIDTH)).collect()
}

fn cost(planned: bool, charge: Option<Charge>) -> String {
    let Some(Charge { paid, useful, left_millis, most_millis }) = charge else {
        let free = if planned { "This stop was planned, so it" } else { "This kind of failure" };
        return format!("{free} costs none of the server's restarts.");
    };
    let (left, most) = (spans::tokens(left_millis), spans::tokens(most_millis));
    match (paid, useful) {
        (true, false) => {
            format!(
                "It cost one of the server's {most} restarts: {left} left. Answered calls and time up earn them back."
            )
        }
        (true, true) => format!(
            "The server had answered calls before, so it cost one of {most} restarts for servers that work between failures: {left} left."
        ),
        (false, _) => {
            format!("All {most} restarts were used up, so linetender stopped restarting it (state: parked).")
        }
    }
}

impl Death {
    /// Whether an earlier death is the same again.
    fn repeats(&self, earlier: &Self) -> bool {
        let looks = |death: &Self| {
            (
                death.holder,
                death.planned,
                death.what.clone(),
                death.stderr.clone(),
                death.served_millis.is_some(),
            )
        };
        looks(self) == looks(earlier)
    }
}

#[cfg(test)]
mod tests;

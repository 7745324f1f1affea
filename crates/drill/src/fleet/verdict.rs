//! The judge: what agents were told against what servers wrote down, and how long each fault was felt.

use std::collections::HashMap;
use std::time::Duration;

use linetender_badserver::{Bounds, History, check};

use super::agent::PATIENCE;
use super::house::Server;
use super::notes::Pages;
use super::saboteur::Strike;
use super::watcher::Seen;
use crate::figures::share;

/// So much longer than a lease a takeover may take, besides the server's own start.
pub(super) const TAKEOVER: Duration = Duration::from_secs(5);

/// The longest time without any answered stateless call that is no gap: probes are a tenth of this apart, on a machine on which
/// three gateways, their servers and two hundred agents are, and one of the gateways starts.
const GAP: Duration = Duration::from_secs(1);

/// So long after everything works again connections may still break that a fault left behind.
const LATE: Duration = Duration::from_secs(2);

/// What a run came to.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What must not be; empty is good.
    pub findings: Vec<String>,
    pub(super) seed: u64,
    pub(super) seconds: u64,
    pub(super) agents: usize,
    pub(super) servers: usize,
    pub(super) lease: Duration,
    /// Whether the gateways were a fleet.
    pub(super) fleet: bool,
    /// What had to be left out, and why.
    pub(super) missing: Vec<String>,
    pub(super) calls: Calls,
    pub(super) rows: Vec<Row>,
    /// p99 of a server's own start, while all this went on.
    pub(super) start: Duration,
    /// The longest time without an answered stateless call while there was no fault.
    pub(super) calm_gap: Duration,
    pub(super) looks: u64,
    /// The longest time that this machine stood still.
    pub(super) stall: Duration,
    /// Calls that ran more than once; were told nothing in time; were told what is not so, or not enough; servers alive on two nodes.
    pub(super) counts: [usize; 4],
}

/// What callers were told, all in all.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) answered: usize,
    pub(super) unknown: usize,
    pub(super) not_executed: usize,
    pub(super) broken: usize,
    pub(super) forgotten: usize,
    pub(super) sessions: u64,
    pub(super) probes: usize,
    pub(super) probes_failed: u64,
}

/// A kind of fault, and how it was felt.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) times: usize,
    /// Seconds until a line of the gateway that it was done to was answered by a new process.
    pub(super) takeovers: Vec<f64>,
    /// Seconds until every node served every line, after the fault was undone.
    pub(super) recoveries: Vec<f64>,
    /// The longest time without an answered stateless call.
    pub(super) gap: Duration,
    /// Calls that broke, and sessions that were not known.
    pub(super) broken: usize,
    pub(super) forgotten: usize,
}

impl Verdict {
    /// Holds everything against everything.
    pub(super) fn judge(&mut self, servers: &[Server], pages: &Pages, strikes: &[Strike], seen: &Seen) {
        self.looks = seen.looks;
        self.findings.extend(pages.findings.iter().cloned());
        self.counts[3] = seen.twice.len();
        for (server, history) in servers.iter().zip(&pages.histories) {
            self.judge_calls(server, history);
        }
        let calls = &mut self.calls;
        (calls.broken, calls.forgotten) = (pages.broken.len(), pages.forgotten.len());
        (calls.sessions, calls.probes) = (pages.sessions, pages.probes.len());
        calls.probes_failed = pages.probes_failed;
        let starts: Vec<_> = pages.starts.iter().map(Duration::as_secs_f64).collect();
        self.start = Duration::try_from_secs_f64(share(&starts, 0.99)).unwrap_or_default();
        self.judge_strikes(servers, pages, strikes);
        self.judge_gaps(pages, strikes, seen);
        self.stall = seen.stalls.iter().map(|(_, late)| *late).max().unwrap_or_default();
        self.judge_breaks(pages, strikes);
    }

    fn judge_calls(&mut self, server: &Server, history: &History) {
        self.calls.add(history);
        let bounds = Bounds { call: PATIENCE, dials_per_second: usize::MAX, changes: 0 };
        for finding in check(history, &server.book, bounds) {
            match finding {
                linetender_badserver::Finding::RanTwice { .. } => self.counts[0] += 1,
                linetender_badserver::Finding::Hung { .. } => self.counts[1] += 1,
                _ => self.counts[2] += 1,
            }
            self.findings.push(format!("{}: {finding}", server.name));
        }
        let foreign = server
            .book
            .runs()
            .into_keys()
            .find(|nonce| nonce.starts_with('s') && !history.calls.contains_key(nonce));
        if let Some(nonce) = foreign {
            self.findings.push(format!("{}: ran {nonce}, which was for another", server.name));
        }
        if server.stateful {
            for (older, newer) in server.book.overlaps() {
                self.counts[3] += 1;
                self.findings.push(format!(
                    "{}: process {older} still wrote after its successor {newer} had started",
                    server.name
                ));
            }
        }
    }

    fn judge_strikes(&mut self, servers: &[Server], pages: &Pages, strikes: &[Strike]) {
        let bound = self.lease + TAKEOVER + self.start;
        let firsts: HashMap<&str, Vec<(Duration, i32)>> = servers
            .iter()
            .zip(&pages.histories)
            .filter(|(server, _)| server.stateful)
            .map(|(server, history)| (server.name.as_str(), answered_by(server, history)))
            .collect();
        for strike in strikes {
            let (mut takeovers, none) = (Vec::new(), Vec::new());
            for (line, old) in strike.lines.iter().filter(|_| strike.fault.takes_over && self.fleet) {
                let answered = firsts.get(line.as_str()).unwrap_or(&none);
                let first = answered.iter().find(|(at, pid)| *at > strike.at && pid != old);
                let took = first.map(|(at, _)| at.saturating_sub(strike.at));
                takeovers.extend(took.map(|took| took.as_secs_f64()));
                if took.is_none_or(|took| took > bound) {
                    let took =
                        took.map_or("never".to_owned(), |took| format!("after {:.1} s", took.as_secs_f64()));
                    self.findings.push(format!(
                        "{line} was taken over {took}, {:.1} s are allowed ({} at {:.1} s, {})",
                        bound.as_secs_f64(),
                        strike.fault.name,
                        strike.at.as_secs_f64(),
                        strike.whom
                    ));
                }
            }
            if strike.recovered.is_none() {
                self.findings.push(format!(
                    "not every node served every line again ({} at {:.1} s)",
                    strike.fault.name,
                    strike.at.as_secs_f64()
                ));
            }
            let within = |at: &Duration| *at >= strike.at && *at <= until(strike);
            let row = self.row(strike.fault.name);
            row.times += 1;
            row.takeovers.extend(takeovers);
            row.recoveries.extend(strike.recovered.map(|at| at.saturating_sub(strike.mended).as_secs_f64()));
            row.broken += pages.broken.iter().filter(|(at, _)| within(at)).count();
            row.forgotten += pages.forgotten.iter().filter(|at| within(at)).count();
        }
    }

    fn row(&mut self, name: &'static str) -> &mut Row {
        let at = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.rows.push(Row { name, ..Row::default() });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// The longest times between two answered probes, during each fault and outside of all.
    fn judge_gaps(&mut self, pages: &Pages, strikes: &[Strike], seen: &Seen) {
        let mut answered: Vec<_> = pages.probes.iter().map(|(at, _)| *at).collect();
        answered.sort_unstable();
        for pair in answered.windows(2) {
            let gap = pair[1].saturating_sub(pair[0]);
            let during: Vec<_> =
                strikes.iter().filter(|strike| pair[1] > strike.at && pair[0] < until(strike)).collect();
            if during.is_empty() {
                self.calm_gap = self.calm_gap.max(gap);
            }
            for strike in during {
                // What the whole machine stood still for is not the gateways'.
                if gap.saturating_sub(seen.stalled(pair[0], pair[1])) > GAP {
                    self.findings.push(format!(
                        "no stateless call was answered for {:.1} s ({} at {:.1} s)",
                        gap.as_secs_f64(),
                        strike.fault.name,
                        strike.at.as_secs_f64()
                    ));
                }
                let row = self.row(strike.fault.name);
                row.gap = row.gap.max(gap);
            }
        }
    }

    /// A connection breaks because of a fault, or for no reason.
    fn judge_breaks(&mut self, pages: &Pages, strikes: &[Strike]) {
        let caused = |at: Duration| strikes.iter().any(|strike| at >= strike.at && at <= until(strike));
        let causeless: Vec<_> = pages.broken.iter().filter(|(at, _)| !caused(*at)).collect();
        if let Some((at, how)) = causeless.first() {
            self.findings.push(format!(
                "{} calls broke while there was no fault; the first at {:.1} s: {how}",
                causeless.len(),
                at.as_secs_f64()
            ));
        }
    }

    /// All takeovers, in seconds.
    pub fn takeovers(&self) -> Vec<f64> {
        self.rows.iter().flat_map(|row| row.takeovers.iter().copied()).collect()
    }
}

impl Calls {
    fn add(&mut self, history: &History) {
        for asked in history.calls.values() {
            match &asked.told {
                Some((_, Ok(()))) => self.answered += 1,
                Some((_, Err(failure))) if failure.not_executed() => self.not_executed += 1,
                Some((_, Err(_))) | None => self.unknown += 1,
            }
        }
    }
}

/// When a fault is felt no more.
fn until(strike: &Strike) -> Duration {
    strike.recovered.unwrap_or(strike.mended + PATIENCE) + LATE
}

/// When each call was answered, and by which process; in order.
fn answered_by(server: &Server, history: &History) -> Vec<(Duration, i32)> {
    let by = server.book.runs_by();
    let answered = |(nonce, asked): (&String, &linetender_badserver::Asked)| {
        let (at, told) = asked.told.as_ref()?;
        told.as_ref().ok()?;
        Some((*at, *by.get(nonce)?.last()?))
    };
    let mut answered: Vec<_> = history.calls.iter().filter_map(answered).collect();
    answered.sort_unstable();
    answered
}

#[cfg(test)]
mod tests;

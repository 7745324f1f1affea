//! What a drill came to, for programs: `linetender drill run --json FILE` writes this, and the board reads it.
//!
//! Words: *hung* is a call that was told nothing within the bound; *ran twice* is by the server's own book; *ran again by
//! refusal* is one that ran twice since its server ran it and then said that it had not, which breaks MCP's own rule; *wrong*
//! is told "not executed" and it ran, or answered and it never ran; *unexplained* is an error that does not say whether the
//! call ran and why; *empty* is an error without any text, a connection that was closed under a call included.

pub mod fleet;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of this format.
pub const FORMAT: u32 = 2;

/// All of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// Our version.
    pub linetender: String,
    /// Cores, memory and system.
    pub machine: String,
    /// The day, as `2026-11-15`.
    pub date: String,
    /// What chance began with.
    pub seed: u64,
    /// The policy of our own targets: `drill` (times are a tenth) or `default`.
    pub policy: String,
    /// Everybody who was drilled.
    pub targets: Vec<Target>,
    /// What several gateways that share their servers came to, if that was drilled too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<fleet::Fleet>,
}

/// One that was drilled.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it was set up.
    pub settings: String,
    /// What the agent speaks to it: `stdio`, `http`, `openapi`, or `library`.
    pub speaks: String,
    /// Whether it is one of linetender's own.
    pub ours: bool,
    /// What it was put through.
    pub rows: Vec<Row>,
    /// One row, moment by moment.
    pub timeline: Option<Timeline>,
}

/// A scenario on a target, in one era.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Row {
    /// The scenario's name, which begins with its row of the fault catalogue.
    pub row: String,
    /// What happens in it.
    pub title: String,
    /// How the server is reached: `stdio` or `http`.
    pub over: String,
    /// Which server: `bad`, `python` or `node`.
    pub server: String,
    /// The agent's era: `legacy` or `modern`.
    pub era: String,
    /// Which promises it is about.
    pub promises: Vec<String>,
    /// How many instances of everything ran at once.
    pub at_once: usize,
    /// How many times longer than the row says things might take.
    pub slack: f64,
    /// How often it was done.
    pub runs: u32,
    /// Why it was not.
    pub skipped: Option<String>,
    /// What callers were told, and what is wrong with that.
    pub calls: Calls,
    /// Calls that lay unread, so that linetender can count that they did not run.
    pub provable: Provable,
    /// Calls that did not run when they first reached their server, whoever says so.
    #[serde(default)]
    pub not_run: Provable,
    /// From the fault to the last call in flight being told, one per run.
    pub told_ms: Vec<f64>,
    /// From the fault to the first call that works again, one per run; `null` is not within the bound.
    pub back_ms: Vec<Option<f64>>,
    /// How often an agent had to connect anew by itself.
    #[serde(default)]
    pub reconnects: u32,
    /// Processes that were left.
    pub orphans: u32,
    /// What came of servers that keep something, start something or hold something.
    #[serde(default, skip_serializing_if = "Laws::is_empty")]
    pub laws: Laws,
    /// What must not be.
    pub findings: Vec<String>,
    /// Whether all that was expected held.
    pub kept: bool,
}

/// Calls, counted. Each made call is one of: answered, not executed, refused, unknown, hung, unexplained, empty.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Calls {
    /// All of them.
    pub made: u64,
    /// By the server.
    pub answered: u64,
    /// Told so.
    pub not_executed: u64,
    /// Told that the server says so.
    #[serde(default)]
    pub refused: u64,
    /// Told so.
    pub unknown: u64,
    /// Told nothing.
    pub hung: u64,
    /// By the server's own book.
    pub ran_twice: u64,
    /// By the server's own book, after a refusal by which it promised that it had not run the call. Not among `ran_twice`.
    #[serde(default)]
    pub ran_again_by_refusal: u64,
    /// Told what is not so.
    pub wrong: u64,
    /// Told too little.
    pub unexplained: u64,
    /// Told without a word.
    pub empty: u64,
    /// Of those not answered, whatever their callers were told: nobody could have answered them. Most were at work when their
    /// server died.
    #[serde(default)]
    pub doomed: u64,
}

/// What came of servers that keep something, start something or hold something: how often each law was put to the test, and how
/// often it was broken.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Laws {
    /// Calls of agents at such servers, those that set something up included.
    pub calls: u64,
    /// Of those, not executed since a context was replaced.
    pub refused_by_rule: u64,
    /// How often an agent set up a context.
    pub set_up: u64,
    /// How many replies told an agent that its context was gone.
    pub losses_told: u64,
    /// Broken: executed in a fresh context, and the agent had been told nothing.
    pub unwarned: u64,
    /// Executed in a fresh context after the agent had given up a call: the reply to that may have told it.
    pub notices_missed: u64,
    /// Daemons that left their server on purpose.
    pub strangers: u64,
    /// Broken: killed, and the target had been told to spare them.
    pub strangers_killed: u64,
    /// How often a server took its lock.
    pub locks: u64,
    /// Broken: a server began while another one of it lived.
    pub two_at_once: u64,
    /// Servers that were closed with work to save.
    pub saves: u64,
    /// Broken: not saved.
    pub saves_lost: u64,
}

/// Calls that did not run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Provable {
    /// How many.
    pub calls: u64,
    /// How many of them were answered all the same, unseen.
    pub recovered: u64,
}

/// A row, moment by moment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Timeline {
    /// Which.
    pub row: String,
    /// In order.
    pub events: Vec<Event>,
}

/// A moment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Event {
    /// Since the fault; what came before it is negative.
    pub ms: f64,
    /// `call`, `fault`, `answer` or `error`.
    pub what: String,
    /// In words.
    pub text: String,
}

impl Calls {
    /// Adds others to these.
    pub fn add(&mut self, other: &Self) {
        let Self {
            made,
            answered,
            not_executed,
            refused,
            unknown,
            hung,
            ran_twice,
            ran_again_by_refusal,
            wrong,
            unexplained,
            empty,
            doomed,
        } = other;
        self.made += made;
        self.answered += answered;
        self.not_executed += not_executed;
        self.refused += refused;
        self.unknown += unknown;
        self.hung += hung;
        self.ran_twice += ran_twice;
        self.ran_again_by_refusal += ran_again_by_refusal;
        self.wrong += wrong;
        self.unexplained += unexplained;
        self.empty += empty;
        self.doomed += doomed;
    }

    /// How many could have been answered.
    pub const fn answerable(&self) -> u64 {
        self.made.saturating_sub(self.doomed)
    }

    /// How many of those were not.
    pub const fn lost(&self) -> u64 {
        self.answerable().saturating_sub(self.answered)
    }
}

impl Laws {
    /// Adds others to these.
    pub fn add(&mut self, other: &Self) {
        let Self {
            calls,
            refused_by_rule,
            set_up,
            losses_told,
            unwarned,
            notices_missed,
            strangers,
            strangers_killed,
            locks,
            two_at_once,
            saves,
            saves_lost,
        } = other;
        self.calls += calls;
        self.refused_by_rule += refused_by_rule;
        self.set_up += set_up;
        self.losses_told += losses_told;
        self.unwarned += unwarned;
        self.notices_missed += notices_missed;
        self.strangers += strangers;
        self.strangers_killed += strangers_killed;
        self.locks += locks;
        self.two_at_once += two_at_once;
        self.saves += saves;
        self.saves_lost += saves_lost;
    }

    /// Whether no server was of that kind.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Provable {
    /// Adds others to these.
    pub fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.recovered += other.recovered;
    }
}

impl Target {
    /// Whether this is the same one, set up in the same way.
    fn is(&self, other: &Self) -> bool {
        (&self.name, &self.version, &self.settings) == (&other.name, &other.version, &other.settings)
    }
}

impl Row {
    /// Whether no instance of the target could be started for it.
    pub fn could_not_start(&self) -> bool {
        self.skipped.is_none() && self.runs == 0
    }

    /// What was found when it was started.
    pub fn why_not_started(&self) -> &str {
        self.findings.first().map_or("no reason was written down", String::as_str)
    }
}

impl Results {
    /// Adds targets and rows that were drilled apart, if that was done in the same way.
    ///
    /// # Errors
    /// If it was not, and what differs.
    pub fn join(&mut self, other: Self) -> Result<(), &'static str> {
        for (what, same) in [
            ("the version of linetender", self.linetender == other.linetender),
            ("the machine", self.machine == other.machine),
            ("the seed", self.seed == other.seed),
            ("the policy", self.policy == other.policy),
        ] {
            if !same {
                return Err(what);
            }
        }
        for target in other.targets {
            let own = self.targets.iter_mut().find(|own| own.is(&target));
            match own {
                Some(own) => own.rows.extend(target.rows),
                None => self.targets.push(target),
            }
        }
        self.fleet = self.fleet.take().or(other.fleet);
        Ok(())
    }

    /// How many instances ran at once, and with which slack: rows that were drilled apart may differ.
    pub fn pace(&self) -> String {
        let mut paces: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for row in self.played() {
            let pace = format!("{} at once, bounds × {}", row.at_once, row.slack);
            paces.entry(pace).or_default().insert(&row.row);
        }
        let named = |(pace, rows): (String, BTreeSet<&str>)| {
            format!("{pace} ({})", rows.into_iter().collect::<Vec<_>>().join(", "))
        };
        // The largest group needs no names.
        let most = paces.values().map(BTreeSet::len).max();
        let (main, rest): (Vec<_>, Vec<_>) =
            paces.into_iter().partition(|(_, rows)| Some(rows.len()) == most);
        main.into_iter()
            .map(|(pace, _)| pace)
            .chain(rest.into_iter().map(named))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Every row that was played.
    fn played(&self) -> impl Iterator<Item = &Row> {
        self.targets.iter().flat_map(|target| &target.rows).filter(|row| row.skipped.is_none())
    }

    /// Whether any row was played at all.
    pub fn is_empty(&self) -> bool {
        self.played().next().is_none()
    }

    /// Whether every target kept every row that was played. Where none was, nothing was shown.
    pub fn kept(&self) -> bool {
        !self.is_empty() && self.played().all(|row| row.kept)
    }
}

impl fmt::Display for Laws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            calls, refused_by_rule, set_up, losses_told, notices_missed, strangers, locks, saves, ..
        } = self;
        let per_thousand = |part: u64| {
            let tenths = part * 10_000 / (*calls).max(1);
            format!("{}.{}", tenths / 10, tenths % 10)
        };
        write!(
            f,
            "servers with a memory, daemons, a lock or work to save: {calls} calls, of which {} per 1,000 were refused by the rule of \
             contexts; {set_up} contexts set up and {losses_told} replies that told of a loss; {notices_missed} calls on a fresh \
             context after their agent had given up a call whose reply may have told it; {strangers} daemons, {locks} locks, {saves} \
             saves",
            per_thousand(*refused_by_rule),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Results, Row, Target};

    fn results(rows: &[(&str, usize, f64)]) -> Results {
        let row = |(row, at_once, slack): &(&str, usize, f64)| Row {
            row: (*row).to_owned(),
            at_once: *at_once,
            slack: *slack,
            ..Row::default()
        };
        let target =
            Target { name: "mine".to_owned(), rows: rows.iter().map(row).collect(), ..Target::default() };
        Results { targets: vec![target], ..Results::default() }
    }

    #[test]
    fn rows_of_one_target_that_were_drilled_apart_stand_together() {
        let mut all = results(&[("S05", 4, 3.0), ("S11", 4, 3.0)]);
        all.join(results(&[("S26", 90, 3.0)])).unwrap();
        let names: Vec<_> = all.targets.iter().map(|one| (&*one.name, one.rows.len())).collect();
        assert_eq!(names, [("mine", 3)]);
        assert_eq!(all.pace(), "4 at once, bounds × 3; 90 at once, bounds × 3 (S26)");
        let other = Results { seed: 7, ..results(&[("S09", 1, 1.0)]) };
        assert_eq!(all.join(other), Err("the seed"));
    }
}

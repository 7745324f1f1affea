//! Ten thousand faults of a mix against one target, and a verdict.
//!
//! An instance lives through a block of faults of one scenario, because state that accumulates is what a soak looks for;
//! several instances live at once, because a machine that is busy is.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use linetender_badserver::process::Own;
use serde::{Serialize, Serializer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::mix::{Block, Mix};
use super::{Habits, Job, Plan, Target, blank, play_block, skipped};
use crate::dice::Dice;
use crate::figures::share;
use crate::results::{Calls, Laws, Provable, Row};
use crate::scenario::Scenario;

/// Faults that are laid out at a time, where the time says when it is enough.
const PASS: u32 = 1000;

/// What chance is asked for habits with: they are drawn apart from the faults.
const HABITS: u64 = 1;

/// The most findings that are told.
const FINDINGS: usize = 50;

/// How long what the library had may take to be as it was: idle connections are kept for three seconds.
const SETTLES: Duration = Duration::from_secs(10);

/// What is counted of this process, as in [`Verdict::own`].
const OWN: [&str; 3] = ["descriptors", "tasks", "processes"];

/// When it is enough.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Enough {
    /// After so many faults.
    Faults(u32),
    /// After this long.
    Time(Duration),
}

/// Where it stands.
#[derive(Clone, Debug, Default)]
pub struct Soak {
    /// Faults so far.
    pub faults: u64,
    /// Calls so far.
    pub calls: u64,
    /// What must not be, so far.
    pub findings: usize,
    /// What was found just now: a long run may not live to tell it.
    pub found: Vec<String>,
    /// How long it has taken.
    pub took: Duration,
}

/// What it came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Who was drilled.
    pub target: String,
    /// What chance began with.
    pub seed: u64,
    /// How many faults were played.
    pub faults: u64,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
    /// By scenario and era.
    pub rows: Vec<Row>,
    /// What must not be, each with the command that plays it again.
    pub findings: Vec<String>,
    /// What was left out, and why.
    pub missing: Vec<String>,
    /// Descriptors, tasks and processes of this process, before and after: what a leak in the library would show in.
    pub own: [(usize, usize); 3],
}

fn seconds<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64())
}

/// Soaks a target; `step` hears of each block that is over.
///
/// # Errors
/// If the mix cannot be read.
pub async fn soak(
    plan: &Plan,
    name: &str,
    target: &Target,
    enough: Enough,
    step: impl Fn(&Soak),
) -> Result<Verdict, String> {
    let mix = Mix::faults()?;
    let mut verdict = Verdict { target: target.name().to_owned(), seed: plan.seed, ..Verdict::default() };
    let eras = |scenario: &Scenario| scenario.server.eras.clone();
    verdict.rows = mix
        .rows
        .iter()
        .flat_map(|(scenario, _)| eras(scenario).into_iter().map(|era| blank(plan, scenario, era)))
        .collect();
    let course = Course {
        plan: Arc::new(plan.clone()),
        name,
        target: Arc::new(target.clone()),
        scenarios: mix.rows.iter().map(|(scenario, _)| Arc::new(scenario.clone())).collect(),
        enough,
        begun: Instant::now(),
    };
    let before = Own::look();
    let mut pass = 0;
    while !course.is_enough(pass) {
        let faults = match enough {
            Enough::Faults(faults) => faults,
            Enough::Time(_) => PASS,
        };
        verdict.play(&course, mix.blocks(faults, plan.seed.wrapping_add(pass)), &step).await?;
        pass += 1;
    }
    verdict.took = course.begun.elapsed();
    verdict.leaks(before).await;
    Ok(verdict)
}

/// What does not change in the course of it.
struct Course<'a> {
    plan: Arc<Plan>,
    name: &'a str,
    target: Arc<Target>,
    scenarios: Vec<Arc<Scenario>>,
    enough: Enough,
    begun: Instant,
}

impl Course<'_> {
    fn is_enough(&self, passes: u64) -> bool {
        match self.enough {
            Enough::Faults(_) => passes > 0,
            Enough::Time(time) => self.begun.elapsed() >= time,
        }
    }

    /// What the server of a block has besides its tools.
    fn habits(&self, block: Block) -> Habits {
        if !self.target.keeps_habits() {
            return Habits::default();
        }
        let scenario = &self.scenarios[block.row];
        let drawn = || Habits::draw(scenario, &self.target, &mut Dice::for_one(block.seed, HABITS));
        self.plan.habits.map_or_else(drawn, |asked| asked.fitting(scenario, &self.target))
    }

    /// The command that plays a block again.
    fn again(&self, block: Block, habits: Habits, row: &Row) -> String {
        let (name, Plan { slack, policy, .. }) = (self.name, &*self.plan);
        format!(
            "again: linetender drill run --scenario {} --era {} --target {name} --times {} --seed {} --slack {slack} --policy {} --habits {habits}",
            row.row,
            row.era,
            block.faults,
            block.seed,
            policy.word()
        )
    }
}

impl Verdict {
    /// Plays blocks, several at once.
    async fn play(
        &mut self,
        course: &Course<'_>,
        blocks: Vec<Block>,
        step: &impl Fn(&Soak),
    ) -> Result<(), String> {
        let turns = Arc::new(Semaphore::new(course.plan.jobs.max(1)));
        let (enough, begun) = (course.enough, course.begun);
        let mut playing = JoinSet::new();
        for block in blocks {
            let scenario = Arc::clone(&course.scenarios[block.row]);
            if let Some(why) = skipped(&course.plan, &course.target, &scenario, block.era) {
                let missing = format!("{}: {why}", scenario.name);
                if !self.missing.contains(&missing) {
                    self.missing.push(missing);
                }
                if let Some(row) = self.row(&scenario.name, block.era.word()) {
                    row.skipped = Some(why);
                }
                continue;
            }
            let habits = course.habits(block);
            let (plan, target, turns) =
                (Arc::clone(&course.plan), Arc::clone(&course.target), Arc::clone(&turns));
            playing.spawn(async move {
                let _turn = turns.acquire_owned().await;
                let mut row = blank(&plan, &scenario, block.era);
                if !matches!(enough, Enough::Time(time) if begun.elapsed() >= time) {
                    let job = Job { target: 0, scenario, era: block.era, habits };
                    let mut dice = Dice::new(block.seed);
                    play_block(&plan, &target, &job, block.faults, &mut dice, &mut row).await;
                }
                (block, row)
            });
        }
        while let Some(played) = playing.join_next().await {
            let (block, row) = played.map_err(|error| error.to_string())?;
            let known = self.findings.len();
            self.add(course, block, row);
            step(&Soak {
                faults: self.faults,
                calls: self.rows.iter().map(|row| row.calls.made).sum(),
                findings: self.findings.len(),
                found: self.findings[known..].to_vec(),
                took: begun.elapsed(),
            });
        }
        Ok(())
    }

    fn add(&mut self, course: &Course<'_>, block: Block, row: Row) {
        self.faults += u64::from(row.runs);
        let again = course.again(block, course.habits(block), &row);
        for finding in &row.findings {
            if self.findings.len() < FINDINGS {
                self.findings.push(format!("{} ({}): {finding}; {again}", row.row, row.era));
            }
        }
        let Some(sum) = self.row(&row.row, &row.era) else { return };
        sum.runs += row.runs;
        sum.calls.add(&row.calls);
        sum.provable.add(row.provable);
        sum.not_run.add(row.not_run);
        sum.told_ms.extend(row.told_ms);
        sum.back_ms.extend(row.back_ms);
        sum.orphans += row.orphans;
        sum.laws.add(&row.laws);
        sum.reconnects += row.reconnects;
        sum.findings.extend(row.findings);
        sum.kept = sum.findings.is_empty();
    }

    /// The sum of what a scenario came to in an era.
    fn row(&mut self, name: &str, era: &str) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.row == name && row.era == era)
    }

    /// This process has what it had. It is the library's, when that is the target; otherwise the drill's own.
    async fn leaks(&mut self, before: Own) {
        let settled = Instant::now() + SETTLES;
        let pairs = |after: Own| {
            [
                (before.descriptors, after.descriptors),
                (before.tasks, after.tasks),
                (before.processes, after.processes),
            ]
        };
        self.own = pairs(Own::look());
        while self.own.iter().any(|(before, after)| after > before) && Instant::now() < settled {
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.own = pairs(Own::look());
        }
        for (what, (before, after)) in OWN.into_iter().zip(self.own) {
            if after > before {
                self.findings.push(linetender_badserver::Finding::Leak { what, before, after }.to_string());
            }
        }
    }

    /// All calls.
    pub fn calls(&self) -> Calls {
        let mut sum = Calls::default();
        self.rows.iter().for_each(|row| sum.add(&row.calls));
        sum
    }

    /// All calls that lay unread, so that linetender can count that they did not run.
    pub fn provable(&self) -> Provable {
        let mut sum = Provable::default();
        self.rows.iter().for_each(|row| sum.add(row.provable));
        sum
    }

    /// All calls that did not run when they first reached their server, whoever says so.
    pub fn not_run(&self) -> Provable {
        let mut sum = Provable::default();
        self.rows.iter().for_each(|row| sum.add(row.not_run));
        sum
    }

    /// What came of servers that keep something, start something or hold something.
    pub fn laws(&self) -> Laws {
        let mut sum = Laws::default();
        self.rows.iter().for_each(|row| sum.add(&row.laws));
        sum
    }

    /// Whether nothing was found. Where no fault was played, nothing was shown.
    pub fn kept(&self) -> bool {
        self.faults > 0 && self.findings.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, seed, faults, took, .. } = self;
        for missing in &self.missing {
            writeln!(f, "left out: {missing}")?;
        }
        let (calls, provable, not_run) = (self.calls(), self.provable(), self.not_run());
        let scenarios: BTreeSet<_> =
            self.rows.iter().filter(|row| row.runs > 0).map(|row| &row.row).collect();
        let back: Vec<_> = self.rows.iter().flat_map(|row| &row.back_ms).flatten().copied().collect();
        writeln!(
            f,
            "{target}, seed {seed}: {faults} faults of {} scenarios in {} s, {} calls ({} answered, {} not executed, {} refused, {} unknown)",
            scenarios.len(),
            took.as_secs(),
            calls.made,
            calls.answered,
            calls.not_executed,
            calls.refused,
            calls.unknown,
        )?;
        let own =
            OWN.iter().zip(self.own).map(|(what, (before, after))| format!("{what} {before} and {after}"));
        writeln!(
            f,
            "back after p50 {:.0} ms, p99 {:.0} ms; recovered unseen: {} of {} calls that linetender can count as not run, {} of {} that did not \
             run; of the drill before and after: {}",
            share(&back, 0.5),
            share(&back, 0.99),
            provable.recovered,
            provable.calls,
            not_run.recovered,
            not_run.calls,
            own.collect::<Vec<_>>().join(", "),
        )?;
        writeln!(
            f,
            "{} of {} calls ran again since their server ran them and then said that it had not, against MCP's own rule",
            calls.ran_again_by_refusal, calls.made,
        )?;
        let laws = self.laws();
        if !laws.is_empty() {
            writeln!(f, "{laws}")?;
        }
        for finding in &self.findings {
            writeln!(f, "BROKEN: {finding}")?;
        }
        let orphans: u32 = self.rows.iter().map(|row| row.orphans).sum();
        write!(
            f,
            "{}: {} hung, {} run twice otherwise, {} wrong verdicts, {} unexplained, {} empty errors, {orphans} orphans, \
             {} on a fresh context without notice, {} strangers killed, {} two at once, {} saves lost",
            match (self.kept(), self.faults) {
                (true, _) => "KEPT",
                (false, 0) => "NOTHING PLAYED",
                (false, _) => "BROKEN",
            },
            calls.hung,
            calls.ran_twice,
            calls.wrong,
            calls.unexplained,
            calls.empty,
            laws.unwarned,
            laws.strangers_killed,
            laws.two_at_once,
            laws.saves_lost,
        )
    }
}

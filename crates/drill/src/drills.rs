//! The drill: scenarios against targets, judged by the servers' own books.
//!
//! Everything here is outside of the target, be it our library, our programs or somebody else's: a server whose book
//! cannot lie behind it, an agent that never helps before it, and a fault between. One [`run`] plays each scenario a few
//! times; a [`soak`] draws ten thousand faults from a written-down [mix](Mix).

mod act;
mod agent;
mod habits;
mod judge;
mod machine;
mod memory;
mod mix;
mod play;
mod policy;
mod ports;
mod remains;
mod reports;
mod server;
mod soak;
mod stage;
mod suite;
pub(crate) mod system;
mod target;

use std::path::PathBuf;
use std::sync::Arc;

use linetender_badserver::Finding;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::dice::Dice;
use crate::results::{FORMAT, Results, Row, Timeline};
use crate::scenario::{Era, Scenario, Times};
use remains::Remains;
use stage::Stage;

pub use habits::Habits;
pub use machine::today;
pub use mix::Mix;
pub use policy::Policy;
pub use soak::{Enough, Soak, Verdict, soak};
pub use suite::{Pick, Suite};
pub use target::Target;

/// How many instances are being started at once.
static STARTS: Semaphore = Semaphore::const_new(8);

/// The row whose first run is told moment by moment.
const TOLD: &str = "S05";

/// So many runs of a row that never came back say it all; each takes as long as one waits.
const ENOUGH: usize = 3;

/// Why a row is not played with times that are not the drill's.
const HURRIED: &str = "its bounds are for the drill's times";

/// Why a row is not played with the drill's times.
const UNHURRIED: &str = "its times are for the default policy";

/// How a drill is done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// This program, which is the servers, the shim and the gateway too.
    pub linetender: PathBuf,
    /// The times of our own targets.
    pub policy: Policy,
    /// What chance begins with.
    pub seed: u64,
    /// How many times longer than a row says things may take.
    pub slack: f64,
    /// How many instances at once.
    pub jobs: usize,
    /// How often each scenario is played.
    pub times: u32,
    /// What the servers have besides their tools. If `None`, nothing; a soak draws it.
    pub habits: Option<Habits>,
}

/// One that is over.
#[derive(Debug)]
pub struct Step<'a> {
    /// Rows that are over, this one included.
    pub done: usize,
    /// All of them.
    pub of: usize,
    /// Whose.
    pub target: &'a str,
    /// The row.
    pub row: &'a Row,
}

/// A row to be played.
#[derive(Clone)]
struct Job {
    target: usize,
    scenario: Arc<Scenario>,
    era: Era,
    habits: Habits,
}

/// Plays scenarios against targets. `step` hears of each row that is over.
///
/// # Errors
/// If the drill itself breaks.
pub async fn run(
    plan: &Plan,
    targets: &[Target],
    scenarios: Vec<Scenario>,
    step: impl Fn(&Step<'_>),
) -> Result<Results, String> {
    let jobs = jobs(targets, scenarios, plan.habits.unwrap_or_default());
    let (plan, shared) = (Arc::new(plan.clone()), Arc::new(targets.to_vec()));
    let turns = Arc::new(Semaphore::new(plan.jobs.max(1)));
    let mut playing = JoinSet::new();
    for (place, job) in jobs.iter().cloned().enumerate() {
        let (plan, targets, turns) = (Arc::clone(&plan), Arc::clone(&shared), Arc::clone(&turns));
        playing.spawn(async move {
            let _turn = turns.acquire_owned().await;
            (place, play_row(&plan, &targets[job.target], &job).await)
        });
    }
    let mut rows: Vec<Option<(Row, Option<Timeline>)>> = vec![None; jobs.len()];
    let mut done = 0;
    while let Some(played) = playing.join_next().await {
        let (place, (row, timeline)) = played.map_err(|error| error.to_string())?;
        done += 1;
        step(&Step { done, of: jobs.len(), target: targets[jobs[place].target].name(), row: &row });
        rows[place] = Some((row, timeline));
    }
    let mut results = head(&plan);
    results.targets = targets.iter().map(|target| target.page(plan.policy)).collect();
    for (job, (row, timeline)) in jobs.iter().zip(rows.into_iter().flatten()) {
        let target = &mut results.targets[job.target];
        target.rows.push(row);
        if target.timeline.is_none() {
            target.timeline = timeline;
        }
    }
    Ok(results)
}

/// Who played when, and how.
fn head(plan: &Plan) -> Results {
    Results {
        format: FORMAT,
        linetender: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine::describe(),
        date: today(),
        seed: plan.seed,
        policy: plan.policy.word().to_owned(),
        targets: Vec::new(),
        fleet: None,
    }
}

fn jobs(targets: &[Target], scenarios: Vec<Scenario>, habits: Habits) -> Vec<Job> {
    let scenarios: Vec<_> = scenarios.into_iter().map(Arc::new).collect();
    let mut jobs = Vec::new();
    for (target, behind) in targets.iter().enumerate() {
        for scenario in &scenarios {
            // What is not played at all is said once.
            let eras =
                if scenario.skip.is_some() { &scenario.server.eras[..1] } else { &scenario.server.eras };
            let habits = habits.fitting(scenario, behind);
            let job = |era: &Era| Job { target, scenario: Arc::clone(scenario), era: *era, habits };
            jobs.extend(eras.iter().map(job));
        }
    }
    jobs
}

/// A row without runs.
fn blank(plan: &Plan, scenario: &Scenario, era: Era) -> Row {
    Row {
        row: scenario.name.clone(),
        title: scenario.title.clone(),
        over: scenario.server.over.word().to_owned(),
        server: scenario.server.kind.word().to_owned(),
        era: era.word().to_owned(),
        promises: scenario.promises.clone(),
        at_once: plan.jobs,
        slack: plan.slack,
        ..Row::default()
    }
}

/// Why a scenario is not played against a target here. What is hurried is left out for everybody, or a board would compare
/// different rows.
fn skipped(plan: &Plan, target: &Target, scenario: &Scenario, era: Era) -> Option<String> {
    let hurried = scenario.times == Times::Drill && !plan.policy.hurries();
    let unhurried = scenario.times == Times::Default && plan.policy.hurries();
    scenario
        .skip
        .clone()
        .or_else(|| hurried.then(|| HURRIED.to_owned()))
        .or_else(|| unhurried.then(|| UNHURRIED.to_owned()))
        .or_else(|| target.skips(scenario, era))
        .or_else(|| server::missing(scenario))
}

async fn play_row(plan: &Plan, target: &Target, job: &Job) -> (Row, Option<Timeline>) {
    let Job { scenario, era, .. } = job;
    let mut row = blank(plan, scenario, *era);
    row.skipped = skipped(plan, target, scenario, *era);
    if row.skipped.is_some() {
        return (row, None);
    }
    let (mut timeline, mut dice) = (None, Dice::new(plan.seed));
    let at_once = if scenario.is_for_one_run() { 1 } else { plan.times };
    let times = plan.times.max(1);
    while row.runs < times && never(&row) < ENOUGH {
        let before = row.runs;
        let at_once = at_once.clamp(1, times - before);
        let told = play_block(plan, target, job, at_once, &mut dice, &mut row).await;
        timeline = timeline.or(told);
        if row.runs == before {
            break;
        }
    }
    (row, timeline.filter(|_| scenario.name == TOLD))
}

/// How many runs did not come back.
fn never(row: &Row) -> usize {
    row.back_ms.iter().filter(|back| back.is_none()).count()
}

/// Some runs of a scenario on one instance, added to its row. The first of them, moment by moment.
async fn play_block(
    plan: &Plan,
    target: &Target,
    job: &Job,
    runs: u32,
    dice: &mut Dice,
    row: &mut Row,
) -> Option<Timeline> {
    // However many play at once, they are not all started in one moment: whoever starts slowly would be called broken.
    let starting = STARTS.acquire().await;
    let set = Stage::set(plan, target, job).await;
    drop(starting);
    let mut stage = match set {
        Ok(stage) => stage,
        Err(found) => {
            row.findings.push(found);
            row.kept = false;
            return None;
        }
    };
    let (mut timeline, mut had) = (None, None);
    let had_run_twice = row.calls.ran_twice;
    let believed = target.believes(plan.policy);
    for _ in 0..runs {
        let number = row.runs;
        let mut run = play::play(&job.scenario, &mut stage, number, plan.slack, believed, dice).await;
        let events = std::mem::take(&mut run.events);
        timeline.get_or_insert(Timeline { row: job.scenario.name.clone(), events });
        judge::judge(row, &job.scenario, run, stage.server.book.as_ref(), believed);
        had.get_or_insert_with(|| stage.has());
        // What is dead cannot die again: the next run gets an instance that works.
        if row.back_ms.last() == Some(&None) {
            break;
        }
    }
    // A target that ended has others than it had.
    if let Some(had) = had.filter(|_| runs > 1 && target.is_ours() && !job.scenario.fault.ends_target()) {
        row.findings.extend(stage.grew(had).await);
    }
    end_block(target, job, stage, row, had_run_twice, believed).await;
    timeline
}

/// The end of an instance: what it left, and what the agent had to do by itself. So many calls had run twice before it began.
async fn end_block(
    target: &Target,
    job: &Job,
    stage: Stage,
    row: &mut Row,
    had_run_twice: u64,
    believed: &[&str],
) {
    let reconnects = stage.reconnects + stage.agent.reconnects();
    row.reconnects += reconnects;
    let log = stage.log();
    let works = row.back_ms.last().is_some_and(Option::is_some);
    let Remains { orphans, twice, findings, laws } = stage.strike(believed, works).await;
    row.orphans += orphans;
    row.laws.add(&laws);
    // Some of them came after their run was judged.
    row.calls.ran_twice = row.calls.ran_twice.max(had_run_twice + twice.len() as u64);
    // What its own run has told need not be told twice.
    let untold = twice.iter().map(Finding::to_string);
    let untold = untold.filter(|found| !row.findings.iter().any(|known| known.ends_with(found)));
    let untold: Vec<_> = untold.chain(findings).collect();
    row.findings.extend(untold);
    if target.is_ours() && reconnects > 0 && !job.scenario.fault.ends_target() {
        row.findings.push(format!("the agent had to connect anew {reconnects} times"));
    }
    if log.contains("panicked") {
        row.findings.push("the target's log has a panic".to_owned());
    }
    row.kept = row.findings.is_empty();
}

#[cfg(test)]
mod tests {
    use super::{HURRIED, Pick, Plan, Policy, Suite, Target, skipped};
    use crate::scenario::Era;

    #[test]
    fn rows_for_the_drills_times_are_played_by_nobody_with_others() {
        let bare = concat!(env!("CARGO_MANIFEST_DIR"), "/adapters/peers/bare.toml");
        let plan = |policy| Plan {
            linetender: "linetender".into(),
            policy,
            seed: 1,
            slack: 1.0,
            jobs: 1,
            times: 1,
            habits: None,
        };
        for target in ["line", "shim", "gateway", bare].map(|name| Target::find(name).unwrap()) {
            let left_out = |policy| {
                let mut all = Suite::Board.scenarios(&Pick::default()).unwrap();
                all.retain(|one| {
                    skipped(&plan(policy), &target, one, Era::Legacy).as_deref() == Some(HURRIED)
                });
                all.into_iter().map(|one| one.name).collect::<Vec<_>>()
            };
            assert_eq!(left_out(Policy::Default), ["S09", "H02b"], "{}", target.name());
            assert_eq!(left_out(Policy::Drill), [""; 0], "{}", target.name());
        }
    }
}

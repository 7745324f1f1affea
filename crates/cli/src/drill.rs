//! `linetender drill`: proves the promises, against us and against anybody else.

mod args;
mod bench;
#[cfg(unix)]
mod fleet;
#[cfg(windows)]
#[path = "drill/no_fleet.rs"]
mod fleet;
mod list;
mod number;
mod page;
mod progress;
mod report;
mod soaks;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linetender_drill::drills::{self, Enough, Pick, Plan, Suite, Target, Verdict};
use serde::Serialize;

pub(crate) use args::Drill;
use args::{DrillCommand, How, RunArgs, SoakArgs};
use progress::Progress;

/// What the shell says of a command that cannot be understood.
const MISUSED: u8 = 2;

/// How many times longer than a row says things may take, if not said: in a run, and in a soak.
const SLACK: [f64; 2] = [1.0, 20.0];

/// An hour, in seconds.
const HOUR: f64 = 3600.0;

pub(crate) fn drill(drill: &Drill) -> ExitCode {
    let done = match &drill.command {
        DrillCommand::Run(args) => run(args),
        DrillCommand::Soak(args) => args.named.as_ref().map_or_else(|| soak(args), soaks::Named::run),
        DrillCommand::List(args) => list::list(args),
        DrillCommand::Page(args) => page::page(args),
        DrillCommand::Bench(bench) => bench.run(),
        DrillCommand::Fleet(fleet) => fleet.run(),
    };
    done.unwrap_or_else(|sentence| {
        eprintln!("linetender: {sentence}");
        ExitCode::from(MISUSED)
    })
}

fn run(args: &RunArgs) -> Result<ExitCode, String> {
    let targets = args.target.iter().map(|name| Target::find(name)).collect::<Result<Vec<_>, _>>()?;
    let pick =
        Pick { rows: args.row.clone(), scenarios: args.scenario.clone(), era: args.era.map(Into::into) };
    let scenarios = Suite::from(args.suite).scenarios(&pick)?;
    let plan = plan(&args.how, args.times, SLACK[0])?;
    let progress = Progress::new();
    let results = runtime()?.block_on(drills::run(&plan, &targets, scenarios, |step| progress.row(step)))?;
    progress.end();
    if let Some(file) = &args.how.json {
        write(file, &results)?;
    }
    report::print(&results, is_stdout(args.how.json.as_deref()));
    Ok(if results.kept() || args.report_only { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn soak(args: &SoakArgs) -> Result<ExitCode, String> {
    let enough = match args.hours {
        Some(hours) => Enough::Time(std::time::Duration::from_secs_f64(hours * HOUR)),
        None => Enough::Faults(args.faults),
    };
    let plan = plan(&args.how, 1, SLACK[1])?;
    let (mut verdicts, runtime) = (Vec::new(), runtime()?);
    for name in &args.target {
        let target = Target::find(name)?;
        let progress = Progress::new();
        let soaked =
            drills::soak(&plan, name, &target, enough, |stand| progress.soak(target.name(), stand, enough));
        let verdict = runtime.block_on(soaked)?;
        progress.end();
        report::print_soak(&verdict, is_stdout(args.how.json.as_deref()));
        verdicts.push(verdict);
    }
    if let Some(file) = &args.how.json {
        write(file, &verdicts)?;
    }
    Ok(if verdicts.iter().all(Verdict::kept) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(how: &How, times: u32, slack: f64) -> Result<Plan, String> {
    Ok(Plan {
        linetender: ourselves()?,
        policy: how.policy.into(),
        seed: how.seed.unwrap_or_else(seed),
        slack: how.slack.unwrap_or(slack),
        jobs: how.jobs.into(),
        times,
        habits: how.habits,
    })
}

/// The seed is by the clock, unless it is given; it is printed either way.
#[expect(clippy::disallowed_methods, reason = "a seed that differs from run to run")]
fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs())
}

fn ourselves() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("cannot find the linetender executable: {error}"))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot start: {error}"))
}

/// What is for a program goes where the program looks, and the table elsewhere.
fn is_stdout(json: Option<&Path>) -> bool {
    json == Some(Path::new("-"))
}

fn write(file: &Path, results: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(results).map_err(|error| error.to_string())?;
    if file == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))
}

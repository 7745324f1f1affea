//! What can be typed after `linetender drill`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use linetender_drill::{drills, scenario};

use super::number;

const TARGETS: &str = "\
Targets: `line` (the library, in this process), `shim` (linetender run), `gateway` (linetender serve), or the \
path of an adapter file, which describes anything that stands between an agent and a server:

  name = \"my gateway\"

  # In front of a server that is a command. Without a url, the agent speaks on its pipes.
  [stdio]
  command = [\"my-gateway\", \"--port\", \"{port}\", \"--\", \"{server...}\"]
  url = \"http://127.0.0.1:{port}/mcp\"

  # In front of a server at an address. Leave out what it cannot do.
  [http]
  command = [\"my-gateway\", \"--port\", \"{port}\", \"{server_url}\"]
  url = \"http://127.0.0.1:{port}/mcp\"

  linetender drill run --suite board --target my-gateway.toml

docs/drill.md has the whole format, and how rows are judged.";

/// Proves that nothing hangs, nothing runs twice and everything comes back: against linetender, or against your own gateway.
///
/// A server that misbehaves on purpose and writes down what it really did stands behind the target, an agent that never
/// helps stands before it, and a fault happens between them.
#[derive(Debug, clap::Args)]
#[command(after_help = TARGETS)]
pub(crate) struct Drill {
    #[command(subcommand)]
    pub(crate) command: DrillCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DrillCommand {
    Run(RunArgs),
    Soak(SoakArgs),
    List(ListArgs),
    Page(super::page::Page),
    Bench(super::bench::Bench),
}

/// Plays scenarios against targets, and prints what came of each.
///
/// The exit code says whether every target kept every row.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender drill run                                     all promises, all three doors of linetender\n  \
    linetender drill run --row S05 --target shim --times 20  one row, twenty times on one instance\n  \
    linetender drill run --suite board --target mine.toml    your own gateway\n  \
    linetender drill run --json - --report-only              for a program\n\n", TARGETS].concat())]
pub(crate) struct RunArgs {
    /// Which scenarios.
    #[arg(long, value_name = "SUITE", value_enum, default_value_t)]
    pub(super) suite: SuiteFlag,

    /// Of the suite, only this row of the fault catalogue with all its scenarios, or this scenario; can be given more than once.
    #[arg(long, value_name = "ROW")]
    pub(super) row: Vec<String>,

    /// Of the suite, only the scenario of exactly this name; can be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(super) scenario: Vec<String>,

    /// Only with agents of this era.
    #[arg(long, value_name = "ERA", value_enum)]
    pub(super) era: Option<EraFlag>,

    /// Who is drilled; can be given more than once.
    #[arg(long, value_name = "TARGET", default_values = ["line", "shim", "gateway"])]
    pub(super) target: Vec<String>,

    /// How often each scenario is played, on one instance.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) times: u32,

    #[command(flatten)]
    pub(super) how: How,

    /// Succeeds whatever came of it: for boards.
    #[arg(long)]
    pub(super) report_only: bool,
}

/// Draws faults from a written-down mix, thousands of them, and ends with a verdict; or does one thing at length.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    linetender drill soak --target shim --faults 10000\n  \
    linetender drill soak --target gateway --hours 8 --seed 7\n  \
    linetender drill soak --target line --faults 10000 --policy default\n  \
    linetender drill soak --json verdicts.json               all three doors, one after the other\n  \
    linetender drill soak cycles 10000                       a server killed under calls"
)]
pub(crate) struct SoakArgs {
    #[command(subcommand)]
    pub(super) named: Option<super::soaks::Named>,

    /// Who is drilled; can be given more than once.
    #[arg(long, value_name = "TARGET", default_values = ["line", "shim", "gateway"])]
    pub(super) target: Vec<String>,

    /// How many faults.
    #[arg(long, value_name = "N", default_value = "10000", conflicts_with = "hours", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) faults: u32,

    /// How long, instead.
    #[arg(long, value_name = "HOURS", value_parser = number::above_zero)]
    pub(super) hours: Option<f64>,

    #[command(flatten)]
    pub(super) how: How,
}

/// How it is done.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// What chance begins with; by the clock, if not said.
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// How many times longer than a row says things may take, for machines that are busy: 1 if not said, and 20 in a soak, which
    /// keeps its machine busy. Figures are as measured.
    #[arg(long, value_name = "FACTOR", value_parser = number::above_zero)]
    pub(super) slack: Option<f64>,

    /// How many instances at once. One, if figures are to be compared.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: u16,

    /// Writes what came of it to this file, for programs; `-` is stdout.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// The times of linetender's own targets.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub(super) policy: PolicyFlag,
}

/// Lists the scenarios: their rows, what happens in them, which promises they are about, and which are not played.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Which scenarios.
    #[arg(long, value_name = "SUITE", value_enum, default_value_t)]
    pub(super) suite: SuiteFlag,
}

/// Which scenarios.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SuiteFlag {
    /// All of them.
    #[default]
    Promises,
    /// Those that any shim or gateway could pass.
    Board,
    /// Those of them in which the server hangs, with --policy default: minutes each.
    Hangs,
}

/// The times of linetender's own targets.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum PolicyFlag {
    /// A tenth of the defaults.
    #[default]
    Drill,
    /// As they come.
    Default,
}

/// Which era an agent speaks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EraFlag {
    /// 2025-11-25 and before.
    Legacy,
    /// 2026-07-28.
    Modern,
}

impl From<EraFlag> for scenario::Era {
    fn from(flag: EraFlag) -> Self {
        match flag {
            EraFlag::Legacy => Self::Legacy,
            EraFlag::Modern => Self::Modern,
        }
    }
}

impl From<SuiteFlag> for drills::Suite {
    fn from(flag: SuiteFlag) -> Self {
        match flag {
            SuiteFlag::Promises => Self::Promises,
            SuiteFlag::Board => Self::Board,
            SuiteFlag::Hangs => Self::Hangs,
        }
    }
}

impl From<PolicyFlag> for drills::Policy {
    fn from(flag: PolicyFlag) -> Self {
        match flag {
            PolicyFlag::Drill => Self::Drill,
            PolicyFlag::Default => Self::Default,
        }
    }
}

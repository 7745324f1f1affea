//! What can be typed after `linetender drill`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use linetender_drill::{drills, scenario};

use super::number;

const TARGETS: &str = "\
Targets: `line` (the library, in this process), `shim` (linetender run), `gateway` (linetender serve), or the \
path of an adapter file, which describes any other shim or gateway:

  name = \"my gateway\"

  # In front of a stdio server. Without url, the agent connects over stdio.
  [stdio]
  command = [\"my-gateway\", \"--port\", \"{port}\", \"--\", \"{server...}\"]
  url = \"http://127.0.0.1:{port}/mcp\"

  # In front of an HTTP server. Omit the section that the gateway does not support.
  [http]
  command = [\"my-gateway\", \"--port\", \"{port}\", \"{server_url}\"]
  url = \"http://127.0.0.1:{port}/mcp\"

  linetender drill run --suite board --target my-gateway.toml

docs/drill.md describes the format and how rows are judged.";

/// Fault injection: test linetender or your own gateway for hangs, duplicate execution and failed recovery.
///
/// Runs the target between a faulty server, which records what it executed, and a scripted agent, injects a fault, and
/// compares both sides.
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
    Fleet(super::fleet::Fleet),
}

/// Run fault scenarios against targets and print the results.
///
/// Exits with 0 if every target passed every row, else with 1.
#[derive(Debug, clap::Args)]
#[command(after_help = ["Examples:\n  \
    linetender drill run                                     all scenarios: library, shim and gateway\n  \
    linetender drill run --row S05 --target shim --times 20  one row, 20 times\n  \
    linetender drill run --suite board --target mine.toml    your own gateway\n  \
    linetender drill run --json - --report-only              JSON on stdout, exit code 0\n\n\
    Exit codes:\n  \
    0  every promise was kept\n  \
    1  one was broken\n  \
    2  it could not be run\n\n", TARGETS].concat())]
pub(crate) struct RunArgs {
    /// Set of scenarios
    #[arg(long, value_name = "SUITE", value_enum, default_value_t)]
    pub(super) suite: SuiteFlag,

    /// Only this row of the fault catalogue (all its scenarios), or this scenario; repeatable
    #[arg(long, value_name = "ROW")]
    pub(super) row: Vec<String>,

    /// Only the scenario with exactly this name; repeatable
    #[arg(long, value_name = "NAME")]
    pub(super) scenario: Vec<String>,

    /// Only agents of this MCP protocol era
    #[arg(long, value_name = "ERA", value_enum)]
    pub(super) era: Option<EraFlag>,

    /// System under test; repeatable
    #[arg(long, value_name = "TARGET", default_values = ["line", "shim", "gateway"])]
    pub(super) target: Vec<String>,

    /// Repeat each scenario N times on one instance
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) times: u32,

    #[command(flatten)]
    pub(super) how: How,

    /// Exit with 0 even if a scenario fails
    #[arg(long)]
    pub(super) report_only: bool,
}

/// Inject thousands of random faults from a fixed mix and print a verdict, or run one long test
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    linetender drill soak --target shim --faults 10000\n  \
    linetender drill soak --target gateway --hours 8 --seed 7\n  \
    linetender drill soak --target line --faults 10000 --policy default\n  \
    linetender drill soak --json verdicts.json               library, shim and gateway, one after the other\n  \
    linetender drill soak cycles 10000                       a server killed during calls"
)]
pub(crate) struct SoakArgs {
    #[command(subcommand)]
    pub(super) named: Option<super::soaks::Named>,

    /// System under test; repeatable
    #[arg(long, value_name = "TARGET", default_values = ["line", "shim", "gateway"])]
    pub(super) target: Vec<String>,

    /// Number of faults
    #[arg(long, value_name = "N", default_value = "10000", conflicts_with = "hours", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) faults: u32,

    /// Run for this many hours instead
    #[arg(long, value_name = "HOURS", value_parser = number::above_zero)]
    pub(super) hours: Option<f64>,

    #[command(flatten)]
    pub(super) how: How,
}

/// How it is done.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// Random seed [default: from the clock]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Multiply all time limits, for a busy machine [default: 1, in a soak 20]. Measurements are not scaled
    #[arg(long, value_name = "FACTOR", value_parser = number::above_zero)]
    pub(super) slack: Option<f64>,

    /// Number of parallel instances; use 1 to compare measurements
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: u16,

    /// Write the results as JSON to this file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// What linetender's servers have besides tools, such as `state=unknown,tree=server,worker=near,daemon,lock,saves`
    /// [default: `state=none`, in a soak random]
    #[arg(long, value_name = "HABITS")]
    pub(super) habits: Option<drills::Habits>,

    /// Timeouts of linetender's own targets
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub(super) policy: PolicyFlag,
}

/// List the scenarios: row, fault, promises tested, and which are skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linetender drill list --suite board\n\n\
    Exit codes:\n  \
    0  the list was printed\n  \
    2  it could not be run")]
pub(crate) struct ListArgs {
    /// Set of scenarios
    #[arg(long, value_name = "SUITE", value_enum, default_value_t)]
    pub(super) suite: SuiteFlag,
}

/// Which scenarios.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SuiteFlag {
    /// All scenarios
    #[default]
    Promises,
    /// Scenarios that any shim or gateway could pass
    Board,
    /// Scenarios of the board in which the server hangs; with --policy default, minutes each
    Hangs,
}

/// The times of linetender's own targets.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum PolicyFlag {
    /// A tenth of the default timeouts
    #[default]
    Drill,
    /// The same, with `retry_on = ["not-executed"]`
    Strict,
    /// The same, with everything in `retry_on`
    Loose,
    /// The default timeouts
    Default,
}

/// Which era an agent speaks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EraFlag {
    /// 2025-11-25 and earlier (sessions)
    Legacy,
    /// 2026-07-28 (stateless)
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
            PolicyFlag::Strict => Self::Strict,
            PolicyFlag::Loose => Self::Loose,
            PolicyFlag::Default => Self::Default,
        }
    }
}

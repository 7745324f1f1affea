//! `linetender drill soak NAME`: one thing at length, in place of the mix. Most are about lines of the library, some measure.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use linetender_drill::soak;

/// What is done, and how often or how long.
#[derive(Debug, Subcommand)]
pub(crate) enum Named {
    /// Kill a server under calls that many times, and judge the history.
    Cycles {
        count: u64,
    },
    /// Kill a process that holds 20 lines that many times; nothing may outlive it.
    Killed {
        count: usize,
    },
    /// How fast a death is noticed, and a line is back.
    Detect {
        count: usize,
    },
    /// Of the calls that a killed server never ran, how many were recovered unseen.
    Delivery {
        count: u32,
    },
    /// 50 busy lines beside one that crash-loops, and without it.
    Neighbour {
        count: usize,
    },
    /// That many lines to one server over HTTP that dies and returns.
    Herd {
        count: usize,
    },
    /// 50 agents on one line whose server is killed; nobody may hear what is another's.
    Agents {
        seconds: u64,
    },
    /// 12 agents through `linetender run --share`, that many faults of server and keeper; nobody may hear what is another's.
    Shared {
        faults: u32,
        #[arg(default_value = "2026")]
        seed: u64,
    },
    Gateway(Gateway),
    /// Packets dropped under calls; in a network namespace of its own.
    Blackhole,
    /// Hold that many lines, and wait to be killed.
    #[command(hide = true)]
    Hold {
        count: usize,
    },
    /// Hold a line to that server, and wait to be killed.
    #[command(hide = true)]
    Keep {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

/// 64 agents on ten servers through `linetender serve`, a fault a second.
#[derive(Debug, clap::Args)]
pub(crate) struct Gateway {
    /// How long there are faults.
    seconds: u64,

    /// What chance begins with; by the clock, if not said.
    seed: Option<u64>,

    /// How many agents.
    #[arg(long, value_name = "COUNT")]
    agents: Option<usize>,

    /// Agents need tokens: that many principals, each with agents of both revisions, and what of one reaches another is a finding.
    #[arg(long, value_name = "COUNT", conflicts_with = "agents", value_parser = clap::value_parser!(u16).range(2..1000))]
    principals: Option<u16>,

    /// Which binary serves; this one, if not said.
    #[arg(long, value_name = "PATH")]
    linetender: Option<PathBuf>,

    /// The ratio of p99 with and without faults is no finding: it takes a long run, and a machine that others leave alone.
    #[arg(long)]
    any_ratio: bool,

    /// The verdict for a program.
    #[arg(long)]
    json: bool,
}

impl Named {
    pub(super) fn run(&self) -> Result<ExitCode, String> {
        Ok(match self {
            Self::Cycles { count } => soak::cycles(*count),
            Self::Killed { count } => soak::killed(*count),
            Self::Detect { count } => soak::detect(*count),
            Self::Delivery { count } => soak::delivery(*count),
            Self::Neighbour { count } => soak::neighbour(*count),
            Self::Herd { count } => soak::herd(*count),
            Self::Agents { seconds } => soak::agents(*seconds),
            Self::Shared { faults, seed } => soak::shared(*faults, *seed),
            Self::Gateway(args) => args.run()?,
            Self::Blackhole => soak::blackhole(),
            Self::Hold { count } => soak::hold(*count),
            Self::Keep { command } => soak::keep(&command.iter().map(String::as_str).collect::<Vec<_>>()),
        })
    }
}

impl Gateway {
    fn run(&self) -> Result<ExitCode, String> {
        let linetender = self.linetender.clone().map_or_else(super::ourselves, Ok)?;
        let mut options = soak::Options::new(linetender, self.seconds, self.seed.unwrap_or_else(super::seed));
        options.agents = self.agents.unwrap_or(options.agents);
        options.principals = self.principals.map_or(0, usize::from);
        options.strict = !self.any_ratio;
        Ok(soak::gateway(&options, self.json))
    }
}

//! `linetender drill fleet`: three gateways, three servers of NATS, and faults of machines, networks and clocks.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use linetender_drill::fleet::{self, Options};

/// Three gateways as one fleet under agents, while gateways, NATS servers, networks and clocks fail.
///
/// Needs root, for it makes network namespaces, and haproxy, nftables and iproute2.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    linetender drill fleet                                  ten minutes\n  \
    linetender drill fleet --seconds 60 --lease 5           as CI runs it\n  \
    linetender drill fleet --only stopped --seed 7          one kind of fault\n  \
    linetender drill fleet --upgrades 20                    rolling upgrades: no call may fail\n  \
    linetender drill fleet --upgrades 4 --to old/linetender two versions at once, each way\n  \
    linetender drill fleet --without-fleet --seconds 5      must fail: each gateway has its own processes\n\n\
    Exit codes:\n  \
    0  every promise was kept\n  \
    1  one was broken\n  \
    2  it could not be run")]
pub(crate) struct Fleet {
    /// How long there are faults; the last one is played to its end
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    seconds: u64,

    /// Random seed [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// How many agents
    #[arg(long, value_name = "N", default_value = "200")]
    agents: usize,

    /// Seconds of a lease
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = clap::value_parser!(u64).range(1..3600))]
    lease: u64,

    /// Only faults with this in their name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Instead of faults, replace all gateways one after the other so many times; no call may fail
    #[arg(long, value_name = "TIMES", conflicts_with_all = ["only", "apart"])]
    upgrades: Option<u32>,

    /// With --upgrades: every other time this binary serves: another version
    #[arg(long, value_name = "PATH", requires = "upgrades")]
    to: Option<PathBuf>,

    /// Gateways that do not know each other: the drill has to fail
    #[arg(long = "without-fleet")]
    apart: bool,

    /// Which binary serves; this one, if not said
    #[arg(long, value_name = "PATH")]
    linetender: Option<PathBuf>,

    /// The nats-server
    #[arg(long, value_name = "PATH", default_value = "target/real/nats/bin/nats-server")]
    nats: PathBuf,

    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,

    /// This process is already the first in namespaces of its own.
    #[arg(long, hide = true)]
    inside: bool,
}

impl Fleet {
    pub(super) fn run(&self) -> Result<ExitCode, String> {
        let seed = self.seed.unwrap_or_else(super::seed);
        let options = Options {
            linetender: self.linetender.clone().map_or_else(super::ourselves, Ok)?,
            nats: std::path::absolute(&self.nats).map_err(|error| error.to_string())?,
            time: Duration::from_secs(self.seconds),
            seed,
            agents: self.agents,
            lease: Duration::from_secs(self.lease),
            fleet: !self.apart,
            only: self.only.clone(),
            upgrades: self.upgrades,
            to: self.to.clone(),
            json: self.json,
        };
        if self.inside {
            return fleet::inside(&options);
        }
        let own =
            ["--inside".to_owned()].into_iter().chain(self.seed.is_none().then(|| format!("--seed={seed}")));
        let again: Vec<_> = std::env::args().skip(1).chain(own).collect();
        fleet::enclosed(&options, &again)
    }
}

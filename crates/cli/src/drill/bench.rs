//! `linetender drill bench`: what a call costs through whatever stands before a server.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use linetender_drill::bench::gateways::{self, Plan, Table};
use linetender_drill::bench::shims;
use serde_json::{Value, json};

use super::args::EraFlag;

/// Measures gateways and shims from the agent's side, alternately.
#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Anything that speaks Streamable HTTP.
    #[command(subcommand)]
    Gateways(Gateways),
    /// Any program that speaks MCP on its pipes.
    #[command(subcommand)]
    Shims(Shims),
}

const ENDPOINTS: &str = "\
An endpoint is NAME=URL, or NAME=COMMAND for a server on pipes, and has the tool `big` of linetender's own test server. Where that has \
a prefix: NAME:PREFIX=URL; where the processor time of its process is to be told: NAME@PID=URL; \
where agents have to show a token: NAME=http://TOKEN@HOST/PATH.

Example:
  linetender drill bench gateways calls modern direct=http://127.0.0.1:1/mcp relay=http://127.0.0.1:2/mcp serve=http://127.0.0.1:3/mcp/web";

#[derive(Debug, Subcommand)]
enum Gateways {
    /// What each endpoint adds to the first, called alternately; the last is held against all others.
    #[command(after_help = ENDPOINTS)]
    Calls {
        /// The era of the agents.
        #[arg(value_enum)]
        era: EraFlag,

        /// What is measured.
        #[arg(value_name = "ENDPOINT", required = true)]
        endpoints: Vec<String>,

        /// How often each has its turn.
        #[arg(long, value_name = "N")]
        rounds: Option<usize>,

        /// How many bytes an answer has.
        #[arg(long, value_name = "BYTES", value_delimiter = ',')]
        sizes: Option<Vec<usize>>,

        /// How many calls are under way at once.
        #[arg(long, value_name = "N", value_delimiter = ',')]
        in_flight: Option<Vec<usize>>,

        #[command(flatten)]
        figures: Figures,
    },
    /// What the process of the endpoint at this address takes up for agents that only listen.
    Idle {
        pid: u32,
        url: String,

        /// How many there are.
        #[arg(long, value_name = "N", default_value = "1000")]
        agents: usize,

        #[command(flatten)]
        figures: Figures,
    },
    /// Be an endpoint that only hands bytes on.
    Relay { url: String },
}

/// Figures are lines of a Markdown table.
#[derive(Debug, clap::Args)]
struct Figures {
    /// What they are of.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Adds them to this file, an object a line.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const SHIMS: &str = "\
A shim is NAME=COMMAND: a program that speaks MCP on its pipes and has a tool `echo`.

Example:
  linetender drill bench shims latency 24 1000 direct=badserver 'run=linetender run -- badserver'";

#[derive(Debug, Subcommand)]
enum Shims {
    /// What each shim adds to the first, called alternately.
    #[command(after_help = SHIMS)]
    Latency {
        rounds: usize,
        calls: usize,
        #[arg(value_name = "SHIM", required = true)]
        shims: Vec<String>,
    },
    /// How long each shim needs to answer `initialize`, and what it takes up at rest.
    #[command(after_help = SHIMS)]
    Starts {
        count: usize,
        #[arg(value_name = "SHIM", required = true)]
        shims: Vec<String>,
    },
    /// So many of each shim started together.
    #[command(after_help = SHIMS)]
    AtOnce {
        count: usize,
        #[arg(value_name = "SHIM", required = true)]
        shims: Vec<String>,
    },
    /// Be a shim that only copies both pipes.
    Copy {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
}

impl Bench {
    pub(super) fn run(&self) -> Result<ExitCode, String> {
        match &self.command {
            BenchCommand::Gateways(gateways) => gateways.run().map(|()| ExitCode::SUCCESS),
            BenchCommand::Shims(shims) => Ok(shims.run()),
        }
    }
}

impl Gateways {
    fn run(&self) -> Result<(), String> {
        match self {
            Self::Calls { era, endpoints, rounds, sizes, in_flight, figures } => {
                let mut plan = Plan::new((*era).into(), endpoints.clone());
                plan.rounds = rounds.unwrap_or(plan.rounds);
                plan.sizes = sizes.clone().unwrap_or(plan.sizes);
                plan.in_flight = in_flight.clone().unwrap_or(plan.in_flight);
                let name = era.to_possible_value().map_or_else(String::new, |era| era.get_name().to_owned());
                calls(&plan, &name, figures)
            }
            Self::Idle { pid, url, agents, figures } => idle(*pid, url, *agents, figures),
            Self::Relay { url } => super::runtime()?.block_on(gateways::relay(url)),
        }
    }
}

impl Shims {
    fn run(&self) -> ExitCode {
        match self {
            Self::Latency { rounds, calls, shims } => shims::latency(*rounds, *calls, &words(shims)),
            Self::Starts { count, shims } => shims::starts(*count, &words(shims)),
            Self::AtOnce { count, shims } => shims::at_once(*count, &words(shims)),
            Self::Copy { command } => shims::copy(&words(command)),
        }
    }
}

fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn calls(plan: &Plan, era: &str, figures: &Figures) -> Result<(), String> {
    let title = figures.title.clone().unwrap_or_else(|| format!("{era} agents"));
    println!("\n### {title}\n\n{} alternations\n\n{}", plan.rounds, Table::head(&plan.endpoints));
    let mut unwritten = Ok(());
    run(gateways::calls(plan, |table| {
        print!("{table}");
        if unwritten.is_ok() {
            unwritten = figures.note(json!({ "title": title, "era": era }), table.to_json());
        }
    }))?;
    unwritten
}

fn idle(pid: u32, url: &str, agents: usize, figures: &Figures) -> Result<(), String> {
    let title = figures.title.as_deref().unwrap_or("at rest");
    let mut at_rest = Err(String::new());
    run(async {
        at_rest = gateways::idle(pid, agents, url).await;
        Ok(())
    })?;
    let at_rest = at_rest?;
    println!("\n### {title}\n\n{at_rest}");
    figures.note(json!({ "title": title }), at_rest.to_json())
}

/// On one thread: the client has to leave room for what it measures.
fn run(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

impl Figures {
    /// Adds a line to the file for programs, if there is one.
    fn note(&self, mut about: Value, figures: Value) -> Result<(), String> {
        let Some(path) = &self.json else { return Ok(()) };
        if let (Some(about), Value::Object(figures)) = (about.as_object_mut(), figures) {
            about.extend(figures);
        }
        let written = OpenOptions::new().create(true).append(true).open(path);
        written
            .and_then(|mut file| writeln!(file, "{about}"))
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl From<EraFlag> for gateways::Era {
    fn from(flag: EraFlag) -> Self {
        match flag {
            EraFlag::Legacy => Self::Legacy,
            EraFlag::Modern => Self::Modern,
        }
    }
}

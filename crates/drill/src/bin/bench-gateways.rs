//! Endpoints measured from the agents' side; what can be measured is printed without arguments.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;

use linetender_drill::bench::gateways::{self, Era, Plan, Table};
use serde_json::{Value, json};

const USAGE: &str = "\
An endpoint is NAME=URL, or NAME=COMMAND for a server on pipes, and has badserver's tool `big`. Where that has a prefix: NAME:PREFIX=URL;
where the processor time of its process is to be told: NAME@PID=URL.

bench-gateways calls ERA ENDPOINT… [--rounds 20] [--sizes 100,10000,1000000] [--in-flight 1,16,64]
                          what each adds to the first, called alternately; the last is held against all others
bench-gateways idle PID URL [--agents 1000]
                          what the process of the endpoint at this address takes up for agents that only listen
bench-gateways relay URL  be an endpoint that only hands bytes on

Figures are lines of a Markdown table. With --json FILE they are also added to a file, an object a line; with --title TEXT both say
what they are of.

example: bench-gateways calls modern direct=http://127.0.0.1:1/mcp relay=http://127.0.0.1:2/mcp serve=http://127.0.0.1:3/mcp/web
";

const OPTIONS: [&str; 6] = ["--rounds", "--sizes", "--in-flight", "--agents", "--json", "--title"];

/// What stands behind the two words that say what to do.
#[derive(Default)]
struct Words<'a> {
    plain: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["calls", era, ref rest @ ..] => Words::of(rest).and_then(|words| calls(era, &words)),
        ["idle", pid, url, ref rest @ ..] => Words::of(rest).and_then(|words| idle(pid, url, &words)),
        ["relay", url] => relay(url),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-gateways: {error}");
            ExitCode::FAILURE
        }
    }
}

fn calls(era: &str, words: &Words<'_>) -> Result<(), String> {
    let mut plan =
        Plan::new(Era::of(era)?, words.plain.iter().map(|&endpoint| endpoint.to_owned()).collect());
    plan.rounds = words.number("--rounds", plan.rounds)?;
    plan.sizes = words.numbers("--sizes", plan.sizes)?;
    plan.in_flight = words.numbers("--in-flight", plan.in_flight)?;
    let title = words.option("--title").map_or_else(|| format!("{era} agents"), str::to_owned);
    println!("\n### {title}\n\n{} alternations\n\n{}", plan.rounds, Table::head(&plan.endpoints));
    let mut unwritten = Ok(());
    run(gateways::calls(&plan, |table| {
        print!("{table}");
        if unwritten.is_ok() {
            unwritten = words.note(json!({ "title": title, "era": era }), table.to_json());
        }
    }))?;
    unwritten
}

fn idle(pid: &str, url: &str, words: &Words<'_>) -> Result<(), String> {
    let pid = pid.parse().map_err(|_| format!("{pid} is no process"))?;
    let title = words.option("--title").unwrap_or("at rest");
    let agents = words.number("--agents", 1000)?;
    let mut at_rest = Err(String::new());
    run(async {
        at_rest = gateways::idle(pid, agents, url).await;
        Ok(())
    })?;
    let at_rest = at_rest?;
    println!("\n### {title}\n\n{at_rest}");
    words.note(json!({ "title": title }), at_rest.to_json())
}

fn relay(url: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(gateways::relay(url))
}

/// On one thread: the client has to leave room for what it measures.
fn run(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

impl<'a> Words<'a> {
    fn of(words: &[&'a str]) -> Result<Self, String> {
        let mut sorted = Self::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word.starts_with("--") {
                if !OPTIONS.contains(&word) {
                    return Err(format!("there is no {word}\n\n{USAGE}"));
                }
                let value = words.next().ok_or(format!("{word} needs a value"))?;
                sorted.options.push((word, value));
            } else {
                sorted.plain.push(word);
            }
        }
        Ok(sorted)
    }

    fn option(&self, name: &str) -> Option<&'a str> {
        self.options.iter().find(|(option, _)| *option == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str, otherwise: usize) -> Result<usize, String> {
        self.option(name)
            .map_or(Ok(otherwise), |text| text.parse().map_err(|_| format!("{name} {text}: no number")))
    }

    fn numbers(&self, name: &str, otherwise: Vec<usize>) -> Result<Vec<usize>, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{name} {text}: no number"));
        self.option(name).map_or(Ok(otherwise), |list| list.split(',').map(number).collect())
    }

    /// Adds a line to the file for programs, if there is one.
    fn note(&self, mut about: Value, figures: Value) -> Result<(), String> {
        let Some(path) = self.option("--json") else { return Ok(()) };
        if let (Some(about), Value::Object(figures)) = (about.as_object_mut(), figures) {
            about.extend(figures);
        }
        let written = OpenOptions::new().create(true).append(true).open(path);
        written.and_then(|mut file| writeln!(file, "{about}")).map_err(|error| format!("{path}: {error}"))
    }
}

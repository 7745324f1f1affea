//! `linetender drill page`: what a drill came to, for people.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linetender_drill::board;
use linetender_drill::results::{FORMAT, Results};

/// Draws the results of `drill run --json` as a page, or as Markdown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    linetender drill run --suite board --target shim --json results.json\n  \
    linetender drill page results.json --out page.html")]
pub(crate) struct Page {
    /// What `drill run --json` wrote.
    #[arg(value_name = "RESULTS")]
    results: PathBuf,

    /// Where the page goes: one file that asks nobody for anything.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["markdown", "rounded"])]
    out: Option<PathBuf>,

    /// Where the same tables go as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// What the Markdown calls the page.
    #[arg(long, value_name = "LINK", default_value = "scoreboard/index.html")]
    link: String,

    /// Where the results go once more, with fewer digits, to be kept beside the page.
    #[arg(long, value_name = "FILE")]
    rounded: Option<PathBuf>,
}

pub(super) fn page(args: &Page) -> Result<ExitCode, String> {
    // The page is drawn from what is kept, so that whoever draws it again gets the same one.
    let results = board::rounded(read(&args.results)?);
    if let Some(out) = &args.out {
        write(out, &board::page(&results))?;
    }
    if let Some(out) = &args.markdown {
        write(out, &board::markdown(&results, &args.link))?;
    }
    if let Some(out) = &args.rounded {
        let text =
            serde_json::to_string(&results).map_err(|error| format!("cannot write results: {error}"))?;
        write(out, &format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Results, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
    let results: Results = serde_json::from_str(&text).map_err(|error| cannot(&error))?;
    match results.format {
        FORMAT => Ok(results),
        other => Err(cannot(&format_args!("its format is {other}, and this linetender knows {FORMAT}"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

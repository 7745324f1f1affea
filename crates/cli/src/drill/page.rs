//! `linetender drill page`: what a drill came to, for people.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use linetender_drill::board;
use linetender_drill::results::{FORMAT, Results};
use serde::de::DeserializeOwned;

/// Render the results of `drill run --json` as an HTML page or as Markdown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    linetender drill run --suite board --target shim --json shim.json\n  \
    linetender drill run --suite board --target mine.toml --json mine.json\n  \
    linetender drill page shim.json mine.json --out page.html")]
pub(crate) struct Page {
    /// Results files of `drill run --json`; several, if they were run with the same settings
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,

    /// Write the HTML page to this file (self-contained)
    #[arg(long, value_name = "FILE", required_unless_present_any = ["markdown", "rounded"])]
    out: Option<PathBuf>,

    /// Write the same tables as Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Link from the Markdown to the page
    #[arg(long, value_name = "LINK", default_value = "scoreboard/index.html")]
    link: String,

    /// Results of `drill fleet --json`, for the part about gateways that die
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,

    /// Write the results with rounded figures to this file
    #[arg(long, value_name = "FILE")]
    rounded: Option<PathBuf>,
}

pub(super) fn page(args: &Page) -> Result<ExitCode, String> {
    // The page is drawn from what is kept, so that whoever draws it again gets the same one.
    let mut results = joined(&args.results)?;
    if let Some(path) = &args.fleet {
        results.fleet = Some(parsed(path)?);
    }
    let results = board::rounded(results);
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

fn joined(paths: &[PathBuf]) -> Result<Results, String> {
    let mut all: Option<Results> = None;
    for path in paths {
        let results = read(path)?;
        match &mut all {
            None => all = Some(results),
            Some(all) => all.join(results).map_err(|what| {
                format!("{} does not match the first results file: different {what}", path.display())
            })?,
        }
    }
    all.ok_or_else(|| "no results".to_owned())
}

fn read(path: &Path) -> Result<Results, String> {
    let results: Results = parsed(path)?;
    match results.format {
        FORMAT => Ok(results),
        other => Err(format!(
            "cannot read {}: results format {other} is not supported, expected {FORMAT}",
            path.display()
        )),
    }
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
    serde_json::from_str(&text).map_err(|error| cannot(&error))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{Page, page};
    use linetender_drill::results::{FORMAT, Results};

    fn drawn(format: u32) -> (Result<(), String>, [String; 3]) {
        let folder = std::env::temp_dir().join(format!("linetender-page-{}-{format}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [results, out, markdown, kept] =
            ["r.json", "p.html", "p.md", "k.json"].map(|name| folder.join(name));
        let told = serde_json::to_string(&Results { format, ..Results::default() }).expect("JSON");
        std::fs::write(&results, told).expect("written");
        let results = vec![results.clone(), results];
        let files = [&out, &markdown, &kept].map(|file| Some(file.clone()));
        let [out, markdown, rounded] = files.clone();
        let link = "p.html".to_owned();
        let done = page(&Page { results, out, markdown, link, fleet: None, rounded }).map(drop);
        let texts = files.map(|file| std::fs::read_to_string(file.unwrap_or_default()).unwrap_or_default());
        std::fs::remove_dir_all(folder).expect("removed");
        (done, texts)
    }

    #[test]
    fn one_results_file_becomes_a_page_a_text_and_what_is_kept() {
        let (done, [page, text, kept]) = drawn(FORMAT);
        assert_eq!(done, Ok(()));
        assert!(page.starts_with("<!doctype html>") && text.contains("(p.html)"));
        assert!(serde_json::from_str::<Results>(&kept).is_ok());
    }

    #[test]
    fn a_format_of_another_day_is_refused_by_its_number() {
        let (done, [page, ..]) = drawn(FORMAT + 1);
        assert!(done.is_err_and(|told| told.contains("results format 3 is not supported, expected 2")));
        assert!(page.is_empty());
    }
}

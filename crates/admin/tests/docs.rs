//! What is written in docs/ about the address is what it is.

use std::collections::BTreeSet;
use std::path::PathBuf;

use linetender_admin::METRICS;

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Names of ours in a text.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("linetender_")).map(str::to_owned).collect()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "whoever changes the interface asks for the page to be written")]
fn the_openapi_document_is_what_is_served() {
    let made = format!("{:#}\n", linetender_admin::openapi());
    if std::env::var("UPDATE_DOCS").is_ok() {
        std::fs::write(docs("openapi.json"), &made).unwrap();
    }
    let kept = std::fs::read_to_string(docs("openapi.json")).unwrap_or_default();
    assert!(kept == made, "run UPDATE_DOCS=1 cargo nextest run -p linetender-admin openapi");
}

#[test]
fn the_page_of_metrics_has_every_name_and_no_other() {
    let page = std::fs::read_to_string(docs("metrics.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `linetender_")).collect();
    let named: BTreeSet<String> =
        rows.iter().flat_map(|row| names_in(row.split('|').nth(1).unwrap())).collect();
    let there: BTreeSet<String> = METRICS.iter().map(linetender_admin::Metric::series).collect();
    assert_eq!(named, there);
    for metric in METRICS {
        let begins = format!("| `{}` |", metric.series());
        let row = rows.iter().find(|row| row.starts_with(&begins)).unwrap_or_else(|| panic!("{begins}"));
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        assert_eq!(row.split('|').nth(3).map(str::trim), Some(&*labels), "{row}");
    }
}

#[test]
fn alerts_and_dashboard_ask_for_series_that_exist() {
    let mut there: BTreeSet<String> = METRICS.iter().map(linetender_admin::Metric::series).collect();
    for metric in METRICS.iter().filter(|metric| metric.kind == linetender_admin::Kind::Histogram) {
        there.extend(["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)));
    }
    for name in ["alerts.yml", "grafana-dashboard.json", "metrics.md", "admin.md"] {
        let text = std::fs::read_to_string(docs(name)).unwrap();
        let unknown: Vec<String> = names_in(&text).difference(&there).cloned().collect();
        assert!(unknown.is_empty(), "{name} names {unknown:?}");
    }
}

use std::sync::Arc;

use linetender::{Rig, Server};
use linetender_holder::Holder;
use linetender_holder::holder::{FleetReport, PlacedReport, Program};
use tokio::sync::Semaphore;

use super::snapshot::{Snapshot, label};
use super::{Format, METRICS, scrape, write};

/// The text of a scrape.
fn text(holder: &Holder, format: Format) -> String {
    let mut text = String::new();
    write(Snapshot::of(holder, Vec::new()), format, &mut text).unwrap();
    text
}

/// A gateway of a fleet.
#[derive(Debug)]
struct OfFleet;

impl Program for OfFleet {
    fn reload(&self) -> Result<String, String> {
        Err(String::new())
    }

    fn log_level(&self, _level: &str) -> Result<(), String> {
        Err(String::new())
    }

    fn fleet(&self) -> Option<FleetReport> {
        let placed = |server: &str, runs_at: Option<&str>| PlacedReport {
            server: server.to_owned(),
            runs_at: runs_at.map(str::to_owned),
            here: runs_at == Some("one"),
            moves: false,
        };
        Some(FleetReport {
            fleet: "prod".to_owned(),
            node: "one".to_owned(),
            connected: true,
            nodes: Vec::new(),
            servers: vec![placed("a", Some("one")), placed("b", None), placed("c", Some("two"))],
        })
    }
}

#[tokio::test]
async fn every_family_is_in_the_list_and_every_name_of_the_list_is_a_family() {
    let holder = Holder::new("serve", None, None);
    holder.obeyed_by(Arc::new(OfFleet));
    let rig = Rig::new().followed_by(holder.clone());
    let _line = rig.lazy(Server::stdio("a", ["true"]));
    let text = text(&holder, Format::OpenMetrics);
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    // No journal is kept here.
    let listed: Vec<&str> =
        METRICS.iter().map(|metric| metric.name).filter(|name| !name.contains("journal")).collect();
    assert_eq!(families, listed);
    assert!(text.ends_with("# EOF\n"));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once(['{', ' ']).unwrap();
        let of = METRICS.iter().find(|metric| {
            let series = metric.series();
            name == series
                || name
                    .strip_prefix(&*series)
                    .is_some_and(|rest| ["_bucket", "_sum", "_count"].contains(&rest))
        });
        let metric = of.unwrap_or_else(|| panic!("{line}"));
        for label in metric.labels {
            assert!(labels.contains(&format!("{label}=\"")), "{line}");
        }
    }
    assert!(text.contains("linetender_server_lines{server=\"a\",state=\"idle\"} 1\n"), "{text}");
    assert!(text.contains("linetender_server_up{server=\"a\"} 1\n"), "it would serve at the first call");
    for (server, here, placed) in [("a", 1, 1), ("b", 0, 0), ("c", 0, 1)] {
        assert!(
            text.contains(&format!("linetender_fleet_server_here{{server=\"{server}\"}} {here}\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("linetender_fleet_server_placed{{server=\"{server}\"}} {placed}\n")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn without_openmetrics_families_are_named_like_their_series() {
    let holder = Holder::new("serve", None, None);
    let rig = Rig::new().followed_by(holder.clone());
    let _line = rig.lazy(Server::stdio("a", ["true"]));
    let text = text(&holder, Format::Plain);
    assert!(text.contains("# TYPE linetender_calls_total counter\nlinetender_calls_total{"), "{text}");
    assert!(text.contains("# TYPE linetender_build_info gauge\nlinetender_build_info{version="), "{text}");
    assert!(!text.contains("# EOF"), "{text}");
}

#[tokio::test]
async fn hostile_names_are_escaped_and_bounded_and_stay_apart() {
    let holder = Holder::new("serve", None, None);
    let rig = Rig::new().followed_by(holder.clone());
    let long = "x".repeat(10_000);
    let names = ["a\"} 1\n# EOF\nevil{b=\"\\", &long, &format!("{long}y")];
    let _lines = names.map(|name| rig.lazy(Server::stdio(name, ["true"])));
    let text = text(&holder, Format::OpenMetrics);
    assert!(text.contains(r#"server="a\"} 1\n# EOF\nevil{b=\"\\""#), "{text}");
    assert!(text.lines().all(|line| line.len() < 400 && !line.starts_with("evil")));
    assert_ne!(label(&long), label(&format!("{long}y")));
    assert_eq!(text.matches("linetender_server_up{").count(), 3);
}

#[test]
fn the_format_is_what_was_asked_for() {
    let of = |accept: &str| Format::accepted([accept].into_iter());
    assert_eq!(of("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1"), Format::OpenMetrics);
    assert_eq!(of("*/*"), Format::Plain);
}

#[tokio::test]
async fn whoever_stops_reading_a_scrape_frees_its_place() {
    let holder = Holder::new("serve", None, None);
    let rig = Rig::new().followed_by(holder.clone());
    let _lines: Vec<_> = (0..200).map(|at| rig.lazy(Server::stdio(format!("s{at}"), ["true"]))).collect();
    let places = Arc::new(Semaphore::new(1));
    let place = Arc::clone(&places).try_acquire_owned().unwrap();
    let mut pieces = scrape(&holder, Format::Plain, place).await;
    assert!(pieces.recv().await.is_some());
    assert_eq!(places.available_permits(), 0);
    drop(pieces);
    drop(places.acquire().await.unwrap());
}

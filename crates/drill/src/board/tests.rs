//! A small results file, and what becomes of it.

use super::{markdown, page, rounded};
use crate::results::Results;
use crate::results::fleet::{Fault, Fleet, Spread};

/// Three targets: ours, a peer that is better at one thing, and one that keeps nothing. Their texts are hostile.
const SAMPLE: &str = include_str!("sample.json");

fn sample() -> Results {
    serde_json::from_str(SAMPLE).expect("the sample is in the results format")
}

/// Elements of a page, with their attributes: what lies between `<` and `>`.
fn elements(page: &str) -> impl Iterator<Item = &str> {
    page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default())
}

#[test]
fn the_markdown_says_who_did_how_well() {
    insta::assert_snapshot!(markdown(&sample(), "scoreboard/index.html"));
}

#[test]
fn no_text_of_others_becomes_markup() {
    let page = page(&sample());
    for tag in ["script", "img", "iframe", "b>", "i>", "u>", "s>", "link"] {
        let ours = page.matches(&format!("<{tag}")).count();
        assert!(!page.contains(&format!("<{tag} src")) && (ours == 0 || tag == "b>"), "{tag}: {ours}");
    }
    // They are there all the same, as text.
    for text in [
        "&lt;script&gt;alert(&#39;row&#39;)",
        "&lt;img src=x",
        "&lt;iframe",
        "&lt;/title&gt;",
        "&lt;i&gt;http",
        "\u{fffd}[31m",
    ] {
        assert!(page.contains(text), "{text} is missing");
    }
    let handlers = elements(&page)
        .filter(|element| element.split('"').step_by(2).any(|outside| outside.contains(" on")));
    assert_eq!(handlers.count(), 0);
}

#[test]
fn the_page_asks_nobody_for_anything() {
    let page = page(&sample());
    assert!(page.contains("default-src 'none'"));
    for element in elements(&page) {
        // Only what stands outside of quotes is an attribute's name.
        let names: String = element.split('"').step_by(2).collect();
        // A link loads nothing by itself, and ours stay in the repository.
        let link = element
            .strip_prefix("a href=\"")
            .is_some_and(|to| to.starts_with("../") || to.starts_with("results.json"));
        assert!(link || !names.contains(" href="), "<{element}>");
        for name in [" src=", " srcset=", " action=", " data=", " poster=", " background="] {
            assert!(!names.contains(name), "<{element}>");
        }
    }
    let style = page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("a style");
    assert!(!style.contains("url(") && !style.contains("@import"));
}

#[test]
fn where_a_peer_is_better_both_say_so() {
    let (page, text) = (page(&sample()), markdown(&sample(), "p"));
    for said in [
        "quick proxy kept S13 (noise on its output, bad server, legacy), and linetender run did not: call 17",
        "quick proxy was back sooner than linetender run in 1 of 2 rows; most so in S13",
    ] {
        assert!(page.contains(said), "the page does not say: {said}");
        assert!(text.contains(said), "the Markdown does not say: {said}");
    }
}

#[test]
fn whoever_never_comes_back_is_not_flattered() {
    let text = markdown(&sample(), "p");
    let line = text.lines().find(|line| line.starts_with("| quick proxy 2.0.0")).expect("a line");
    // Two of its eight runs never were back: in front of stdio p99 is never, and p50 is the fifth.
    assert!(line.contains("| 100 ms | never |"), "{line}");
}

#[test]
fn what_is_kept_is_small_and_draws_the_same_page() {
    let kept = rounded(sample());
    assert!(serde_json::to_string(&kept).expect("JSON").contains("0.412,"));
    assert_eq!(page(&kept), page(&rounded(kept.clone())));
}

#[test]
fn nothing_at_all_is_still_a_page() {
    let none = Results::default();
    assert!(page(&none).ends_with("</html>\n"));
    assert!(markdown(&none, "p").starts_with("# When"));
}

#[test]
fn what_could_not_start_is_not_called_broken() {
    let mut results = sample();
    for row in &mut results.targets[2].rows {
        (row.runs, row.kept, row.findings) = (0, false, vec!["it exited with status 127".to_owned()]);
    }
    let name = results.targets[2].name.clone();
    let (page, text) = (page(&results), markdown(&results, "p"));
    assert!(page.contains("could not start: it exited with status 127"), "{name}");
    assert!(text.contains("could not start: it exited with status 127"), "{name}");
    results.targets[1].rows[0].runs = 0;
    results.targets[1].rows[0].kept = false;
    assert!(markdown(&results, "p").contains("| ∅ |"));
}

#[test]
fn only_rows_that_all_played_are_summed() {
    let mut results = sample();
    results.targets.truncate(2);
    let sums = |results: &Results| {
        let text = markdown(results, "p");
        text.lines().find(|line| line.starts_with("| **linetender run**")).unwrap_or_default().to_owned()
    };
    assert!(sums(&results).starts_with("| **linetender run** 0.1.0 | 160 |"), "{}", sums(&results));
    results.targets[1].rows[1].skipped = Some("it is not for that".to_owned());
    assert!(sums(&results).starts_with("| **linetender run** 0.1.0 | 80 |"), "{}", sums(&results));
}

#[test]
fn what_a_fleet_came_to_is_on_both_and_its_text_stays_text() {
    let fault = Fault {
        name: "gateway <b>killed</b>".to_owned(),
        times: 2,
        takeover_seconds: Some(Spread { count: 5, p50: 21.94, p99: 22.0, max: 22.06 }),
        ..Fault::default()
    };
    let findings = vec!["<img src=x>".to_owned()];
    let takeover_seconds = fault.takeover_seconds;
    let fleet = Fleet { faults: vec![fault], findings, takeover_seconds, ..Fleet::default() };
    let results = rounded(Results { fleet: Some(fleet), ..sample() });
    let (page, text) = (page(&results), markdown(&results, "page.html"));
    for told in [&page, &text] {
        assert!(told.contains("When a gateway dies"));
        assert!(told.contains("21.9 / 22.1"));
        assert!(!told.contains("<img src=x") && !told.contains("gateway <b>"), "{told}");
    }
    assert!(!markdown(&sample(), "page.html").contains("When a gateway dies"));
}

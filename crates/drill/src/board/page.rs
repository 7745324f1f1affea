//! The page: one file that asks nobody for anything.

mod grid;
mod rows;

use super::better::better;
use super::charts::{stacks, strips, timelines};
use super::digest::{Side, servers, sides};
use super::fleet;
use super::html::Html;
use super::tables::{self, AUTHORS, MEANINGS};
use super::words::count;
use crate::results::Results;
use crate::results::fleet::Fleet;
use grid::{scroll, table};
use rows::rows;

const STYLE: &str = include_str!("style.css");

/// A browser that obeys this cannot load or run anything from anywhere, whatever stands in the page.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
    <meta name=\"color-scheme\" content=\"light dark\"><title>When an MCP server dies</title><style>";

/// The results as a page.
pub fn page(results: &Results) -> String {
    let sides = sides(results);
    let mut html = Html::default();
    html.raw(HEAD).raw(STYLE).raw("</style></head><body>");
    html.within("header", &[], |html| lead(html, results, &sides));
    html.within("main", &[], |html| {
        section(html, "Who did how well", |html| headline(html, &sides));
        section(html, "How long until it works again", |html| recovery(html, &sides));
        section(html, "What callers were told", |html| told(html, &sides));
        section(html, "One death, moment by moment", |html| death(html, results));
        if let Some(told) = &results.fleet {
            section(html, fleet::TITLE, |html| failover(html, told));
        }
        section(html, "Row by row", |html| rows(html, &sides));
        section(html, "Where others are better than linetender", |html| others(html, &sides));
        section(html, "Who was drilled, and how it was set up", |html| {
            table(html, &tables::targets(results), "words");
        });
        section(html, "How to repeat it", |html| repeat(html, results));
    });
    html.raw("</body></html>\n");
    html.into_string()
}

fn section(html: &mut Html, title: &'static str, body: impl FnOnce(&mut Html)) {
    html.within("section", &[], |html| {
        html.put("h2", &[], title);
        body(html);
    });
}

fn lead(html: &mut Html, results: &Results, sides: &[Side]) {
    let played =
        || results.targets.iter().flat_map(|target| &target.rows).filter(|row| row.skipped.is_none());
    let calls: u64 = played().map(|row| row.calls.made).sum();
    let faults: u64 = played().map(|row| u64::from(row.runs)).sum();
    html.raw("<h1>When an MCP server dies</h1>");
    html.within("p", &[("class", &"lead")], |html| {
        html.text(format_args!(
            "{} ways to stand between an agent and its MCP servers, put through the same faults: {} of them, under {} calls. \
             The servers keep books of what they really ran, and what callers were told is held against them.",
            results.targets.len(),
            count(faults),
            count(calls),
        ));
    });
    for sentence in sides.iter().filter_map(tables::conclusion) {
        html.put("p", &[("class", &"lead")], sentence);
    }
    html.within("p", &[], |html| {
        html.text(AUTHORS);
        html.raw(" <a href=\"../drill.md#how-a-row-is-judged\">How a row is judged</a> · <a href=\"../peers.md\">The peers and \
            their settings</a> · <a href=\"results.json\">All results</a>");
    });
    html.within("p", &[("class", &"facts")], |html| {
        html.text(format_args!("{} · {} · linetender {}", results.date, results.machine, results.linetender));
    });
}

fn failover(html: &mut Html, told: &Fleet) {
    for sentence in fleet::sentences(told) {
        html.put("p", &[], sentence);
    }
    scroll(html, "Table", |html| {
        html.within("table", &[("class", &"numbers")], |html| {
            html.within("thead", &[], |html| {
                html.within("tr", &[], |html| {
                    for head in fleet::HEAD {
                        html.put("th", &[("scope", &"col")], head);
                    }
                });
            });
            html.within("tbody", &[], |html| {
                for row in fleet::rows(told) {
                    html.within("tr", &[("class", &"ours")], |html| {
                        for (at, cell) in row.iter().enumerate() {
                            html.put(if at == 0 { "th" } else { "td" }, &[], cell);
                        }
                    });
                }
            });
        });
    });
    html.raw("<p class=\"note\"><a href=\"../drill.md#fleet\">How it is judged</a></p>");
}

fn headline(html: &mut Html, sides: &[Side]) {
    for side in sides {
        html.put("h3", &[], format_args!("In front of {}", side.words));
        table(html, &tables::headline(side), "numbers");
        html.put("p", &[("class", &"note")], tables::summed(side));
        for (target, why) in &side.unstarted {
            let sentence = format_args!("{} {} could not start: {why}", target.name, target.version);
            html.put("p", &[("class", &"note")], sentence);
        }
    }
    html.raw("<p class=\"note\"><b class=\"best\">Bold</b> is the best of its column, whoever it is; ");
    html.raw("<b class=\"broken\">marked</b> is what must not be.</p>");
    html.within("dl", &[], |html| {
        for (word, meaning) in MEANINGS {
            html.within("div", &[], |html| {
                html.put("dt", &[], word).put("dd", &[], meaning);
            });
        }
    });
}

fn recovery(html: &mut Html, sides: &[Side]) {
    html.raw("<p>From the fault to the first call that works again. Most of it is the time that the server needs to start, ");
    html.raw("so each kind of server has its own picture. The axis is logarithmic.</p>");
    for side in sides {
        for server in servers(side) {
            let caption = format!("In front of {}: {}", side.words, kind(server));
            strips(html, side, &caption, |own| own.back_of(server));
        }
    }
    html.raw("<p>From the fault to the last call in flight being told anything:</p>");
    for side in sides {
        strips(html, side, &format!("In front of {}", side.words), |own| own.told.clone());
    }
    folded(html, "The same as tables", |html| {
        for side in sides {
            html.put("h3", &[], format_args!("In front of {}", side.words));
            table(html, &tables::times(side), "numbers");
        }
    });
}

fn kind(server: &str) -> &str {
    match server {
        "bad" => "one that starts in milliseconds",
        "python" => "one in Python",
        "node" => "one in Node",
        other => other,
    }
}

fn told(html: &mut Html, sides: &[Side]) {
    for side in sides {
        stacks(html, side);
    }
    folded(html, "The same as tables", |html| {
        for side in sides {
            html.put("h3", &[], format_args!("In front of {}", side.words));
            table(html, &tables::told(side), "numbers");
        }
    });
}

fn death(html: &mut Html, results: &Results) {
    let lines = || results.targets.iter().filter_map(|target| target.timeline.as_ref());
    let Some(line) = lines().next() else {
        html.raw("<p>No timeline was recorded.</p>");
        return;
    };
    let all = || results.targets.iter().flat_map(|target| &target.rows);
    let title = all().find(|row| row.row == line.row).map_or("", |row| &row.title);
    html.put(
        "p",
        &[],
        format_args!(
            "{}: {title}. Time runs from the fault; every sign says what it is when it is pointed at.",
            line.row
        ),
    );
    timelines(html, results);
}

fn others(html: &mut Html, sides: &[Side]) {
    let told: Vec<_> =
        sides.iter().map(|side| (side, better(side))).filter(|(_, told)| !told.is_empty()).collect();
    if told.is_empty() {
        html.raw("<p>In this run, nowhere: no row was kept by a peer and broken by us, and in none was a peer back sooner or did it lose fewer calls.</p>");
    }
    for (side, sentences) in told {
        html.put("h3", &[], format_args!("In front of {}", side.words));
        html.within("ul", &[], |html| {
            for sentence in sentences {
                html.put("li", &[], sentence);
            }
        });
    }
}

fn repeat(html: &mut Html, results: &Results) {
    html.raw("<pre><code>tools/scoreboard</code></pre>");
    html.within("p", &[], |html| {
        html.text(format_args!(
            "It installs the peers at the versions above, plays the suites <board> and <hangs> with seed {}, and writes this page. Instances and bounds, for everybody: {}. ",
            results.seed,
            results.pace()
        ));
        match results.policy.as_str() {
            "default" => html.text("linetender ran with its default times."),
            policy => html.text(format_args!("linetender’s own targets ran with the times of the policy “{policy}”, not with its defaults.")),
        };
    });
}

fn folded(html: &mut Html, title: &'static str, body: impl FnOnce(&mut Html)) {
    html.within("details", &[], |html| {
        html.put("summary", &[], title);
        body(html);
    });
}

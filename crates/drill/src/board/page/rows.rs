//! Row by row: who kept what, and what was found where somebody did not.

use super::super::digest::Side;
use super::super::html::Html;
use super::super::matrix::{MOST_FINDINGS, Played, Verdict, matrix};
use super::super::words::of;
use super::grid::scroll;
use crate::results::Row;

pub(super) fn rows(html: &mut Html, sides: &[Side]) {
    html.raw("<p>A cross opens: it says what was found. A dash is a row that does not concern a target, ∅ one for which it could not be started; both say why.</p>");
    for side in sides {
        html.put("h3", &[], format_args!("In front of {}", side.words));
        scroll(html, &format!("Rows in front of {}", side.words), |html| {
            html.within("table", &[("class", &"matrix")], |html| {
                html.within("thead", &[], |html| {
                    html.raw("<tr><th scope=\"col\">row</th>");
                    for own in &side.digests {
                        html.within("th", &[("scope", &"col"), ("class", &"slant")], |html| {
                            html.put("span", &[], &own.target.name);
                        });
                    }
                    html.raw("</tr>");
                });
                html.within("tbody", &[], |html| {
                    for line in matrix(side) {
                        row(html, &line);
                    }
                });
            });
        });
    }
}

fn row(html: &mut Html, line: &Played) {
    html.within("tr", &[], |html| {
        html.within("th", &[("scope", &"row")], |html| {
            html.put("b", &[], &line.row.row).text(" ").text(&line.row.title);
            html.put("small", &[], format_args!(" {} server, {}", line.row.server, line.row.era));
        });
        for verdict in &line.verdicts {
            html.within("td", &[], |html| cell(html, verdict));
        }
    });
}

fn cell(html: &mut Html, verdict: &Verdict) {
    match verdict {
        Verdict::Kept(row) => {
            html.put(
                "span",
                &[
                    ("class", &"kept"),
                    ("role", &"img"),
                    ("aria-label", &"kept"),
                    ("title", &format_args!("kept, {}", of(row.runs as usize, "run"))),
                ],
                "●",
            );
        }
        Verdict::Broken(row) => {
            html.within("details", &[("class", &"found"), ("name", &"found")], |html| findings(html, row));
        }
        Verdict::NotStarted(why) => {
            html.put(
                "span",
                &[
                    ("class", &"skipped"),
                    ("title", why),
                    ("aria-label", &format_args!("could not start: {why}")),
                ],
                "∅",
            );
        }
        Verdict::Skipped(why) => {
            html.put(
                "span",
                &[("class", &"skipped"), ("title", why), ("aria-label", &format_args!("skipped: {why}"))],
                "–",
            );
        }
        Verdict::Absent => {
            html.raw("<span class=\"skipped\" aria-label=\"not asked to\"></span>");
        }
    }
}

fn findings(html: &mut Html, row: &Row) {
    let first = row.findings.first().map_or("no finding was written down", String::as_str);
    html.put("summary", &[("aria-label", &"broken"), ("title", &first)], "✕");
    html.within("ul", &[], |html| {
        for finding in row.findings.iter().take(MOST_FINDINGS) {
            html.put("li", &[], finding);
        }
        if let Some(more @ 1..) = row.findings.len().checked_sub(MOST_FINDINGS) {
            html.put("li", &[], format_args!("… and {more} more"));
        }
        if row.findings.is_empty() {
            html.put("li", &[], first);
        }
    });
}

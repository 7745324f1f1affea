//! One death, moment by moment: what was asked, what broke, and what was said to whom when.

use super::super::html::{Html, Percent};
use super::super::words::millis;
use super::axis::Axis;
use super::lane::{foot, lane, legend};
use crate::results::{Event, Results, Target, Timeline};

/// What came before the fault gets this much of the width; the time after it is on a logarithmic axis.
const BEFORE: f64 = 12.0;
const FAULT: Percent = Percent(BEFORE + 1.5);
const END: f64 = 97.0;

/// Signs at one place are piled up, so many at most; the table below has all of them.
const MOST_PILED: usize = 9;
const SIGN: f64 = 6.0;
const HEIGHT: u32 = 72;
const GROUND: f64 = 64.0;

/// At most so many moments of a target are told in its table.
const MOST_TOLD: usize = 60;

/// A figure with a lane for each target that has a timeline.
pub(in super::super) fn timelines(html: &mut Html, results: &Results) {
    let lanes: Vec<_> =
        results.targets.iter().filter_map(|target| Some((target, target.timeline.as_ref()?))).collect();
    if lanes.is_empty() {
        return;
    }
    let axis =
        Axis::over(lanes.iter().flat_map(|(_, line)| line.events.iter().map(|event| event.ms)), FAULT.0, END);
    html.within("figure", &[], |html| {
        for (target, line) in &lanes {
            lane(html, target, HEIGHT, &words(line), |html| draw(html, &axis, line));
        }
        foot(html, |html| {
            html.put("text", &[("x", &"0"), ("y", &"14")], "before");
            axis.labels(html);
        });
        legend(
            html,
            &[("call", "a call"), ("fault", "the fault"), ("answer", "an answer"), ("error", "an error")],
        );
    });
    html.within("details", &[], |html| {
        html.put("summary", &[], "The same in words");
        for (target, line) in lanes {
            moments(html, target, line);
        }
    });
}

fn words(line: &Timeline) -> String {
    let number = |what: &str| line.events.iter().filter(|event| event.what == what).count();
    format!(
        "{}: {} calls, {} answers, {} errors",
        line.row,
        number("call"),
        number("answer"),
        number("error")
    )
}

fn draw(html: &mut Html, axis: &Axis, line: &Timeline) {
    axis.grid(html);
    let first = line.events.iter().map(|event| event.ms).fold(-1.0, f64::min);
    // How high each place is piled already, by per cent of the width.
    let mut piles = [0; 101];
    for event in &line.events {
        let x = if event.ms < 0.0 {
            Percent(1.0 + (BEFORE - 1.0) * (1.0 - event.ms / first))
        } else {
            axis.place(event.ms)
        };
        sign(html, event, &x, pile(&mut piles, &x));
    }
}

/// How many lie below at this place.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place on the page")]
fn pile(piles: &mut [usize; 101], x: &Percent) -> usize {
    let pile = &mut piles[(x.0 as usize).min(100)];
    let below = (*pile).min(MOST_PILED - 1);
    *pile += 1;
    below
}

#[expect(clippy::cast_precision_loss, reason = "a pile of a few signs")]
fn sign(html: &mut Html, event: &Event, x: &Percent, below: usize) {
    let class = known(&event.what);
    let y = GROUND - below as f64 * (SIGN + 1.0);
    let title = |html: &mut Html| {
        html.put("title", &[], format_args!("{}: {}", at(event.ms), event.text));
    };
    match class {
        "fault" => {
            html.within(
                "line",
                &[("class", &class), ("x1", x), ("x2", x), ("y1", &0), ("y2", &HEIGHT)],
                title,
            );
        }
        "error" => {
            let size = [("width", &SIGN as &dyn std::fmt::Display), ("height", &SIGN)];
            html.within(
                "rect",
                &[
                    ("class", &class),
                    ("x", x),
                    ("y", &(y - SIGN / 2.0)),
                    size[0],
                    size[1],
                    ("transform", &"translate(-3 0)"),
                ],
                title,
            );
        }
        _ => {
            html.within("circle", &[("class", &class), ("cx", x), ("cy", &y), ("r", &(SIGN / 2.0))], title);
        }
    }
}

/// The class of what happened. The word is the file's, so it is not taken as it is.
fn known(what: &str) -> &'static str {
    match what {
        "fault" => "fault",
        "answer" => "answer",
        "error" => "error",
        _ => "call",
    }
}

fn moments(html: &mut Html, target: &Target, line: &Timeline) {
    html.within("details", &[], |html| {
        html.put("summary", &[], &target.name);
        html.within("table", &[("class", &"words")], |html| {
            html.raw("<thead><tr><th scope=\"col\">when</th><th scope=\"col\">what</th><th scope=\"col\">in words</th></tr></thead>");
            for event in line.events.iter().take(MOST_TOLD) {
                html.within("tr", &[], |html| {
                    html.put("td", &[("class", &"number")], at(event.ms));
                    html.put("td", &[], &event.what).put("td", &[], &event.text);
                });
            }
        });
        if let Some(more @ 1..) = line.events.len().checked_sub(MOST_TOLD) {
            html.put("p", &[], format_args!("… and {more} more, in the results file."));
        }
    });
}

fn at(ms: f64) -> String {
    if ms < 0.0 { format!("−{}", millis(-ms)) } else { format!("+{}", millis(ms)) }
}

//! What callers were told: for each target a bar of all its calls.

use super::super::digest::{Digest, Side, share};
use super::super::html::{Html, Percent};
use super::super::words::{count, percent};
use super::lane::{lane, legend};
use crate::results::Calls;

const HEIGHT: u32 = 26;

/// A part that is narrower than this share of the bar has no room for its number.
const ROOM: f64 = 0.09;

/// A fate, by the class that colours it.
struct Fate {
    class: &'static str,
    words: &'static str,
    number: fn(&Calls) -> u64,
}

/// From the best that can be said to a caller to the worst. Each call has one.
const FATES: [Fate; 7] = [
    Fate { class: "answered", words: "answered", number: |calls| calls.answered },
    Fate { class: "not-executed", words: "told: not executed", number: |calls| calls.not_executed },
    Fate { class: "refused", words: "told: refused by the server", number: |calls| calls.refused },
    Fate { class: "unknown", words: "told: unknown whether it ran", number: |calls| calls.unknown },
    Fate { class: "unexplained", words: "an error that explains nothing", number: |calls| calls.unexplained },
    Fate { class: "empty", words: "not a word, or the connection closed", number: |calls| calls.empty },
    Fate { class: "hung", words: "told nothing: hung", number: |calls| calls.hung },
];

/// A figure of what was told, on one side.
pub(in super::super) fn stacks(html: &mut Html, side: &Side) {
    html.within("figure", &[], |html| {
        html.put("figcaption", &[], format_args!("In front of {}", side.words));
        for own in &side.digests {
            lane(html, own.target, HEIGHT, &words(own), |html| bar(html, &own.calls));
        }
        legend(html, &FATES.map(|fate| (fate.class, fate.words)));
    });
}

fn words(own: &Digest) -> String {
    let told = FATES.map(|fate| format!("{} {}", count((fate.number)(&own.calls)), fate.words));
    told.join(", ")
}

fn bar(html: &mut Html, calls: &Calls) {
    let mut x = 0.0;
    for fate in FATES {
        let number = (fate.number)(calls);
        let part = share(number, calls.made);
        if number == 0 {
            continue;
        }
        let width = part * 100.0;
        let place = Percent(x);
        html.within("g", &[("class", &fate.class)], |html| {
            html.put("title", &[], format_args!("{}: {} ({})", fate.words, count(number), percent(part)));
            html.open("rect", &[("x", &place), ("width", &Percent(width)), ("y", &3), ("height", &20)])
                .raw("</rect>");
            if part >= ROOM {
                let middle = Percent(x + width / 2.0);
                html.put("text", &[("x", &middle), ("y", &17), ("text-anchor", &"middle")], percent(part));
            }
        });
        x += width;
    }
}

//! How long it took, each run a dot: a strip for each target, on a logarithmic axis.

use super::super::digest::{Digest, Side};
use super::super::html::{Html, Percent};
use super::super::times::Times;
use super::super::words::{millis, moment};
use super::axis::Axis;
use super::lane::{foot, lane, legend};

/// The height of a strip in pixels, and of the band in which dots lie.
const HEIGHT: u32 = 36;
const MIDDLE: f64 = 18.0;
const BAND: f64 = 11.0;

/// At most so many dots in a strip: evenly spaced ones of the sorted runs, the first and the last included.
const MOST_DOTS: usize = 150;

/// Right of the axis is the place of those who never came back.
const AXIS_END: f64 = 83.0;
const NEVER: Percent = Percent(95.0);

/// Steps of the golden ratio spread neighbours far apart, and the same way each time.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// A figure of how long each target took, by these times of it.
pub(in super::super) fn strips<'a>(
    html: &mut Html,
    side: &Side<'a>,
    caption: &str,
    of: impl Fn(&Digest<'a>) -> Times,
) {
    let measured: Vec<_> =
        side.digests.iter().map(|own| (own.target, of(own))).filter(|(_, times)| times.len() > 0).collect();
    if measured.is_empty() {
        return;
    }
    let axis =
        Axis::over(measured.iter().filter_map(|(_, times)| times.ended().last().copied()), 1.0, AXIS_END);
    let never = measured.iter().any(|(_, times)| times.never > 0);
    html.within("figure", &[], |html| {
        html.put("figcaption", &[], caption);
        for (target, times) in &measured {
            lane(html, target, HEIGHT, &words(times), |html| strip(html, &axis, times));
        }
        foot(html, |html| {
            axis.labels(html);
            if never {
                html.put("text", &[("x", &NEVER), ("y", &"14"), ("text-anchor", &"middle")], "never");
            }
        });
        let signs = [
            ("dot", "one run"),
            ("median", "median"),
            ("box", "the middle half"),
            ("never", "runs that were not back within the bound"),
        ];
        legend(html, if never { &signs } else { &signs[..3] });
    });
}

fn words(times: &Times) -> String {
    let [half, most] = [0.5, 0.99].map(|share| moment(times.at(share)));
    format!("p50 {half}, p99 {most}, {} of {} runs never", times.never, times.len())
}

fn strip(html: &mut Html, axis: &Axis, times: &Times) {
    axis.grid(html);
    let place = |share| times.at(share).length().filter(|time| time.is_finite());
    if let Some(low) = place(0.25) {
        let from = axis.place(low).0;
        // What never ended lies right of the axis.
        let to = place(0.75).map_or(AXIS_END, |high| axis.place(high).0);
        html.open(
            "rect",
            &[
                ("class", &"box"),
                ("x", &Percent(from)),
                ("width", &Percent((to - from).max(0.2))),
                ("y", &5),
                ("height", &26),
                ("rx", &3),
            ],
        );
        html.raw("</rect>");
    }
    for (number, time) in some(times.ended()).enumerate() {
        let height = MIDDLE + (spread(number) - 0.5) * 2.0 * BAND;
        html.within(
            "circle",
            &[
                ("class", &"dot"),
                ("cx", &axis.place(time)),
                ("cy", &format_args!("{height:.1}")),
                ("r", &2.5),
            ],
            |html| {
                html.put("title", &[], millis(time));
            },
        );
    }
    if let Some(half) = place(0.5) {
        let x = axis.place(half);
        html.open("line", &[("class", &"median"), ("x1", &x), ("x2", &x), ("y1", &2), ("y2", &34)])
            .raw("</line>");
    }
    if times.never > 0 {
        html.put(
            "text",
            &[("class", &"never"), ("x", &NEVER), ("y", &23), ("text-anchor", &"middle")],
            format_args!("× {}", times.never),
        );
    }
}

/// Evenly spaced ones of them all.
fn some(sorted: &[f64]) -> impl Iterator<Item = f64> {
    let number = sorted.len().min(MOST_DOTS);
    (0..number).map(move |at| sorted[at * (sorted.len() - 1) / (number - 1).max(1)])
}

#[expect(clippy::cast_precision_loss, reason = "numbers of dots")]
fn spread(number: usize) -> f64 {
    (number as f64 * GOLDEN).fract()
}

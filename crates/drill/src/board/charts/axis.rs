//! A logarithmic axis for times: milliseconds and minutes on one line.

use super::super::html::{Html, Percent};

/// What is shorter than this is drawn here: nobody could tell the difference.
const SHORTEST: f64 = 0.1;

/// Where a time is drawn.
pub(super) struct Axis {
    /// The longest time, a power of ten.
    longest: f64,
    /// The share of the width that the axis takes, in per cent, from the left.
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis on which all of these have a place.
    pub(super) fn over(times: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let longest = times.fold(SHORTEST * 10.0, f64::max);
        Self { longest: 10_f64.powf(longest.log10().ceil()), from, to }
    }

    pub(super) fn place(&self, ms: f64) -> Percent {
        let share = (ms.max(SHORTEST) / SHORTEST).log10() / (self.longest / SHORTEST).log10();
        Percent(self.from + (self.to - self.from) * share)
    }

    /// The powers of ten.
    fn ticks(&self) -> impl Iterator<Item = f64> {
        std::iter::successors(Some(SHORTEST), |tick| Some(tick * 10.0))
            .take_while(|tick| *tick <= self.longest * 1.01)
    }

    /// Thin lines through a lane.
    pub(super) fn grid(&self, html: &mut Html) {
        for tick in self.ticks() {
            let x = self.place(tick);
            html.open("line", &[("class", &"grid"), ("x1", &x), ("x2", &x), ("y1", &"0"), ("y2", &"100%")]);
            html.raw("</line>");
        }
    }

    /// The times below the lanes.
    pub(super) fn labels(&self, html: &mut Html) {
        for tick in self.ticks() {
            let edge = if tick < SHORTEST * 2.0 { "start" } else { "middle" };
            html.put("text", &[("x", &self.place(tick)), ("y", &"14"), ("text-anchor", &edge)], name(tick));
        }
    }
}

/// A power of ten.
fn name(tick: f64) -> String {
    match tick {
        ..0.5 => format!("{tick:.1} ms"),
        ..500.0 => format!("{tick:.0} ms"),
        _ => format!("{:.0} s", tick / 1000.0),
    }
}

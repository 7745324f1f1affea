//! The states of a line over time, as one glyph for each slice of it.

use linetender_holder::holder::Moment;

use super::stand::Stand;

/// The spans that a strip can show, in seconds, with their names.
pub(super) const SPANS: [(u64, &str); 5] =
    [(60, "1 min"), (300, "5 min"), (900, "15 min"), (3600, "1 h"), (6 * 3600, "6 h")];

/// One slice per column, oldest first; `None` where nothing is known. A slice shows the most urgent state in it, so that a
/// death of a millisecond is seen in an hour.
pub(super) fn slices(history: &[Moment], span_millis: u64, width: usize) -> Vec<Option<Stand>> {
    let mut slices = vec![None; width];
    let columns = width as u64;
    for (at, moment) in history.iter().enumerate() {
        let stand = Stand::of(&moment.state);
        // It lasted from its beginning to the beginning of the next, or until now.
        let until = history.get(at + 1).map_or(0, |next| next.ago_millis);
        if columns == 0 || until >= span_millis {
            continue;
        }
        let column = |ago: u64| {
            let since_start = span_millis.saturating_sub(ago.min(span_millis));
            usize::try_from(since_start * columns / span_millis.max(1)).unwrap_or(0).min(width - 1)
        };
        // The last slice is that of its last millisecond.
        let first = column(moment.ago_millis);
        for slice in &mut slices[first..=column(until.saturating_add(1)).max(first)] {
            *slice = Some(slice.map_or(stand, |seen: Stand| seen.max(stand)));
        }
    }
    slices
}

#[cfg(test)]
mod tests {
    use linetender_holder::holder::Moment;

    use super::slices;

    fn strip(history: &[(&str, u64)], seconds: u64, width: usize) -> String {
        let history: Vec<_> = history
            .iter()
            .map(|(state, ago)| Moment { state: (*state).to_owned(), ago_millis: ago * 1000 })
            .collect();
        let slices = slices(&history, seconds * 1000, width);
        slices.into_iter().map(|slice| slice.map_or(' ', super::Stand::glyph)).collect()
    }

    #[test]
    fn a_short_death_is_seen_in_a_long_strip_and_what_is_unknown_is_empty() {
        let history = [("dialing", 31), ("up", 30), ("ending", 11), ("dialing", 11), ("up", 10)];
        assert_eq!(strip(&history, 60, 12), "     ▒▇▇▇x▇▇");
        assert_eq!(
            strip(&history, 20, 10),
            "▇▇▇▇x▇▇▇▇▇",
            "what began before the strip is in its first slice"
        );
        assert_eq!(strip(&[("parked", 4000)], 60, 3), "PPP");
        assert_eq!(strip(&[], 60, 3), "   ");
        assert_eq!(strip(&history, 60, 0), "");
    }
}

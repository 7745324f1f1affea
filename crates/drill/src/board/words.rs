//! Numbers as people read them.

use super::times::Moment;

/// `0.4 ms`, `3.2 ms`, `412 ms`, `1.3 s`.
pub(super) fn millis(ms: f64) -> String {
    // The limits are where rounding would carry into the next form.
    match ms {
        ..0.05 => "0 ms".to_owned(),
        ..9.95 => format!("{ms:.1} ms"),
        ..999.5 => format!("{ms:.0} ms"),
        ..99_950.0 => format!("{:.1} s", ms / 1000.0),
        _ => format!("{:.0} s", ms / 1000.0),
    }
}

/// A time, or why there is none.
pub(super) fn moment(moment: Moment) -> String {
    match moment {
        Moment::After(ms) => millis(ms),
        Moment::Never => "never".to_owned(),
        Moment::Unmeasured => "–".to_owned(),
    }
}

/// `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as per cent. What is not nothing is never written as 0 %, and what is not all never as 100 %.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        ..0.1 => "< 0.1 %".to_owned(),
        percent @ ..9.95 => format!("{percent:.1} %"),
        percent @ ..99.0 => format!("{percent:.0} %"),
        percent @ ..99.95 => format!("{percent:.1} %"),
        ..100.0 => "> 99.9 %".to_owned(),
        _ => "100 %".to_owned(),
    }
}

/// `one row`, `12 rows`.
pub(super) fn of(number: usize, thing: &str) -> String {
    match number {
        1 => format!("one {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{count, millis, percent};

    #[test]
    fn times_are_as_exact_as_one_can_say_them() {
        let said = [0.0, 0.04, 0.44, 9.94, 9.96, 412.4, 999.4, 999.6, 1_340.0, 120_000.0].map(millis);
        let wanted =
            ["0 ms", "0 ms", "0.4 ms", "9.9 ms", "10 ms", "412 ms", "999 ms", "1.0 s", "1.3 s", "120 s"];
        assert_eq!(said, wanted);
    }

    #[test]
    fn large_counts_have_commas() {
        assert_eq!([0, 12, 999, 1_000, 1_234_567].map(count), ["0", "12", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_share_is_not_rounded_to_nothing_or_to_all() {
        let said = [0.0, 0.000_1, 0.034, 0.5, 0.991, 0.999_9, 1.0].map(percent);
        assert_eq!(said, ["0 %", "< 0.1 %", "3.4 %", "50 %", "99.1 %", "> 99.9 %", "100 %"]);
    }
}

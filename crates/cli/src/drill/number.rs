//! Numbers of the command line that times are multiplied with.

/// Times stay times when they are multiplied with it.
const MOST: f64 = 1e6;

/// A number above 0 that is finite, and not absurd.
pub(super) fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= MOST);
    number.ok_or_else(|| format!("not a number above 0 and up to {MOST}"))
}

#[cfg(test)]
mod tests {
    use super::above_zero;

    #[test]
    fn only_what_time_can_be_multiplied_with_is_taken() {
        assert!(["0.5", "20"].iter().all(|text| above_zero(text).is_ok()));
        for text in ["0", "-1", "inf", "nan", "1e300", "x", ""] {
            assert!(above_zero(text).is_err(), "{text}");
        }
    }
}

//! Times and sizes as people write them, in flags and in config files.

use std::time::Duration;

/// Beginnings of the names of sizes, each 1024 times the one before.
const STEPS: [&str; 4] = ["", "k", "m", "g"];

/// Parses a duration: `500ms`, `30s`, `5m`, `1h 30m`.
///
/// # Errors
/// If it is none, in words.
pub fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("expected a duration such as 500ms, 30s, 5m or 1h 30m ({error})"))
}

/// Parses a size in bytes: `4096`, `64k`, `16MiB`.
///
/// # Errors
/// If it is none, in words.
pub fn size(text: &str) -> Result<u32, String> {
    let wanted = || "expected a size in bytes, such as 4096, 64k or 16MiB".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let step = STEPS.iter().position(|step| *step == unit).ok_or_else(wanted)?;
    let number: u32 = number.parse().map_err(|_| wanted())?;
    let factor = 1024_u32.pow(u32::try_from(step).unwrap_or_default());
    number.checked_mul(factor).ok_or_else(|| "too large: the limit is 4 GiB".to_owned())
}

/// Formats a duration so that [`time`] can parse it.
pub fn spell(time: Duration) -> String {
    humantime::format_duration(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::{size, spell, time};
    use std::time::Duration;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h 30m", 5_400_000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
            assert_eq!(time(&spell(Duration::from_millis(millis))), time(text));
        }
        assert_eq!(time("0s"), Ok(Duration::ZERO), "whether that is allowed is for the policy to say");
        for text in ["30", "", "-1s", "soon", "5 parsecs"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65_536),
            ("64 KB", 65_536),
            ("16MiB", 16 << 20),
            ("2g", 2 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "k", "4x", "-1", "1.5m", "4g", "99999999999"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}

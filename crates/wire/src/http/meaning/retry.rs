//! `Retry-After`, in seconds or as a date.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// How long to wait. A date is read against the server's own clock, which it sends along: ours may be wrong, and is not
/// asked.
pub(super) fn after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time.
        return Some(Duration::from_secs(value.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(Duration::from_secs(then.duration_since(now).map_or(0, |wait| wait.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::after;
    use http::header::{DATE, HeaderMap, RETRY_AFTER};
    use std::time::Duration;

    #[test]
    fn seconds_and_dates_are_understood_and_nonsense_is_not() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (value, now, seconds) in [
            ("7", None, Some(7)),
            (" 0 ", None, Some(0)),
            ("99999999999999999999", None, Some(u64::from(u32::MAX))),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(date), Some(60)),
            ("Sun, 06 Nov 1994 08:40:37 GMT", Some(date), Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", None, None),
            ("-1", None, None),
            ("soon", Some(date), None),
            ("", None, None),
        ] {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            headers.extend(now.map(|now| (DATE, now.parse().unwrap())));
            assert_eq!(after(&headers), seconds.map(Duration::from_secs), "{value}");
        }
        assert_eq!(after(&HeaderMap::new()), None);
    }
}

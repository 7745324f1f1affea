//! Which redirects are followed: hardly any. A redirect can take credentials to somebody else.

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};

use crate::http::endpoint::Endpoint;
use crate::redact::Redacted;

/// What a response says about going elsewhere.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Redirect {
    /// Nothing.
    None,
    /// The same request, there.
    To(Endpoint),
    /// It is not followed.
    Refused(String),
}

/// 307 and 308 within the origin keep method and body, so they are followed. Others turn a POST into a GET, or lead away.
pub(super) fn of(from: &Endpoint, status: StatusCode, headers: &HeaderMap) -> Redirect {
    let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) else {
        return Redirect::None;
    };
    let shown = Redacted::head(&String::from_utf8_lossy(location.as_bytes()), 200);
    let refused = |why: &str| Redirect::Refused(format!("{} to {shown}: {why}", status.as_u16()));
    let Some(to) = location.to_str().ok().and_then(|location| from.join(location)) else {
        return refused("not a URL");
    };
    if from.is_secure() && !to.is_secure() {
        return refused("refused: it leads from https to http");
    }
    if !from.same_origin(&to) {
        return refused("refused: it leads to another origin; if the server moved, configure its new URL");
    }
    match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Redirect::To(to),
        _ => refused("refused: this status turns a POST into a GET"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Redirect, of};
    use http::{HeaderMap, HeaderValue, StatusCode};

    #[test]
    fn only_a_redirect_that_keeps_origin_and_method_is_followed() {
        for (from, status, location, followed) in [
            ("http://h/mcp", 307, "/mcp/", Some("http://h/mcp/")),
            ("http://h/mcp", 308, "http://h:80/x", Some("http://h:80/x")),
            ("http://h/mcp", 301, "/mcp/", None),
            ("http://h/mcp", 302, "/mcp/", None),
            ("http://h/mcp", 303, "/mcp/", None),
            ("http://h/mcp", 307, "http://o/mcp", None),
            ("http://h/mcp", 307, "https://h/mcp", None),
            ("https://h/mcp", 307, "http://h/mcp", None),
            ("https://h/mcp", 307, "https://h:8443/mcp", None),
            ("http://h/mcp", 307, "ftp://h/mcp", None),
        ] {
            let headers =
                HeaderMap::from_iter([(http::header::LOCATION, HeaderValue::from_static(location))]);
            let from = Endpoint::new(from).unwrap();
            match (of(&from, StatusCode::from_u16(status).unwrap(), &headers), followed) {
                (Redirect::To(to), Some(expected)) => assert_eq!(to.to_string(), expected),
                (Redirect::Refused(words), None) => assert!(words.contains(location), "{words}"),
                (other, _) => panic!("{status} {location}: {other:?}"),
            }
        }
        let from = Endpoint::new("http://h/").unwrap();
        assert_eq!(of(&from, StatusCode::NOT_MODIFIED, &HeaderMap::new()), Redirect::None);
    }
}

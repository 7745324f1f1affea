//! Who somebody is: the one place that decides it.
//!
//! Without `auth` it is who the kernel says is at the other end of the connection. With it, it is whoever the token of the
//! request was issued to, whatever connection that came on; and a request without a token is told where to get one.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::response::Response;
use http::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, StatusCode};

use super::caller::Caller;
use super::metadata::Resource;
use super::rarely::Rarely;
use super::reply;
use crate::bearers::{Bearers, Refused, Verdict};
use crate::config::Settings;
use crate::failed::Failed;
use crate::principal::Principal;

/// The longest description of what is wrong with a token.
const DESCRIPTION: usize = 200;

/// Decides who somebody is.
#[derive(Clone, Debug)]
pub(super) struct Identify {
    bearers: Option<Arc<dyn Bearers>>,
    resource: Arc<Resource>,
    refused: Arc<Rarely>,
}

/// What is known of a request without waiting.
pub(super) enum Somebody {
    Known(Principal),
    /// It has this token, which has to be verified.
    Shows(String),
    Nobody(Box<Response>),
}

impl Identify {
    pub(super) fn new(bearers: Option<Arc<dyn Bearers>>, settings: &Settings) -> Self {
        Self { bearers, resource: Arc::new(Resource::new(settings)), refused: Arc::default() }
    }

    /// Who asks this.
    pub(super) fn who<B>(&self, request: &Request<B>, caller: Caller) -> Somebody {
        if let Some(stranger) = caller.refused() {
            return Somebody::Nobody(Box::new(stranger));
        }
        let Some(bearers) = &self.bearers else {
            return match caller {
                Caller::User(uid) => Somebody::Known(Principal::user(uid)),
                Caller::Anybody(address) => Somebody::Known(Principal::address(address)),
                // It was refused above; if it were not, it would be nobody all the same.
                Caller::Stranger(_) => Somebody::Nobody(Box::new(self.challenge(request, None))),
            };
        };
        let token = match bearer(request.headers()) {
            Ok(Some(token)) => token,
            Ok(None) => return Somebody::Nobody(Box::new(self.challenge(request, None))),
            Err(words) => {
                return Somebody::Nobody(Box::new(reply::error(
                    StatusCode::BAD_REQUEST,
                    "null",
                    -32600,
                    words,
                )));
            }
        };
        match bearers.known(token, server(request.uri().path())) {
            Some(verdict) => match self.judged(request, verdict) {
                Ok(principal) => Somebody::Known(principal),
                Err(refused) => Somebody::Nobody(refused),
            },
            None => Somebody::Shows(token.to_owned()),
        }
    }

    /// The same, if its token has to be verified.
    pub(super) async fn verified<B>(
        &self,
        request: &Request<B>,
        token: &str,
    ) -> Result<Principal, Box<Response>> {
        let Some(bearers) = &self.bearers else { return Err(Box::new(self.challenge(request, None))) };
        let verdict = bearers.check(token, server(request.uri().path())).await;
        self.judged(request, verdict)
    }

    fn judged<B>(&self, request: &Request<B>, verdict: Verdict) -> Result<Principal, Box<Response>> {
        verdict.map(Principal::known).map_err(|refused| {
            if let Some(requests) = self.refused.count() {
                tracing::warn!(requests, why = ?refused, "requests without a valid token refused");
            }
            Box::new(match refused {
                Refused::Unavailable(words, after) => {
                    let failed = Failed::refused(-32600, &words, "later");
                    let mut response = reply::json(StatusCode::SERVICE_UNAVAILABLE, failed.error("null"));
                    let seconds = after.as_secs().max(1);
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
                    response
                }
                refused => self.challenge(request, Some(refused)),
            })
        })
    }

    /// The answer to whoever is not known, or may not.
    // RFC 6750, 3; RFC 9728, 5.1; MCP 2026-07-28, "Authorization", "Protected Resource Metadata Discovery".
    fn challenge<B>(&self, request: &Request<B>, refused: Option<Refused>) -> Response {
        let (status, error, words) = match refused {
            // Whoever shows nothing is not told what would be wrong with it.
            None => (
                StatusCode::UNAUTHORIZED,
                String::new(),
                "authentication required: send a token (Authorization: Bearer TOKEN)".to_owned(),
            ),
            Some(Refused::Scope(needed)) => {
                let words =
                    format!("the token lacks a scope that this gateway requires: {}", needed.join(" "));
                (StatusCode::FORBIDDEN, r#", error="insufficient_scope""#.to_owned(), words)
            }
            Some(Refused::Invalid(words) | Refused::Unavailable(words, _)) => {
                let description: String = quoted(&words).chars().take(DESCRIPTION).collect();
                let error = format!(r#", error="invalid_token", error_description="{description}""#);
                (StatusCode::UNAUTHORIZED, error, format!("the token is not accepted: {words}"))
            }
        };
        let mut challenge = format!(r#"Bearer realm="linetender"{error}"#);
        if let Some(bearers) = &self.bearers {
            let scopes = bearers.scopes();
            if !scopes.is_empty() {
                let _ = write!(challenge, r#", scope="{}""#, quoted(&scopes.join(" ")));
            }
            if bearers.issuer().is_some() {
                let document = self.resource.document_of(request.uri(), request.headers());
                let _ = write!(challenge, r#", resource_metadata="{}""#, quoted(&document));
            }
        }
        let mut response = reply::error(status, "null", -32600, &words);
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The token of a request, if it has one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // Whoever reads one must not see somebody else than whoever reads the other.
    if values.next().is_some() {
        return Err("the request has more than one Authorization header");
    }
    let Ok(text) = value.to_str() else { return Err("the Authorization header is not ASCII text") };
    let Some((scheme, token)) = text.split_once(' ') else { return Ok(None) };
    let token = token.trim();
    Ok((scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token))
}

/// The NAME of `/mcp/NAME`, as it is spelt.
fn server(path: &str) -> Option<&str> {
    path.strip_prefix("/mcp/")
}

/// A text as it can stand between quotes in a header.
fn quoted(text: &str) -> String {
    let plain = |c: char| if c == '"' || c == '\\' || !(' '..='~').contains(&c) { '\'' } else { c };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::{bearer, quoted};
    use http::HeaderMap;

    #[test]
    fn a_token_is_what_follows_bearer_and_there_is_one() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("authorization", value.parse().unwrap());
            }
            bearer(&headers).map(|token| token.map(str::to_owned))
        };
        assert_eq!(of(&["Bearer abc"]), Ok(Some("abc".into())));
        assert_eq!(of(&["bEARER  abc "]), Ok(Some("abc".into())));
        for none in [&[] as &[_], &["Bearer"], &["Bearer "], &["Basic abc"], &["abc"]] {
            assert_eq!(of(none), Ok(None), "{none:?}");
        }
        assert!(of(&["Bearer a", "Bearer b"]).is_err());
    }

    #[test]
    fn what_is_quoted_stays_between_its_quotes() {
        assert_eq!(quoted("a \"b\" \\ \u{e9}\r\n"), "a 'b' ' '''");
    }
}

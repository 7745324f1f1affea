//! Requests to the token endpoint, and what may come of one.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method as Verb, StatusCode};
use linetender_core::LossReport;
use linetender_wire::http::{Asker, Reply};
use linetender_wire::wall::wall_clock;
use serde::Deserialize;

use crate::address::Address;
use crate::assertion;
use crate::client::PrivateKey;
use crate::encode;
use crate::error::{Error, ErrorKind, quoted};
use crate::scopes;
use crate::secret::Secret;
use crate::store::record::{ClientRecord, Method};

/// How long a token request may take that can be repeated.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// How long one is waited for that cannot: its answer holds the only token that is still good.
pub(crate) const HEARD_OUT: Duration = Duration::from_secs(60);

/// The longest token that is taken: it travels in a header.
const LONGEST: usize = 32 * 1024;

/// Where and as whom tokens are asked for.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) asker: &'a Asker,
    pub(crate) url: &'a Address,
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a ClientRecord,
    pub(crate) key: Option<&'a PrivateKey>,
}

/// What was issued.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    pub(crate) expires_in: Option<u64>,
    pub(crate) scopes: Option<Vec<String>>,
}

/// Why nothing was.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing reached the authorization server, or it said that it did nothing.
    Undone(Error),
    /// It may have issued tokens that nobody got.
    Unknown(Error),
    /// It refused.
    Refused { code: String, error: Error },
}

impl Failed {
    /// Whether it is the client that is refused.
    pub(crate) fn is_about_client(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if matches!(code.as_str(), "invalid_client" | "unauthorized_client"))
    }

    pub(crate) fn error(self) -> Error {
        match self {
            Self::Undone(error) | Self::Unknown(error) | Self::Refused { error, .. } => error,
        }
    }
}

#[derive(Deserialize)]
struct Issued {
    access_token: Secret,
    token_type: Option<String>,
    refresh_token: Option<Secret>,
    expires_in: Option<serde_json::Value>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
    access_token: Option<serde::de::IgnoredAny>,
}

impl TokenEndpoint<'_> {
    /// Asks for tokens.
    pub(crate) async fn request(&self, form: &[(&str, &str)], within: Duration) -> Result<Tokens, Failed> {
        let (headers, body) = self.message(form).map_err(Failed::Undone)?;
        let asked = self.asker.ask(Verb::POST, self.url.endpoint(), headers, body, within).await;
        let reply = asked.map_err(|broken| {
            let words = format_args!("the authorization server {} could not be asked: {broken}", self.issuer);
            let error = Error::new(ErrorKind::Unreachable, words);
            match broken.report {
                LossReport::NoByteWritten => Failed::Undone(error),
                _ => Failed::Unknown(error),
            }
        })?;
        self.read(&reply)
    }

    /// Tells the authorization server that a token is not needed any more.
    pub(crate) async fn revoke(&self, form: &[(&str, &str)], within: Duration) -> Result<(), Error> {
        let (headers, body) = self.message(form)?;
        let asked = self.asker.ask(Verb::POST, self.url.endpoint(), headers, body, within).await;
        let words = match asked {
            Ok(reply) if reply.status.is_success() => return Ok(()),
            Ok(reply) => format!(
                "the authorization server {} answered with status {}",
                self.issuer,
                reply.status.as_u16()
            ),
            Err(broken) => format!("the authorization server {} could not be asked: {broken}", self.issuer),
        };
        Err(Error::new(ErrorKind::Unreachable, words))
    }

    fn message(&self, form: &[(&str, &str)]) -> Result<(HeaderMap, Bytes), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut pairs: Vec<(&str, &str)> = form.to_vec();
        let secret = self.client.secret.as_ref().map(Secret::expose).unwrap_or_default();
        let assertion;
        match self.client.method {
            Method::None => pairs.push(("client_id", &self.client.id)),
            Method::ClientSecretBasic => {
                let basic = HeaderValue::from_str(&encode::basic(&self.client.id, secret));
                let mut basic = basic
                    .map_err(|_| Error::new(ErrorKind::Config, "the client's id or secret cannot be sent"))?;
                basic.set_sensitive(true);
                headers.insert(AUTHORIZATION, basic);
            }
            Method::ClientSecretPost => {
                pairs.extend([("client_id", self.client.id.as_str()), ("client_secret", secret)]);
            }
            Method::PrivateKeyJwt => {
                let key =
                    self.key.ok_or_else(|| Error::new(ErrorKind::Config, "no private key is configured"))?;
                assertion = assertion::signed(key, &self.client.id, self.issuer, wall_clock())?;
                pairs.extend([
                    ("client_id", self.client.id.as_str()),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", assertion.expose()),
                ]);
            }
        }
        Ok((headers, encode::form(pairs).into()))
    }

    fn read(&self, reply: &Reply) -> Result<Tokens, Failed> {
        let (issuer, status) = (self.issuer, reply.status);
        let refusal = serde_json::from_slice::<Refusal>(&reply.body).ok();
        // Some refuse with status 200 (GitHub). Whoever sends a token has not refused.
        let is_refused = refusal.as_ref().is_some_and(|refusal| refusal.access_token.is_none());
        if status == StatusCode::OK && !is_refused {
            return issued(&reply.body).map_err(|why| {
                let words = format_args!(
                    "the authorization server {issuer} answered a token request with something else: {why}"
                );
                Failed::Unknown(Error::new(ErrorKind::Unreachable, words))
            });
        }
        let after = retry_after(&reply.headers);
        let shown = |refusal: &Refusal| quoted(&refusal.error, refusal.error_description.as_deref());
        match refusal {
            Some(refusal) if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                let words = format_args!("the authorization server {issuer} refused; {}", shown(&refusal));
                // These two are not about the credentials, whatever the status.
                let is_passing = matches!(
                    refusal.error.as_str(),
                    "temporarily_unavailable" | "server_error" | "slow_down"
                );
                if is_passing {
                    return Err(Failed::Unknown(Error::new(ErrorKind::Unreachable, words).after(after)));
                }
                Err(Failed::Refused {
                    code: standard(&refusal.error).to_owned(),
                    error: Error::new(ErrorKind::Refused, words),
                })
            }
            _ => {
                let words = format_args!(
                    "the authorization server {issuer} answered a token request with status {}",
                    status.as_u16()
                );
                let error = Error::new(ErrorKind::Unreachable, words).after(after);
                Err(if status.is_client_error() { Failed::Undone(error) } else { Failed::Unknown(error) })
            }
        }
    }
}

/// The code of RFC 6749 for what GitHub calls something else.
fn standard(code: &str) -> &str {
    match code {
        "bad_refresh_token" | "bad_verification_code" => "invalid_grant",
        "incorrect_client_credentials" => "invalid_client",
        other => other,
    }
}

/// What is wrong with it is said without repeating any of it.
fn issued(body: &[u8]) -> Result<Tokens, &'static str> {
    let issued: Issued = serde_json::from_slice(body).map_err(|_| "it is not JSON with an access_token")?;
    if issued.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token is not a bearer token");
    }
    let is_sendable = |token: &Secret| {
        let text = token.expose();
        !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !is_sendable(&issued.access_token) {
        return Err("the token cannot be sent in a header");
    }
    if issued.refresh_token.as_ref().is_some_and(|token| token.expose().len() > LONGEST) {
        return Err("the refresh token is too long");
    }
    // Some write a number as a text.
    let expires_in = issued.expires_in.and_then(|value| match value {
        serde_json::Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|n| *n >= 0.0).map(whole))
        }
        serde_json::Value::String(text) => text.parse().ok(),
        _ => None,
    });
    Ok(Tokens {
        access: issued.access_token,
        refresh: issued.refresh_token.filter(|token| !token.expose().is_empty()),
        // Zero says nothing: a token that has ended before it was used would not have been issued.
        expires_in: expires_in.filter(|seconds| *seconds > 0),
        scopes: issued.scope.map(|list| scopes::read(&list)),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and a cast saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

/// How long the other side wants to be left alone: an hour at most.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(3600)))
}

#[cfg(test)]
mod tests {
    use super::issued;

    #[test]
    fn tokens_are_read_as_servers_write_them() {
        let tokens =
            issued(br#"{"access_token":"abcdefghij","token_type":"bEARER","expires_in":"60","scope":"a b"}"#)
                .unwrap();
        assert_eq!((tokens.expires_in, tokens.scopes.unwrap().len(), tokens.refresh), (Some(60), 2, None));
        let tokens =
            issued(br#"{"access_token":"abcdefghij","expires_in":59.9,"refresh_token":""}"#).unwrap();
        assert_eq!((tokens.expires_in, tokens.refresh), (Some(59), None));
        assert_eq!(issued(br#"{"access_token":"a","expires_in":-5}"#).unwrap().expires_in, None);
        assert_eq!(issued(br#"{"access_token":"a","expires_in":0}"#).unwrap().expires_in, None);
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_repeated() {
        for body in [
            "nonsense",
            "{}",
            r#"{"access_token":""}"#,
            r#"{"access_token":"a b"}"#,
            r#"{"access_token":"a\r\nx: y"}"#,
            r#"{"access_token":"secret-abcdefghij","token_type":"DPoP"}"#,
            r#"{"access_token":["secret-abcdefghij"]}"#,
        ] {
            let why = issued(body.as_bytes()).unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}

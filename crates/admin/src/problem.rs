//! What is said of a request that is not answered: RFC 9457, with a cause and what to do.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use linetender::visible;
use linetender_holder::holder::NotDone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Body;
use crate::guard::Foreign;

/// Why a request was not answered (RFC 9457).
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Problem {
    /// The kind of problem, for programs: `urn:linetender:problem:unknown-server`.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem, for people.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What is wrong with this request.
    detail: String,
    /// What to do about it.
    advice: String,
    #[serde(skip)]
    header: Option<Box<(http::HeaderName, HeaderValue)>>,
}

/// The media type of it.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

impl Problem {
    fn new(
        status: StatusCode,
        (kind, title): (&str, &'static str),
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            kind: format!("urn:linetender:problem:{kind}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            advice: advice.into(),
            header: None,
        }
    }

    fn with(mut self, name: http::HeaderName, value: &str) -> Self {
        self.header = HeaderValue::from_str(value).ok().map(|value| Box::new((name, value)));
        self
    }

    pub(crate) fn foreign(why: Foreign) -> Self {
        let (status, detail) = match why {
            Foreign::Ambiguous => (StatusCode::BAD_REQUEST, "the request names more than one host or origin"),
            Foreign::Host => (StatusCode::FORBIDDEN, "the Host header names a host that is not this one"),
            Foreign::Origin => {
                (StatusCode::FORBIDDEN, "the Origin header names a web page that is not of this address")
            }
        };
        let advice = "use localhost, an IP address, or a name that is listed in gateway.admin.allowed_hosts; pages of other origins \
                      cannot use this address";
        Self::new(status, ("foreign-request", "Foreign request"), detail, advice)
    }

    pub(crate) fn wrong_token() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            ("wrong-token", "Token missing or wrong"),
            "the request has no Authorization header with the token of this address",
            "send Authorization: Bearer TOKEN, with the token that gateway.admin.token names",
        )
        .with(WWW_AUTHENTICATE, "Bearer realm=\"linetender admin\"")
    }

    pub(crate) fn too_many_wrong() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            ("too-many-wrong-tokens", "Too many wrong tokens"),
            "too many wrong tokens came from this address within a minute",
            "send the token that gateway.admin.token names; it is accepted at any time",
        )
        .with(RETRY_AFTER, "60")
    }

    pub(crate) fn no_route(path: &str) -> Self {
        let detail = format!("there is nothing at {}", visible::cut(path, 200));
        Self::new(
            StatusCode::NOT_FOUND,
            ("no-route", "No such path"),
            detail,
            "GET /openapi.json lists what there is",
        )
    }

    pub(crate) fn wrong_method(allowed: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            ("wrong-method", "Method not allowed"),
            format!("this path takes {allowed} alone"),
            "GET /openapi.json lists the methods of each path",
        )
        .with(ALLOW, allowed)
    }

    pub(crate) fn no_server(names: &[String]) -> Self {
        let names: Vec<_> = names.iter().map(|name| visible::cut(name, 100)).collect();
        let advice = if names.is_empty() {
            "the gateway has no servers yet; wait until it has started".to_owned()
        } else {
            visible::cut(&format!("use one of: {}", names.join(", ")), 4000)
        };
        let detail = "the gateway has no server of this name";
        Self::new(StatusCode::NOT_FOUND, ("unknown-server", "Unknown server"), detail, advice)
    }

    pub(crate) fn not_done(why: NotDone, what_next: &str) -> Self {
        match why {
            NotDone::NoServer(names) => Self::no_server(&names),
            NotDone::NotHere(why) => {
                let advice = "this process cannot do it; use the command line on its machine instead";
                Self::new(StatusCode::CONFLICT, ("not-here", "Not possible here"), why, advice)
            }
            NotDone::Failed(why) => Self::new(
                StatusCode::CONFLICT,
                ("failed", "It was tried, and failed"),
                visible::cut(&linetender::hide_secrets(&why), 2000),
                what_next,
            ),
        }
    }

    pub(crate) fn wrong_body(detail: impl Into<String>, advice: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ("wrong-body", "Malformed body"), detail, advice)
    }

    pub(crate) fn wrong_query(detail: impl Into<String>, advice: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ("wrong-query", "Malformed query"), detail, advice)
    }

    pub(crate) fn too_large(most: usize) -> Self {
        let detail = format!("the body is longer than {most} bytes");
        let advice = "no request to this address needs a body of that size";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ("too-large", "Body too large"), detail, advice)
    }

    pub(crate) fn not_json() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ("not-json", "Unsupported media type"),
            "the body is not declared to be JSON",
            "send Content-Type: application/json",
        )
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            ("too-slow", "Body took too long"),
            "the body of the request did not come within 10 s",
            "send it again at once",
        )
    }

    pub(crate) fn busy(detail: String) -> Self {
        let advice = "close one of them, or try again in a few seconds";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ("busy", "Too many at once"), detail, advice)
            .with(RETRY_AFTER, "5")
    }

    pub(crate) fn late() -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            ("late", "Not done in time"),
            "it is not done yet, and may still come to its end",
            "GET /api/v1/status shows where the server stands",
        )
    }

    pub(crate) fn response(self) -> Response<Body> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&self).unwrap_or_default();
        let mut response = Response::new(Body::whole(Bytes::from(visible::json(&text).into_owned())));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

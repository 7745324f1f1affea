//! Who may talk to us. A web page that got its name to point at this machine is not one of them.
// MCP, Streamable HTTP, "Security": servers MUST validate the Origin header.

use std::collections::HashSet;
use std::net::IpAddr;

use axum::response::Response;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Request, StatusCode, Uri};

use super::reply;
use crate::config::Settings;

/// The names that are let in.
#[derive(Debug)]
pub(super) struct Guard {
    hosts: HashSet<String>,
    origins: HashSet<String>,
}

impl Guard {
    pub(super) fn new(settings: &Settings) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { hosts: lower(&settings.allowed_hosts), origins: lower(&settings.allowed_origins) }
    }

    /// The answer to a request that is not let in.
    pub(super) fn refused<B>(&self, request: &Request<B>) -> Option<Response> {
        // A service manager may be so old as to name no host. A page always names one.
        let nameless = request.headers().get(HOST).is_none() && request.uri().authority().is_none();
        if nameless && matches!(request.uri().path(), "/healthz" | "/readyz") {
            return None;
        }
        let why = self.refuses(request.uri(), request.headers())?;
        Some(reply::error(StatusCode::FORBIDDEN, "null", -32600, why))
    }

    /// Why a request is not let in.
    fn refuses(&self, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or(""));
        // HTTP/2 has no Host, but an authority.
        let host = text(HOST).or_else(|| uri.authority().map(http::uri::Authority::as_str)).unwrap_or("");
        if !self.is_ours(host) {
            return Some("Host header not allowed (gateway.allowed_hosts)");
        }
        match text(ORIGIN) {
            Some(origin) if !self.is_welcome(origin) => {
                Some("Origin header not allowed (gateway.allowed_origins)")
            }
            _ => None,
        }
    }

    /// A name that has to be looked up can be made to point anywhere; an address cannot.
    fn is_ours(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = name_of(&host);
        name == "localhost"
            || address(name).is_some()
            || self.hosts.contains(&host)
            || self.hosts.contains(name)
    }

    fn is_welcome(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        let name = name_of(host);
        self.origins.contains(&origin)
            || name == "localhost"
            || address(name).is_some_and(|address| address.is_loopback())
    }
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn address(name: &str) -> Option<IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Guard;
    use crate::config::Settings;
    use http::{HeaderMap, Request, Uri};

    #[test]
    fn only_names_of_this_machine_and_those_that_were_named_get_in() {
        let settings = Settings {
            allowed_hosts: vec!["mcp.example.com".into()],
            allowed_origins: vec!["https://app.example.com".into()],
            ..Settings::default()
        };
        let guard = Guard::new(&settings);
        for (host, origin, is) in [
            ("localhost:7331", None, true),
            ("127.0.0.1", None, true),
            ("[::1]:7331", Some("http://localhost:1234"), true),
            ("192.168.1.5:7331", None, true),
            ("MCP.example.com:7331", Some("https://app.example.com"), true),
            ("evil.example.com", None, false),
            ("localhost.evil.com:80", None, false),
            ("", None, false),
            ("localhost", Some("http://evil.example.com"), false),
            ("localhost", Some("null"), false),
            ("localhost", Some("http://192.168.1.9"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("origin", origin.parse().unwrap());
            }
            let refused = guard.refuses(&Uri::from_static("/mcp"), &headers);
            assert_eq!(refused.is_none(), is, "{host} {origin:?}: {refused:?}");
        }
    }

    #[test]
    fn a_service_manager_may_name_no_host_and_nobody_else() {
        let guard = Guard::new(&Settings::default());
        for (path, host, is) in [
            ("/readyz", None, true),
            ("/healthz", None, true),
            ("/mcp", None, false),
            ("/readyz", Some("evil.example.com"), false),
            ("/readyz", Some(""), false),
        ] {
            let mut request = Request::get(path);
            if let Some(host) = host {
                request = request.header("host", host);
            }
            assert_eq!(guard.refused(&request.body(()).unwrap()).is_none(), is, "{path} {host:?}");
        }
    }
}

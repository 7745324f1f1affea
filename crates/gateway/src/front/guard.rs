//! Who may talk to us. A web page that got its name to point at this machine is not one of them.
// MCP, Streamable HTTP, "Security": servers MUST validate the Origin header.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use axum::response::Response;
use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};

use super::accept::By;
use super::metadata::WELL_KNOWN;
use super::reply;
use crate::config::Settings;

/// The names that are let in.
#[derive(Debug)]
pub(super) struct Guard {
    hosts: HashSet<String>,
    origins: HashSet<String>,
    /// What the address speaks.
    scheme: Scheme,
}

/// What an address speaks: how the origin of its own pages begins, and the port of a host without one.
#[derive(Clone, Copy, Debug)]
struct Scheme {
    name: &'static str,
    port: &'static str,
}

const HTTP: Scheme = Scheme { name: "http", port: ":80" };
const HTTPS: Scheme = Scheme { name: "https", port: ":443" };

impl Guard {
    pub(super) fn new(settings: &Settings) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let scheme = if settings.tls_certificate.is_some() { HTTPS } else { HTTP };
        let mut hosts: HashSet<String> = lower(&settings.allowed_hosts);
        // What the gateway is called from outside is a name of its own.
        hosts.extend(settings.public_url.as_deref().and_then(host_of).map(str::to_ascii_lowercase));
        Self { hosts, origins: lower(&settings.allowed_origins), scheme }
    }

    /// The answer to a request that is not let in.
    pub(super) fn refused<B>(&self, request: &Request<B>, by: By) -> Option<Response> {
        let health = asks_for(request.uri().path()) == For::Health;
        let why = match by {
            // A service manager may be so old as to name no host. A page always names one.
            By::Tcp(_) if health && is_nameless(request) => None,
            By::Tcp(_) => self.refuses(request.uri(), request.headers()),
            // No name led to a socket, and no browser opens one.
            By::Unix if request.headers().contains_key(ORIGIN) => Some(Why::Origin),
            By::Unix => None,
        };
        why.map(|why| reply::error(why.status(), "null", -32600, why.words()))
    }

    /// The page that a request comes from, if it comes from one that is let in.
    pub(super) fn origin<'a, B>(&self, request: &'a Request<B>, by: By) -> Option<&'a HeaderValue> {
        let origin = request.headers().get(ORIGIN)?;
        let is_let_in = matches!(by, By::Tcp(_)) && self.refuses(request.uri(), request.headers()).is_none();
        is_let_in.then_some(origin)
    }

    /// Why a request is not let in.
    fn refuses(&self, uri: &Uri, headers: &HeaderMap) -> Option<Why> {
        let Ok(host) = only(headers, &HOST) else { return Some(Why::Ambiguous) };
        // HTTP/2 has no Host, but an authority; a request to a proxy has both. Whoever reads one must not see another host than
        // whoever reads the other.
        let authority = uri.authority().map(http::uri::Authority::as_str);
        let host = match (host, authority) {
            (Some(host), Some(authority)) if !self.scheme.is_same_host(host, authority) => {
                return Some(Why::Ambiguous);
            }
            (Some(host), _) | (None, Some(host)) => host.to_ascii_lowercase(),
            (None, None) => String::new(),
        };
        if !self.is_ours(&host) {
            return Some(Why::Host);
        }
        match only(headers, &ORIGIN) {
            Err(Doubled) => Some(Why::Ambiguous),
            Ok(Some(origin)) if !self.is_welcome(&origin.to_ascii_lowercase(), &host) => Some(Why::Origin),
            Ok(_) => None,
        }
    }

    /// A name that has to be looked up can be made to point anywhere; an address cannot.
    fn is_ours(&self, host: &str) -> bool {
        let name = name_of(host);
        name == "localhost" || is_address(name) || self.hosts.contains(host) || self.hosts.contains(name)
    }

    /// A page of our own, or one that was named. Any other on this machine is somebody's: a page of a development server runs
    /// code that nobody here has read.
    fn is_welcome(&self, origin: &str, host: &str) -> bool {
        if self.origins.contains(origin) {
            return true;
        }
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let of_any_port = format!("{scheme}://{}:*", name_of(rest));
        let is_whole = !rest.contains(['/', '@', ' ']);
        let is_own = scheme == self.scheme.name && self.scheme.is_same_host(rest, host);
        is_whole && (self.origins.contains(&of_any_port) || is_own)
    }
}

impl Scheme {
    /// Whether both name the same host and port.
    fn is_same_host(self, one: &str, other: &str) -> bool {
        let plain = |host: &'_ str| host.strip_suffix(self.port).unwrap_or(host).to_ascii_lowercase();
        plain(one) == plain(other)
    }
}

/// What a request asks for, as far as it matters who asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum For {
    /// How the gateway is: that is for everybody.
    Health,
    /// How to get a token.
    Token,
    /// Servers, and what is kept for somebody.
    Servers,
}

/// What this path leads to.
pub(super) fn asks_for(path: &str) -> For {
    match path {
        "/healthz" | "/readyz" => For::Health,
        path if path.starts_with(WELL_KNOWN) => For::Token,
        _ => For::Servers,
    }
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Why {
    /// It names two hosts or two origins.
    Ambiguous,
    Host,
    Origin,
}

impl Why {
    const fn status(self) -> StatusCode {
        match self {
            Self::Ambiguous => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Ambiguous => "the request names more than one host or origin",
            Self::Host => "Host header not allowed (gateway.allowed_hosts)",
            Self::Origin => "Origin header not allowed (gateway.allowed_origins)",
        }
    }
}

/// A header that may be there once is there twice.
struct Doubled;

/// The one value of a header; one that is no text is nobody's name.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Doubled> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Doubled),
        (first, None) => Ok(first.map(|value| value.to_str().unwrap_or(""))),
    }
}

fn is_nameless<B>(request: &Request<B>) -> bool {
    !request.headers().contains_key(HOST)
        && request.uri().authority().is_none()
        && !request.headers().contains_key(ORIGIN)
}

/// The host in an address, with its port if it has one.
fn host_of(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split('/').next()
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// An address as it is written in a URL.
fn is_address(name: &str) -> bool {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{By, For, Guard, asks_for};
    use crate::config::Settings;
    use http::Request;

    const HERE: By = By::Tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// The status that a request gets, or 200.
    fn status(guard: &Guard, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let refused = guard.refused(&request.body(()).unwrap(), HERE);
        refused.map_or(200, |refused| refused.status().as_u16())
    }

    #[test]
    fn only_names_of_this_machine_and_those_that_were_named_get_in() {
        let settings = Settings {
            allowed_hosts: vec!["mcp.example.com".into()],
            public_url: Some("https://Public.example.com/linetender".into()),
            allowed_origins: vec!["https://app.example.com".into()],
            ..Settings::default()
        };
        let guard = Guard::new(&settings);
        for (host, origin, is) in [
            ("localhost:7331", None, 200),
            ("127.0.0.1", None, 200),
            ("[::1]:7331", None, 200),
            ("192.168.1.5:7331", None, 200),
            ("MCP.example.com:7331", Some("https://app.example.com"), 200),
            ("public.example.com", None, 200),
            ("localhost:7331", Some("HTTPS://App.example.com"), 200),
            ("evil.example.com", None, 403),
            ("localhost.evil.com:80", None, 403),
            ("[::1", None, 403),
            ("::1", None, 403),
            ("evil@localhost", None, 403),
            ("localhost:evil", None, 403),
            ("", None, 403),
            ("localhost", Some("http://evil.example.com"), 403),
            ("localhost", Some("null"), 403),
            ("localhost", Some(""), 403),
            ("localhost", Some("http://192.168.1.9"), 403),
        ] {
            let mut headers = vec![("host", host)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(status(&guard, "/mcp", &headers), is, "{host} {origin:?}");
        }
    }

    #[test]
    fn x04_a_page_on_this_machine_is_trusted_only_if_it_was_named() {
        let guard = Guard::new(&Settings::default());
        let named = Settings { allowed_origins: vec!["http://localhost:*".into()], ..Settings::default() };
        let named = Guard::new(&named);
        for (origin, usually, if_named) in [
            ("http://localhost:3000", 403, 200),
            ("http://localhost", 403, 200),
            ("http://127.0.0.1:3000", 403, 403),
            ("https://localhost:3000", 403, 403),
            ("http://localhost.evil.com", 403, 403),
            ("http://localhost@evil.com", 403, 403),
            ("http://evil.com/://localhost", 403, 403),
            ("http://localhost/x:1", 403, 403),
            // A page of the gateway's own, which is what some programs send that are none.
            ("http://localhost:7331", 200, 200),
        ] {
            let headers = [("host", "localhost:7331"), ("origin", origin)];
            assert_eq!(status(&guard, "/mcp", &headers), usually, "{origin}");
            assert_eq!(status(&named, "/mcp", &headers), if_named, "{origin}");
        }
    }

    #[test]
    fn over_tls_a_page_of_the_gateways_own_is_one_of_https() {
        let file = |path: &str| Some(std::path::PathBuf::from(path).try_into().unwrap());
        let guard =
            Guard::new(&Settings { tls_certificate: file("/c"), tls_key: file("/k"), ..Settings::default() });
        for (host, origin, is) in [
            ("localhost:7331", "https://localhost:7331", 200),
            ("localhost", "https://localhost:443", 200),
            ("localhost:443", "https://localhost", 200),
            ("localhost:7331", "http://localhost:7331", 403),
            ("localhost:80", "https://localhost", 403),
            ("localhost", "https://localhost:80", 403),
        ] {
            assert_eq!(status(&guard, "/mcp", &[("host", host), ("origin", origin)]), is, "{host} {origin}");
        }
        assert_eq!(status(&guard, "https://localhost/mcp", &[("host", "localhost:443")]), 200);
        assert_eq!(status(&guard, "https://localhost/mcp", &[("host", "localhost:80")]), 400);
    }

    #[test]
    fn x04_a_request_that_names_two_hosts_or_two_origins_is_nobodys() {
        let guard = Guard::new(&Settings::default());
        for (target, headers, is) in [
            ("/mcp", &[("host", "localhost"), ("host", "evil.com")] as &[_], 400),
            ("/mcp", &[("host", "evil.com"), ("host", "localhost")], 400),
            ("/mcp", &[("host", "localhost"), ("host", "localhost")], 400),
            ("http://evil.com/mcp", &[("host", "localhost")], 400),
            ("http://localhost/mcp", &[("host", "evil.com")], 400),
            ("http://evil.com/readyz", &[("host", "localhost")], 400),
            ("http://localhost/mcp", &[("host", "LOCALHOST:80")], 200),
            ("http://localhost:7331/mcp", &[], 200),
            ("http://evil.com/mcp", &[], 403),
            (
                "/mcp",
                &[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.com")],
                400,
            ),
        ] {
            assert_eq!(status(&guard, target, headers), is, "{target} {headers:?}");
        }
    }

    #[test]
    fn a_service_manager_may_name_no_host_and_nobody_else() {
        let guard = Guard::new(&Settings::default());
        for (path, host, is) in [
            ("/readyz", None, 200),
            ("/healthz", None, 200),
            ("/mcp", None, 403),
            ("/readyz", Some("evil.example.com"), 403),
            ("/readyz", Some(""), 403),
        ] {
            let headers: Vec<_> = host.into_iter().map(|host| ("host", host)).collect();
            assert_eq!(status(&guard, path, &headers), is, "{path} {host:?}");
        }
    }

    #[test]
    fn x04_strangers_may_ask_for_health_and_how_to_get_in_and_for_nothing_else() {
        for (path, is) in [
            ("/mcp", For::Servers),
            ("/mcp/a", For::Servers),
            ("/healthz", For::Health),
            ("/readyz", For::Health),
            ("/readyz/", For::Servers),
            ("/.well-known/oauth-protected-resource/mcp/a", For::Token),
            ("/anything", For::Servers),
        ] {
            assert_eq!(asks_for(path), is, "{path}");
        }
    }

    #[test]
    fn x04_at_the_socket_a_host_says_nothing_and_a_page_is_refused() {
        let guard = Guard::new(&Settings { allowed_origins: vec!["http://a".into()], ..Settings::default() });
        let of = |name: &str, value: &str| {
            let request = Request::get("/mcp").header(name, value).body(()).unwrap();
            guard.refused(&request, By::Unix).is_none()
        };
        assert!(of("host", "whatever") && !of("origin", "http://a"));
    }
}

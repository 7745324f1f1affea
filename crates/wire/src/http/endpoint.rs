//! Where a server is: an address that was looked at once, so that nothing later can fail on its spelling.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

use super::broken::{Broken, Phase};

/// The longest address that is taken, from a person or from a redirect.
pub const URL_LIMIT: usize = 8192;

/// What the address of a Unix socket begins with.
const UNIX: &str = "unix:";

/// The longest path that a socket can have.
const SOCKET_LIMIT: usize = 107;

/// The address of an MCP endpoint.
#[derive(Clone, Eq, PartialEq)]
pub struct Endpoint {
    /// The Unix socket where it is reached.
    socket: Option<Arc<Path>>,
    secure: bool,
    authority: Authority,
    path: PathAndQuery,
}

impl Endpoint {
    /// Reads `http://…`, `https://…`, or `unix:/path/to/socket` and, behind another colon, the path of the request (`/mcp`
    /// if there is none).
    ///
    /// # Errors
    /// If it is something else, or holds a user and password.
    pub fn new(url: &str) -> Result<Self, Broken> {
        if let Some(rest) = url.strip_prefix(UNIX) {
            return Self::at_socket(rest, url);
        }
        // Whatever stands there instead of an address may be a secret, so it is not repeated.
        let bad = |words: &str| Broken::unsent(Phase::Url, words);
        if url.len() > URL_LIMIT {
            return Err(Broken::unsent(Phase::Url, "the URL is too long"));
        }
        let uri: Uri = url.parse().map_err(|_| bad("not a URL"))?;
        let parts = uri.into_parts();
        let secure = match parts.scheme.as_ref().map(Scheme::as_str) {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad("not an http:// or https:// URL")),
        };
        let authority = parts.authority.ok_or_else(|| bad("no host in the URL"))?;
        if authority.as_str().contains('@') {
            return Err(bad("credentials in a URL end up in logs; use a header instead"));
        }
        if authority.host().is_empty() || HeaderValue::from_str(authority.as_str()).is_err() {
            return Err(bad("no host in the URL"));
        }
        // What follows the host is a port, and one that is none must not become 80.
        if authority.as_str().len() > authority.host().len() && authority.port_u16().is_none() {
            return Err(bad("invalid port in the URL"));
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        // A query alone: HTTP/1 is sent the text, which has a slash before it, and HTTP/2 what is here (RFC 9113, 8.3.1: "MUST start").
        let has_slash = path.as_str().starts_with('/');
        let path = if has_slash { path } else { path.to_string().parse().map_err(|_| bad("not a URL"))? };
        Ok(Self { socket: None, secure, authority, path })
    }

    fn at_socket(rest: &str, url: &str) -> Result<Self, Broken> {
        let bad = |words: &str| Broken::unsent(Phase::Url, format_args!("{words}: {url}"));
        // `unix:///run/x.sock` is how others write it.
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (socket, path) = match rest.find(":/") {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, "/mcp"),
        };
        if !socket.starts_with('/') || socket.len() > SOCKET_LIMIT {
            return Err(bad("expected unix: and the absolute path of a socket (107 bytes at most)"));
        }
        let path = path.parse().map_err(|_| bad("not the path of a request"))?;
        let authority = Authority::from_static("localhost");
        Ok(Self { socket: Some(Path::new(socket).into()), secure: false, authority, path })
    }

    /// The Unix socket where it is reached, if that is not by name and port.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Whether it is `https`.
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host, without brackets if it is an IPv6 address.
    pub fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, named or not.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.secure { 443 } else { 80 })
    }

    /// Scheme, host and port are the same.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.secure == other.secure
            && self.socket == other.socket
            && self.port() == other.port()
            && self.host().eq_ignore_ascii_case(other.host())
    }

    /// The path and the query.
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    pub(super) fn host_header(&self) -> HeaderValue {
        HeaderValue::from_str(self.authority.as_str()).unwrap_or(HeaderValue::from_static(""))
    }

    /// The request's target as a server wants it.
    pub(super) fn origin_form(&self) -> Uri {
        Uri::from(self.path.clone())
    }

    /// The request's target as a proxy and HTTP/2 want it.
    pub(super) fn absolute_form(&self) -> Uri {
        let scheme = if self.secure { Scheme::HTTPS } else { Scheme::HTTP };
        let whole = Uri::builder()
            .scheme(scheme)
            .authority(self.authority.clone())
            .path_and_query(self.path.clone())
            .build();
        // All three parts were taken from an address that was whole.
        whole.unwrap_or_default()
    }

    /// Where a redirect leads.
    pub(super) fn join(&self, location: &str) -> Option<Self> {
        if self.socket.is_some() {
            // Nothing but another path leads to the same socket.
            let path = location
                .strip_prefix('/')
                .filter(|rest| !rest.starts_with('/'))
                .and(location.parse().ok())?;
            return Some(Self { path, ..self.clone() });
        }
        let scheme = if self.secure { "https" } else { "http" };
        let authority = &self.authority;
        let whole = if location.starts_with("//") {
            format!("{scheme}:{location}")
        } else if location.starts_with('/') {
            format!("{scheme}://{authority}{location}")
        } else if location.contains("://") {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{scheme}://{authority}{}{location}", self.path.path())
        } else {
            let folder = self.path.path().rfind('/').map_or("/", |at| &self.path.path()[..=at]);
            format!("{scheme}://{authority}{folder}{location}")
        };
        Self::new(&whole).ok()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = &self.socket {
            return write!(f, "{UNIX}{}:{}", socket.display(), self.path);
        }
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may hold a key.
        write!(f, "Endpoint({}{})", self.authority, self.path.path())
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn an_address_that_cannot_work_is_a_matter_of_configuration() {
        for url in [
            "",
            "example.test",
            "ftp://h/",
            "http://",
            "http://u:p@h/",
            "https:///x",
            "http://a b/",
            "http://h:99999/",
            "http://h:/",
            "stdio:x",
        ] {
            let broken = Endpoint::new(url).unwrap_err();
            assert!(broken.is_config() && !broken.to_string().contains("u:p"), "{url}: {broken}");
        }
    }

    #[test]
    fn ports_and_brackets_are_understood() {
        for (url, host, port, path) in [
            ("http://h", "h", 80, "/"),
            ("https://h?k=1", "h", 443, "/?k=1"),
            ("https://h/mcp?a=b", "h", 443, "/mcp?a=b"),
            ("http://[::1]:8080/mcp", "::1", 8080, "/mcp"),
        ] {
            let endpoint = Endpoint::new(url).unwrap();
            assert_eq!((endpoint.host(), endpoint.port(), endpoint.path()), (host, port, path));
        }
        let (one, other) = (Endpoint::new("https://H/a").unwrap(), Endpoint::new("https://h:443/b").unwrap());
        assert!(one.same_origin(&other) && !one.same_origin(&Endpoint::new("http://h:443/").unwrap()));
    }

    #[test]
    fn a_unix_socket_has_a_path_and_a_request_has_another() {
        for (url, socket, path) in [
            ("unix:/run/x.sock", "/run/x.sock", "/mcp"),
            ("unix:///run/x.sock", "/run/x.sock", "/mcp"),
            ("unix:/run/x.sock:/mcp/git", "/run/x.sock", "/mcp/git"),
            ("unix:/run/a:b.sock:/mcp", "/run/a:b.sock", "/mcp"),
        ] {
            let endpoint = Endpoint::new(url).unwrap();
            assert_eq!((endpoint.socket().unwrap().to_str().unwrap(), endpoint.path()), (socket, path));
            assert_eq!(endpoint.host_header(), "localhost");
            assert_eq!(Endpoint::new(&endpoint.to_string()).unwrap(), endpoint);
            assert!(!endpoint.same_origin(&Endpoint::new("http://localhost/").unwrap()));
            assert_eq!(endpoint.join("/x").unwrap().to_string(), format!("unix:{socket}:/x"));
            assert!(endpoint.join("http://localhost/x").is_none() && endpoint.join("//h/x").is_none());
        }
        for url in
            ["unix:", "unix:x.sock", "unix://host/x", "unix:/x:/a b", &format!("unix:/{}", "x".repeat(107))]
        {
            assert!(Endpoint::new(url).is_err_and(|broken| broken.is_config()), "{url}");
        }
    }

    #[test]
    fn a_redirect_is_read_as_a_browser_would() {
        let from = Endpoint::new("http://h:1/a/b?q").unwrap();
        for (location, to) in [
            ("/x", "http://h:1/x"),
            ("c?d", "http://h:1/a/c?d"),
            ("?d", "http://h:1/a/b?d"),
            ("//o/x", "http://o/x"),
            ("https://o/x", "https://o/x"),
        ] {
            assert_eq!(from.join(location).unwrap().to_string(), to);
        }
        assert!(from.join("javascript://x").is_none());
    }
}

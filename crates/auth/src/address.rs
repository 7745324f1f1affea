//! Addresses that linetender goes to with credentials, or because a stranger named them.
//!
//! `https` everywhere; `http` on this machine alone. An address that was discovered may not lead further inside than the
//! server itself is: a server on the internet does not get linetender to ask this machine or its network something. Hosts
//! are looked at as they are spelt; what a name resolves to is not.

use std::fmt;
use std::net::IpAddr;

use linetender_wire::http::Endpoint;

use crate::error::{Error, ErrorKind};

/// An address as it was spelt, and as it is reached.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct Address {
    text: Box<str>,
    endpoint: Endpoint,
}

/// How far inside an address is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Reach {
    Public,
    Private,
    LinkLocal,
    Loopback,
}

impl Address {
    /// Of the MCP server itself, as the user configured it.
    pub(crate) fn of_server(url: &str) -> Result<Self, Error> {
        Self::read(url, "the server")
    }

    /// One that was discovered, starting from a server.
    pub(crate) fn found(url: &str, whose: &str, server: &Self) -> Result<Self, Error> {
        let address = Self::read(url, whose)?;
        if address.reach() > server.reach() {
            return Err(Error::new(
                ErrorKind::Address,
                format_args!(
                    "{whose} is at {}, further inside this network than the server at {server}; linetender does not go there",
                    address.origin()
                ),
            ));
        }
        Ok(address)
    }

    fn read(url: &str, whose: &str) -> Result<Self, Error> {
        let bad = |words: &dyn fmt::Display| {
            Error::new(ErrorKind::Address, format_args!("the address of {whose} cannot be used: {words}"))
        };
        let endpoint = Endpoint::new(url).map_err(|broken| bad(&broken.words))?;
        if endpoint.socket().is_some() {
            return Err(bad(&"nobody logs in to a Unix socket"));
        }
        if url.contains('#') {
            return Err(bad(&"it has a fragment"));
        }
        let address = Self { text: url.into(), endpoint };
        if !address.endpoint.is_secure() && address.reach() != Reach::Loopback {
            return Err(bad(&format_args!(
                "{} is not https, and tokens would travel unprotected",
                address.origin()
            )));
        }
        Ok(address)
    }

    /// As it was spelt.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// `https://host:port`, the port only if it is not the usual one.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.endpoint.is_secure() { "https" } else { "http" };
        let usual = if self.endpoint.is_secure() { 443 } else { 80 };
        let host = self.endpoint.host().to_ascii_lowercase();
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        match self.endpoint.port() {
            port if port == usual => format!("{scheme}://{host}"),
            port => format!("{scheme}://{host}:{port}"),
        }
    }

    /// The path without query, and without the slash at its end; empty at the root.
    pub(crate) fn path(&self) -> &str {
        let path = self.endpoint.path();
        path.split_once('?').map_or(path, |(path, _)| path).trim_end_matches('/')
    }

    /// One spelling for all that mean the same server: the key of the store.
    pub(crate) fn canonical(&self) -> String {
        let query = self.endpoint.path().split_once('?').map(|(_, query)| format!("?{query}"));
        format!("{}{}{}", self.origin(), self.path(), query.unwrap_or_default())
    }

    /// Whether a resource of this address covers the server: the same origin, and a path that leads to it.
    pub(crate) fn covers(&self, server: &Self) -> bool {
        let below = server.path().strip_prefix(self.path());
        self.endpoint.same_origin(server.endpoint())
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn reach(&self) -> Reach {
        let host = self.endpoint.host();
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => of_v4(ip),
            Ok(IpAddr::V6(ip)) => match ip.to_ipv4_mapped() {
                Some(ip) => of_v4(ip),
                None if ip.is_loopback() || ip.is_unspecified() => Reach::Loopback,
                None if ip.is_unicast_link_local() => Reach::LinkLocal,
                None if ip.is_unique_local() => Reach::Private,
                None => Reach::Public,
            },
            Err(_) => {
                let name = host.trim_end_matches('.').to_ascii_lowercase();
                let is_local = name == "localhost" || name.ends_with(".localhost");
                if is_local { Reach::Loopback } else { Reach::Public }
            }
        }
    }
}

fn of_v4(ip: std::net::Ipv4Addr) -> Reach {
    if ip.is_loopback() || ip.is_unspecified() {
        Reach::Loopback
    } else if ip.is_link_local() {
        Reach::LinkLocal
    } else if ip.is_private() {
        Reach::Private
    } else {
        Reach::Public
    }
}

/// Without the query, which may hold a key.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    fn at(url: &str) -> Address {
        Address::of_server(url).unwrap()
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        for good in [
            "https://h/mcp",
            "http://127.0.0.1:1/x",
            "http://[::1]:1",
            "http://localhost/",
            "http://127.9.9.9/",
        ] {
            at(good);
        }
        for bad in
            ["http://h/mcp", "http://10.0.0.1/", "ftp://h", "unix:/run/x", "https://h/#f", "https://u:p@h/"]
        {
            assert!(Address::of_server(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_server_outside_cannot_name_an_address_inside() {
        let outside = at("https://mcp.example.com/mcp");
        for inside in [
            "http://127.0.0.1:9/",
            "https://localhost/",
            "https://169.254.169.254/latest",
            "https://10.1.2.3/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://x.localhost./",
        ] {
            assert!(Address::found(inside, "it", &outside).is_err(), "{inside}");
        }
        Address::found("https://login.example.org", "it", &outside).unwrap();
        Address::found("http://127.0.0.1:9/", "it", &at("http://localhost:1/mcp")).unwrap();
        assert!(Address::found("https://169.254.169.254/", "it", &at("https://10.0.0.1/mcp")).is_err());
    }

    #[test]
    fn a_resource_covers_what_is_below_it() {
        let server = at("https://h/a/mcp");
        for (resource, covers) in [
            ("https://h", true),
            ("https://H:443/", true),
            ("https://h/a", true),
            ("https://h/a/mcp", true),
            ("https://h/a/mcp/", true),
            ("https://h/a/mc", false),
            ("https://h/a/mcp/x", false),
            ("https://evil.example.com/a/mcp", false),
            ("https://h:8443/a/mcp", false),
        ] {
            assert_eq!(at(resource).covers(&server), covers, "{resource}");
        }
    }

    #[test]
    fn one_server_has_one_spelling() {
        assert_eq!(at("https://H:443/mcp/").canonical(), "https://h/mcp");
        assert_eq!(at("http://[::1]:80/").canonical(), "http://[::1]");
        assert_eq!(at("https://h/mcp?k=v").canonical(), "https://h/mcp?k=v");
        assert!(!at("https://h/mcp?k=v").to_string().contains("k=v"));
    }
}

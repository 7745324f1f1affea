//! Addresses that linetender goes to with credentials, or because a stranger named them.
//!
//! `https` everywhere; `http` on this machine alone. An address that was discovered may not lead further inside than the
//! server itself is: a server on the internet does not get linetender to ask this machine or its network something. Hosts
//! are looked at as they are spelt; what a name resolves to is not.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

    /// One that was configured for something else.
    pub(crate) fn configured(url: &str, whose: &str) -> Result<Self, Error> {
        Self::read(url, whose)
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
        let host = self.endpoint.host().trim_end_matches('.').to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => of_v4(ip),
            Ok(IpAddr::V6(ip)) => of_v6(ip),
            Err(_) if is_number(&host) => numbers(&host).map_or(Reach::LinkLocal, of_v4),
            Err(_) => {
                let is_local = matches!(host.as_str(), "localhost" | "ip6-localhost" | "ip6-loopback")
                    || host.ends_with(".localhost");
                if is_local { Reach::Loopback } else { Reach::Public }
            }
        }
    }
}

/// Whether a resolver takes this for an address in numbers: its last part is one.
fn is_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_hex = last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hex || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An IPv4 address as `inet_aton` reads it: up to four parts, octal and hexadecimal too, the last of which fills the rest
/// (`127.1`, `0x7f000001`).
fn numbers(host: &str) -> Option<Ipv4Addr> {
    let part = |text: &str| match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(""), _) => Some(0),
        (Some(hex), _) => u32::from_str_radix(hex, 16).ok(),
        (None, Some(octal)) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    };
    let mut parts: Vec<u32> = host.split('.').map(part).collect::<Option<_>>()?;
    let last = parts.pop().filter(|_| parts.len() < 4)?;
    let room = 8 * (4 - u32::try_from(parts.len()).ok()?);
    let mut whole = (u64::from(last) < 1 << room).then_some(last)?;
    for (place, part) in parts.into_iter().enumerate() {
        whole |= u32::from(u8::try_from(part).ok()?) << (24 - 8 * u32::try_from(place).ok()?);
    }
    Some(Ipv4Addr::from(whole))
}

fn of_v4(ip: Ipv4Addr) -> Reach {
    let [first, second, ..] = ip.octets();
    // For providers (100.64/10, with a cloud's metadata at 100.100.100.200), for benchmarks (198.18/15), for nobody.
    let is_special = match first {
        0 | 224.. => true,
        100 => second & 0xc0 == 64,
        192 => second == 0 && ip.octets()[2] == 0,
        198 => second & 0xfe == 18,
        _ => false,
    };
    if ip.is_loopback() || ip.is_unspecified() {
        Reach::Loopback
    } else if ip.is_link_local() {
        Reach::LinkLocal
    } else if ip.is_private() || is_special {
        Reach::Private
    } else {
        Reach::Public
    }
}

fn of_v6(ip: Ipv6Addr) -> Reach {
    if ip.is_loopback() || ip.is_unspecified() {
        return Reach::Loopback;
    }
    let parts = ip.segments();
    let v4 = |high: u16, low: u16| of_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match parts {
        // Mapped, compatible, and translated on the way (RFC 6052): the IPv4 address counts.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        // 6to4.
        [0x2002, high, low, ..] => v4(high, low),
        // RFC 8215: translated too, however this network does it.
        [0x64, 0xff9b, 1, ..] => Reach::Private,
        [0xfe80..=0xfebf, ..] => Reach::LinkLocal,
        // Unique local, site local as it was, multicast.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff | 0xff00.., ..] => Reach::Private,
        _ => Reach::Public,
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
    fn an_address_inside_is_known_however_it_is_spelt() {
        let outside = at("https://mcp.example.com/mcp");
        for inside in [
            "127.1",
            "2130706433",
            "0x7f000001",
            "0X7F.1",
            "0177.0.0.1",
            "0",
            "0x",
            "127.0.0.1.",
            "LOCALHOST.",
            "ip6-localhost",
            "169.254.169.254.",
            "0xa9fea9fe",
            "100.100.100.200",
            "192.0.0.192",
            "255.255.255.255",
            "1.2.3.4.5",
            "999.1",
            "[::127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[fd00:ec2::254]",
            "[fec0::1]",
        ] {
            let url = format!("https://{inside}:9/");
            assert!(Address::found(&url, "it", &outside).is_err(), "{inside}");
        }
        for public in
            ["8.8.8.8", "134744072", "100.128.0.1", "3com.example", "a.0x.example", "[64:ff9b::808:808]"]
        {
            Address::found(&format!("https://{public}/"), "it", &outside).unwrap();
        }
        assert_eq!(super::numbers("0177.1"), Some(std::net::Ipv4Addr::LOCALHOST));
        assert_eq!(super::numbers("1.2.772"), Some(std::net::Ipv4Addr::new(1, 2, 3, 4)));
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

//! Which requests are looked at: those that name this address. A web page that got its name to point at this machine (DNS
//! rebinding) names another, and one that merely sends requests here says where it comes from.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Request};

/// The names that are let in.
pub(crate) struct Guard {
    hosts: HashSet<String>,
    scheme: &'static str,
    /// The port that stands for none.
    port: &'static str,
}

/// Why a request is not looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Foreign {
    /// It names two hosts or two origins.
    Ambiguous,
    Host,
    Origin,
}

impl Guard {
    pub(crate) fn new(hosts: &[String], is_tls: bool) -> Self {
        let hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let (scheme, port) = if is_tls { ("https", ":443") } else { ("http", ":80") };
        Self { hosts, scheme, port }
    }

    /// Why this request is not looked at, if that is so.
    pub(crate) fn refuses<B>(&self, request: &Request<B>) -> Option<Foreign> {
        let Ok(host) = only(request.headers(), &HOST) else { return Some(Foreign::Ambiguous) };
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        let host = match (host, authority) {
            (Some(host), Some(authority)) if !self.is_same(host, authority) => {
                return Some(Foreign::Ambiguous);
            }
            (Some(host), _) | (None, Some(host)) => host.to_ascii_lowercase(),
            (None, None) => return Some(Foreign::Host),
        };
        if !self.is_ours(&host) {
            return Some(Foreign::Host);
        }
        match only(request.headers(), &ORIGIN) {
            Err(Doubled) => Some(Foreign::Ambiguous),
            Ok(Some(origin)) => {
                let own = origin.split_once("://").is_some_and(|(scheme, rest)| {
                    scheme.eq_ignore_ascii_case(self.scheme) && self.is_same(rest, &host)
                });
                (!own).then_some(Foreign::Origin)
            }
            Ok(None) => None,
        }
    }

    /// A name that has to be looked up can be made to point anywhere; an address cannot.
    fn is_ours(&self, host: &str) -> bool {
        let name = name_of(host);
        name == "localhost" || is_address(name) || self.hosts.contains(host) || self.hosts.contains(name)
    }

    fn is_same(&self, one: &str, other: &str) -> bool {
        let plain = |host: &str| host.strip_suffix(self.port).unwrap_or(host).to_ascii_lowercase();
        plain(one) == plain(other)
    }
}

/// A header that may be there once is there twice.
struct Doubled;

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Doubled> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Doubled),
        (first, None) => Ok(first.map(|value| value.to_str().unwrap_or(""))),
    }
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Foreign, Guard};
    use http::Request;

    #[test]
    fn only_requests_that_name_this_address_and_come_from_its_own_page_are_looked_at() {
        let guard = Guard::new(&["Admin.Example.com".to_owned()], false);
        for (headers, is) in [
            (&[("host", "127.0.0.1:7332")] as &[_], None),
            (&[("host", "localhost")], None),
            (&[("host", "[::1]:7332")], None),
            (&[("host", "admin.example.com")], None),
            (&[("host", "evil.example.com")], Some(Foreign::Host)),
            (&[("host", "")], Some(Foreign::Host)),
            (&[], Some(Foreign::Host)),
            (&[("host", "localhost"), ("host", "localhost")], Some(Foreign::Ambiguous)),
            (&[("host", "localhost:80"), ("origin", "http://localhost")], None),
            (&[("host", "localhost:1"), ("origin", "http://localhost:2")], Some(Foreign::Origin)),
            (&[("host", "localhost"), ("origin", "https://localhost")], Some(Foreign::Origin)),
            (&[("host", "localhost"), ("origin", "null")], Some(Foreign::Origin)),
            (&[("host", "localhost"), ("origin", "http://evil.com")], Some(Foreign::Origin)),
        ] {
            let mut request = Request::get("/");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            assert_eq!(guard.refuses(&request.body(()).unwrap()), is, "{headers:?}");
        }
        let absolute = Request::get("http://evil.com/").header("host", "localhost").body(()).unwrap();
        assert_eq!(guard.refuses(&absolute), Some(Foreign::Ambiguous));
    }
}

//! What an address tells without being asked.

use std::net::IpAddr;

/// An address that we reach, or one that the agent fills in before it starts us.
pub(super) fn is_http(url: &str) -> bool {
    url.starts_with("http://")
        || url.starts_with("https://")
        || url.starts_with("${")
        || url.starts_with("{env:")
}

/// Whether it is not for a list of processes. Some services put a key into the path, where nothing tells it from a word: so
/// only an address on this machine, without a query and without a variable of the agent's, is shown.
pub(super) fn is_secret(url: &str) -> bool {
    !is_loopback(url) || url.contains(['?', '$', '{'])
}

/// `https://me:password@host`, which `linetender run` refuses.
pub(super) fn has_password(url: &str) -> bool {
    authority(url).is_some_and(|authority| authority.contains('@'))
}

/// Whether a server there may want a browser and a human before it answers. On this machine, or without TLS, none does.
pub(super) fn may_sign_in(url: &str) -> bool {
    !url.starts_with("http://") && !is_loopback(url)
}

/// The names in its query.
pub(super) fn query_names(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
    query.split('&').filter_map(|pair| pair.split('=').next())
}

fn is_loopback(url: &str) -> bool {
    let Some(authority) = authority(url) else { return false };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, _)) => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// What stands between `//` and the path.
fn authority(url: &str) -> Option<&str> {
    url.split_once("://")?.1.split(['/', '?', '#']).next()
}

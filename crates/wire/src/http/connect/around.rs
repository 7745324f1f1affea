//! What this machine says about networks: which proxies to use and whom to trust. Read once, then data.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::network::Network;
use super::tls::Tls;
use crate::elsewhere::Elsewhere;
use crate::http::endpoint::Endpoint;

/// Proxies and roots. Cheap to clone; read it once and share it between all lines.
#[derive(Clone)]
pub struct Surroundings {
    proxies: Option<Arc<Matcher>>,
    tls: Tls,
    /// Another network than the system's.
    elsewhere: Option<Elsewhere<dyn Network>>,
}

/// Proxies by name, where they do not come from the environment. An empty text is none.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Proxies {
    /// For `http` addresses.
    pub http: String,
    /// For `https` addresses.
    pub https: String,
    /// Hosts that are reached without.
    pub no: String,
}

impl Surroundings {
    /// Reads the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) and the roots that this machine
    /// trusts. It reads files, so it belongs where configuration is loaded. A root that cannot be read is passed over.
    pub fn read() -> Self {
        Self { proxies: Some(Arc::new(Matcher::from_env())), tls: Tls::of_this_machine(), elsewhere: None }
    }

    /// No proxies, and nobody is trusted.
    pub fn bare() -> Self {
        Self { proxies: None, tls: Tls::nobody(), elsewhere: None }
    }

    /// The same, and these roots (in DER) are trusted too. What is no certificate is passed over.
    #[must_use]
    pub fn trusting(&self, more: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { tls: self.tls.and(more), ..self.clone() }
    }

    /// The same with these proxies, in place of those of the environment.
    #[must_use]
    pub fn through(&self, proxies: &Proxies) -> Self {
        let matcher = Matcher::builder()
            .http(proxies.http.clone())
            .https(proxies.https.clone())
            .no(proxies.no.clone())
            .build();
        Self { proxies: Some(Arc::new(matcher)), ..self.clone() }
    }

    /// A simulated network, without proxies and trusting nobody.
    #[doc(hidden)]
    pub fn elsewhere_on(network: Elsewhere<dyn Network>) -> Self {
        Self { elsewhere: Some(network), ..Self::bare() }
    }

    pub(super) const fn elsewhere(&self) -> Option<&Elsewhere<dyn Network>> {
        self.elsewhere.as_ref()
    }

    /// The proxy for requests to there. What goes to this machine without TLS has none: a proxy could read its credentials,
    /// and would look for the server on its own machine.
    pub(super) fn proxy_for(&self, to: &Endpoint) -> Option<Intercept> {
        if !to.is_secure() && is_this_machine(to.host()) {
            return None;
        }
        self.proxies.as_ref()?.intercept(&to.absolute_form())
    }

    pub(super) const fn tls(&self) -> &Tls {
        &self.tls
    }
}

/// Whether a host, without brackets, is this machine whatever a name server says (RFC 6761, section 6.3).
fn is_this_machine(host: &str) -> bool {
    if let Ok(ip) = host.parse::<IpAddr>() {
        let ip = ip.to_canonical();
        // To connect to the unspecified address is to connect to this machine.
        return ip.is_loopback() || ip.is_unspecified();
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("roots", &self.tls.roots()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address of a proxy often holds a password.
        f.debug_struct("Proxies").field("no", &self.no).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Proxies, Surroundings};

    #[test]
    fn only_what_goes_to_this_machine_in_clear_has_no_proxy() {
        let proxy = "http://proxy.test:3128".to_owned();
        let proxies = Proxies { http: proxy.clone(), https: proxy, ..Proxies::default() };
        let around = Surroundings::bare().through(&proxies);
        let direct = |url: &str| around.proxy_for(&Endpoint::new(url).unwrap()).is_none();
        for host in [
            "127.0.0.1",
            "127.255.0.1:8080",
            "[::1]",
            "[::ffff:127.0.0.1]:80",
            "0.0.0.0",
            "localhost",
            "LOCALHOST.",
            "app.localhost:1",
        ] {
            assert!(direct(&format!("http://{host}/mcp")), "{host}");
        }
        for url in [
            "http://far.test/",
            "http://localhost.far.test/",
            "http://notlocalhost/",
            "http://128.0.0.1/",
            "http://[::2]/",
            "https://localhost/",
        ] {
            assert!(!direct(url), "{url}");
        }
    }
}

//! What this machine says about networks: which proxies to use and whom to trust. Read once, then data.

use std::fmt;
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::tls::HTTP2;

/// Proxies and roots. Cheap to clone; read it once and share it between all lines.
#[derive(Clone)]
pub struct Surroundings {
    proxies: Option<Arc<Matcher>>,
    roots: Arc<RootCertStore>,
    tls: Arc<ClientConfig>,
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
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        Self::new(Some(Arc::new(Matcher::from_env())), roots)
    }

    /// No proxies, and nobody is trusted.
    pub fn bare() -> Self {
        Self::new(None, RootCertStore::empty())
    }

    /// The same, and these roots (in DER) are trusted too. What is no certificate is passed over.
    #[must_use]
    pub fn trusting(&self, more: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut roots = RootCertStore::clone(&self.roots);
        roots.add_parsable_certificates(more.into_iter().map(CertificateDer::from));
        Self::new(self.proxies.clone(), roots)
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

    pub(super) fn proxy_for(&self, to: &Uri) -> Option<Intercept> {
        self.proxies.as_ref()?.intercept(to)
    }

    pub(super) fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }

    fn new(proxies: Option<Arc<Matcher>>, roots: RootCertStore) -> Self {
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut tls = builder
            .expect("aws-lc offers what the default versions need")
            .with_root_certificates(Arc::clone(&roots))
            .with_no_client_auth();
        tls.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Self { proxies, roots, tls: Arc::new(tls) }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("roots", &self.roots.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address of a proxy often holds a password.
        f.debug_struct("Proxies").field("no", &self.no).finish_non_exhaustive()
    }
}

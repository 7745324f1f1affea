//! TLS: whom to trust, and whether a certificate was what failed.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Counted, OverTcp};
use crate::http::broken::{Broken, Chain, Phase};
use crate::http::endpoint::Endpoint;

/// The protocol's name in ALPN.
const HTTP2: &[u8] = b"h2";

/// Whom to trust. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls {
    roots: Arc<RootCertStore>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// The roots that this machine trusts. One that cannot be read is passed over.
    pub(super) fn of_this_machine() -> Self {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        Self::of(roots)
    }

    /// Nobody.
    pub(super) fn nobody() -> Self {
        Self::of(RootCertStore::empty())
    }

    /// The same, and these (in DER). What is no certificate is passed over.
    pub(super) fn and(&self, more: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut roots = RootCertStore::clone(&self.roots);
        roots.add_parsable_certificates(more.into_iter().map(CertificateDer::from));
        Self::of(roots)
    }

    pub(super) fn roots(&self) -> usize {
        self.roots.len()
    }

    fn of(roots: RootCertStore) -> Self {
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = builder
            .expect("aws-lc offers what the default versions need")
            .with_root_certificates(Arc::clone(&roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Self { roots, config: Arc::new(config) }
    }
}

/// The stream, and whether HTTP/2 was agreed on.
pub(super) async fn secure(
    stream: Counted<OverTcp>,
    to: &Endpoint,
    tls: &Tls,
) -> Result<(TlsStream<Counted<OverTcp>>, bool), Broken> {
    let name = ServerName::try_from(to.host().to_owned()).map_err(|_| {
        Broken::unsent(Phase::Url, format_args!("{} is not a valid TLS server name", to.host()))
    })?;
    let stream = TlsConnector::from(Arc::clone(&tls.config))
        .connect(name, stream)
        .await
        .map_err(|error| Broken::unsent(Phase::Tls { certificate: is_certificate(&error) }, Chain(&error)))?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
    Ok((stream, http2))
}

fn is_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented))
}

//! TLS with a certificate of the server's own, made at start and never written down.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// What a server needs to speak TLS, and a client to trust it.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) der: Box<[u8]>,
    pub(super) pem: String,
}

impl Tls {
    pub(super) fn make() -> io::Result<Self> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        // The provider is named: a second one in the same build would make the default ambiguous.
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key.into())
            })
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            der: made.cert.der().to_vec().into_boxed_slice(),
            pem: made.cert.pem(),
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

//! TLS, and whether a certificate was what failed.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::socket::Shared;
use crate::http::broken::{Broken, Chain, Phase};
use crate::http::endpoint::Endpoint;

/// The protocol's name in ALPN.
pub(super) const HTTP2: &[u8] = b"h2";

/// The stream, and whether HTTP/2 was agreed on.
pub(super) async fn secure(
    stream: Shared,
    to: &Endpoint,
    config: Arc<ClientConfig>,
) -> Result<(TlsStream<Shared>, bool), Broken> {
    let name = ServerName::try_from(to.host().to_owned()).map_err(|_| {
        Broken::unsent(Phase::Url, format_args!("{} is no name for a certificate", to.host()))
    })?;
    let stream = TlsConnector::from(config)
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

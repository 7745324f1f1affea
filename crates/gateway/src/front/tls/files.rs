//! Certificate and key, from their files.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{Error, ServerConfig};

use crate::config::TlsFiles;
use crate::system;

/// The longest file. A chain has a few KiB.
const LONGEST: u64 = 1024 * 1024;

/// Which files they are, and when they changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stamp {
    certificate: Option<system::Stamp>,
    key: Option<system::Stamp>,
}

impl Stamp {
    /// Links are followed: those who renew certificates often change nothing but a link.
    pub(super) fn of(files: &TlsFiles) -> Self {
        let one = |path: &Path| fs::metadata(path).ok().map(|about| system::Stamp::of(&about));
        Self { certificate: one(&files.certificate), key: one(&files.key) }
    }
}

/// What a server needs that shows this certificate; or a sentence that says why there is none.
pub(super) fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    let (text, _) = read(&files.certificate)
        .map_err(|error| format!("cannot read the TLS certificate {certificate}: {error}"))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the TLS certificate {certificate} is not valid PEM: {error}"))?;
    if chain.is_empty() {
        return Err(format!(
            "no certificate in {certificate} (tls_certificate): it must be PEM, with -----BEGIN CERTIFICATE-----"
        ));
    }
    let (text, about) =
        read(&files.key).map_err(|error| format!("cannot read the TLS key {key}: {error}"))?;
    if let Some((how, run)) = system::too_open(&files.key, &about) {
        return Err(format!("every user of this machine can use the TLS key {key} ({how}): run {run}"));
    }
    // What it says of the text is left out: this is a secret.
    let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        format!(
            "no private key in {key} (tls_key): it must be PEM, PKCS#8, PKCS#1 or SEC1, and not encrypted"
        )
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| match error {
            Error::InconsistentKeys(_) => format!(
                "the TLS key {key} does not belong to the certificate {certificate} (the certificate of this host must come first)"
            ),
            error => format!("cannot use the TLS certificate {certificate} with the key {key}: {error}"),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What a file holds, and what it was when it was read. Nothing but a file is waited for.
fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let file = system::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if about.len() > LONGEST {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok((text, about))
}

//! TLS: whom to trust, and whether a certificate was what failed.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Counted, OverTcp};
use crate::http::broken::{Broken, Chain, Phase};
use crate::http::endpoint::Endpoint;

/// The protocol's name in ALPN.
const HTTP2: &[u8] = b"h2";

/// Variables that name more roots, in a file or a folder: a company's own, for Node, for Python's requests, for curl. Agents' own clients
/// read them, so a server that an agent can reach alone is reached through linetender too. `SSL_CERT_FILE` and `SSL_CERT_DIR` stand in the
/// place of the system's roots, as they do for OpenSSL.
const MORE_ROOTS: [&str; 3] = ["NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];

/// What is said of an issuer that nobody trusts.
const TRUSTED: &str = "trusted are the issuers of this system, and those in the files that SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, \
                       REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE name";

/// Whom to trust. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls {
    roots: Arc<RootCertStore>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// The roots that this machine trusts, and those that its environment names. One that cannot be read is passed over.
    #[expect(clippy::disallowed_methods, reason = "whoever reads the surroundings loads configuration")]
    pub(super) fn of_this_machine() -> Self {
        Self::of_environment(|name| env::var_os(name))
    }

    fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let named = MORE_ROOTS.iter().filter_map(|name| variable(name)).filter(|named| !named.is_empty());
        for path in named.map(PathBuf::from) {
            let (file, folder) = if path.is_dir() { (None, Some(&*path)) } else { (Some(&*path), None) };
            let found = rustls_native_certs::load_certs_from_paths(file, folder);
            roots.add_parsable_certificates(found.certs);
        }
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
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("aws-lc offers what the default versions need");
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider).build();
        let builder = match chains {
            Ok(chains) => {
                let verifier = Trusted { chains, roots: Arc::clone(&roots) };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            // There are no roots.
            Err(_) => builder.with_root_certificates(Arc::clone(&roots)),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Self { roots, config: Arc::new(config) }
    }
}

/// Takes what is signed by a root, and a root itself that a server shows as its own certificate: `openssl req -x509` makes such, and
/// OpenSSL's and Node's clients take them if they are trusted.
#[derive(Debug)]
struct Trusted {
    chains: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

impl Trusted {
    /// True if this certificate has the name and the key of a root. Whoever holds that key may sign any certificate anyway.
    fn is_root(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut alone = RootCertStore::empty();
        let read = alone.add(certificate.clone().into_owned());
        read.is_ok() && alone.roots.iter().any(|shown| self.roots.roots.contains(shown))
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // Its time was looked at before that.
            Err(Error::InvalidCertificate(CertificateError::Other(other)))
                if other.to_string().contains("CaUsedAsEndEntity") && self.is_root(end_entity) =>
            {
                let shown = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&shown, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
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
    let stream =
        TlsConnector::from(Arc::clone(&tls.config)).connect(name, stream).await.map_err(|error| {
            let phase = Phase::Tls { certificate: is_certificate(&error) };
            match error.to_string() {
                words if words.contains("UnknownIssuer") => {
                    Broken::unsent(phase, format_args!("{words}; {TRUSTED}"))
                }
                _ => Broken::unsent(phase, Chain(&error)),
            }
        })?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
    Ok((stream, http2))
}

fn is_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::{MORE_ROOTS, Tls};

    #[test]
    fn h38_roots_that_the_environment_names_are_trusted_too() {
        let folder = std::env::temp_dir().join(format!("linetender-roots-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("roots.pem");
        let made = rcgen::generate_simple_self_signed(vec!["company.test".to_owned()]).unwrap();
        std::fs::write(&file, made.cert.pem()).unwrap();
        let roots = |variable: &str, value: PathBuf| {
            Tls::of_environment(|name| (name == variable).then(|| OsString::from(&value))).roots()
        };
        let before = Tls::of_environment(|_| None).roots();
        for variable in MORE_ROOTS {
            for value in [&file, &folder] {
                assert_eq!(roots(variable, value.clone()), before + 1, "{variable}: {}", value.display());
            }
            assert_eq!(roots(variable, folder.join("missing.pem")), before, "{variable}");
            assert_eq!(roots(variable, PathBuf::new()), before, "{variable}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}

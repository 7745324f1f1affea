//! TLS: whom we trust, and what a refusal is called.

use std::sync::Arc;

use linetender_core::LossReport;
use linetender_wire::http::{Endpoint, Phase, Pool, Settings, Surroundings};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::peer::{post, read_request, server};

/// A certificate that nobody trusts yet, and who shows it.
pub(crate) fn identity(name: &str, protocols: &[&[u8]]) -> (Vec<u8>, TlsAcceptor) {
    identity_with(&rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap(), protocols)
}

fn identity_with(params: &rcgen::CertificateParams, protocols: &[&[u8]]) -> (Vec<u8>, TlsAcceptor) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (certificate.to_vec(), TlsAcceptor::from(Arc::new(config)))
}

/// A server that answers what it is asked; its port and its certificate.
pub(crate) async fn secure_server(name: &str) -> (u16, Vec<u8>) {
    serve_as(identity(name, &[])).await
}

async fn serve_as((certificate, acceptor): (Vec<u8>, TlsAcceptor)) -> (u16, Vec<u8>) {
    use tokio::io::AsyncWriteExt as _;
    let (at, _) = server(move |_, stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            while read_request(&mut stream).await.is_some() {
                let _ = stream.write_all(super::peer::ok("secret").as_bytes()).await;
            }
        }
    })
    .await;
    (at.port(), certificate)
}

fn pool(port: u16, around: Surroundings) -> Pool {
    let endpoint = Endpoint::new(&format!("https://localhost:{port}/mcp")).unwrap();
    Pool::new(endpoint, around, Settings::default())
}

#[tokio::test]
async fn a_trusted_certificate_is_taken() {
    let (port, certificate) = secure_server("localhost").await;
    let pool = pool(port, Surroundings::bare().trusting([certificate]));
    for _ in 0..2 {
        assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "secret");
        assert_eq!(pool.idle(), 1);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_or_for_another_name_is_a_matter_of_configuration() {
    let (port, _) = secure_server("localhost").await;
    let (other, certificate) = secure_server("elsewhere.test").await;
    for pool in [pool(port, Surroundings::bare()), pool(other, Surroundings::bare().trusting([certificate]))]
    {
        let broken = pool.send(&post()).await.unwrap_err();
        assert_eq!((broken.phase, broken.written), (Phase::Tls { certificate: true }, Some(0)), "{broken}");
        assert!(broken.is_config() && broken.report == LossReport::NoByteWritten);
    }
}

#[tokio::test]
async fn a_peer_that_hangs_up_on_tls_is_not() {
    let (at, _server) = server(|_, stream| async move { drop(stream) }).await;
    let broken = pool(at.port(), Surroundings::bare()).send(&post()).await.unwrap_err();
    assert_eq!((broken.phase, broken.report), (Phase::Tls { certificate: false }, LossReport::NoByteWritten));
    assert!(!broken.is_config());
}

/// `openssl req -x509` makes a root, and many servers of a company show it as their own.
#[tokio::test]
async fn h38_a_root_that_is_trusted_is_taken_as_a_servers_certificate_with_its_name_and_in_its_time() {
    let root = |name: &str| {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params
    };
    let (port, certificate) = serve_as(identity_with(&root("localhost"), &[])).await;
    let trusting = Surroundings::bare().trusting([certificate]);
    assert_eq!(pool(port, trusting).send(&post()).await.unwrap().body.all(100).await.unwrap(), "secret");
    let (other, theirs) = serve_as(identity_with(&root("elsewhere.test"), &[])).await;
    let mut over = root("localhost");
    over.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let (late, its) = serve_as(identity_with(&over, &[])).await;
    let (_, another) = secure_server("localhost").await;
    for (port, trusted, why) in
        [(other, theirs, "name"), (late, its, "expired"), (port, another, "CaUsedAsEndEntity")]
    {
        let broken = pool(port, Surroundings::bare().trusting([trusted])).send(&post()).await.unwrap_err();
        assert_eq!(broken.phase, Phase::Tls { certificate: true }, "{broken}");
        assert!(broken.to_string().contains(why), "{why}: {broken}");
    }
}

#[tokio::test]
async fn h38_a_certificate_of_an_unknown_issuer_is_refused_with_where_issuers_are_looked_for() {
    let (port, _) = secure_server("localhost").await;
    let broken = pool(port, Surroundings::bare()).send(&post()).await.unwrap_err();
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"] {
        assert!(broken.to_string().contains(variable), "{broken}");
    }
}

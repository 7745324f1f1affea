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
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
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
    use tokio::io::AsyncWriteExt as _;
    let (certificate, acceptor) = identity(name, &[]);
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

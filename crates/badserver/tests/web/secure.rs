//! TLS and HTTP/2.

use std::error::Error;
use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use linetender_badserver::webserver::{Config, Manners, WebServer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::kit::{call, in_time, plain, post};

type Sender = http2::SendRequest<Full<Bytes>>;

fn connector(certificate: Option<&[u8]>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    if let Some(der) = certificate {
        roots.add(CertificateDer::from(der.to_vec())).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

async fn second(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> (Sender, JoinSet<()>) {
    let (sender, connection) =
        in_time(http2::handshake(TokioExecutor::new(), TokioIo::new(stream))).await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    (sender, driver)
}

async fn ask(sender: &mut Sender, tool: &str) -> hyper::Result<Value> {
    let request = Request::post("http://x/mcp")
        .header("accept", "application/json, text/event-stream")
        .body(Full::from(call(tool, json!({})).to_string()))
        .unwrap();
    let body = in_time(sender.send_request(request)).await?.into_body().collect().await?.to_bytes();
    Ok(serde_json::from_slice(&body).unwrap())
}

fn reason(error: &hyper::Error) -> Option<h2::Reason> {
    error.source()?.downcast_ref::<h2::Error>()?.reason()
}

fn secure() -> WebServer {
    let manners = Manners { stateless: true, ..Manners::default() };
    WebServer::start(Config { tls: true, manners, ..Config::default() }).unwrap()
}

#[tokio::test]
async fn a_client_that_trusts_its_certificate_speaks_http_2_with_it() {
    let web = secure();
    assert!(
        web.url().starts_with("https://") && web.certificate_pem().unwrap().contains("BEGIN CERTIFICATE")
    );
    let stream = TcpStream::connect(web.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = in_time(connector(web.certificate()).connect(name, stream)).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, _driver) = second(stream).await;
    assert_eq!(ask(&mut sender, "echo").await.unwrap()["id"], 7);
}

#[tokio::test]
async fn a_client_that_does_not_trust_it_goes_away() {
    let web = secure();
    let stream = TcpStream::connect(web.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let error = in_time(connector(None).connect(name, stream)).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(web.counters().posts, 0);
}

#[tokio::test]
async fn a_refused_stream_says_that_nothing_was_done() {
    let web = plain();
    let (mut sender, _driver) = second(TcpStream::connect(web.addr()).await.unwrap()).await;
    let error = ask(&mut sender, "refused").await.unwrap_err();
    assert_eq!(reason(&error), Some(h2::Reason::REFUSED_STREAM));
    assert_eq!(web.runs(), 0);
    assert_eq!(ask(&mut sender, "echo").await.unwrap()["id"], 7, "the connection goes on");
}

#[tokio::test]
async fn a_good_bye_answers_first() {
    let web = plain();
    let (mut sender, mut driver) = second(TcpStream::connect(web.addr()).await.unwrap()).await;
    assert_eq!(ask(&mut sender, "goaway").await.unwrap()["id"], 7);
    in_time(driver.join_next()).await;
    assert!(in_time(sender.ready()).await.is_err());
}

#[tokio::test]
async fn a_stream_can_be_disowned() {
    let web = plain();
    let (mut sender, _driver) = second(TcpStream::connect(web.addr()).await.unwrap()).await;
    let error = ask(&mut sender, "disowned").await.unwrap_err();
    let error = error.source().unwrap().downcast_ref::<h2::Error>().unwrap();
    assert!(error.is_go_away() && error.is_remote(), "{error:?}");
    assert_eq!(error.reason(), Some(h2::Reason::NO_ERROR));
    assert_eq!((web.reads(), web.runs()), (1, 0));
}

#[tokio::test]
async fn cuts_reset_their_stream_and_not_their_connection() {
    let web = plain();
    let (mut sender, _driver) = second(TcpStream::connect(web.addr()).await.unwrap()).await;
    for tool in ["half_body", "cut_sse"] {
        let request = Request::post("http://x/mcp")
            .header("accept", "*/*")
            .body(Full::from(call(tool, json!({ "abrupt": true })).to_string()))
            .unwrap();
        let mut body = in_time(sender.send_request(request)).await.unwrap().into_body();
        let first = in_time(body.frame()).await.unwrap().unwrap();
        assert!(!first.data_ref().unwrap().is_empty());
        assert!(in_time(body.frame()).await.unwrap().is_err(), "{tool}");
    }
    assert_eq!(ask(&mut sender, "echo").await.unwrap()["id"], 7);
}

#[tokio::test]
async fn a_drip_comes_byte_by_byte_and_whole_in_the_end() {
    let web = plain();
    let (mut sender, _driver) = second(TcpStream::connect(web.addr()).await.unwrap()).await;
    let request = Request::post("http://x/mcp")
        .header("accept", "*/*")
        .body(Full::from(call("drip", json!({ "ms": 1 })).to_string()))
        .unwrap();
    let mut body = in_time(sender.send_request(request)).await.unwrap().into_body();
    let mut text = Vec::new();
    while let Some(frame) = in_time(body.frame()).await {
        let piece = frame.unwrap().into_data().unwrap();
        // Frames are the server's own pieces, which bytes of a socket would not be.
        assert!(piece.len() <= 1);
        text.extend(piece);
    }
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap()["id"], 7);
}

#[cfg_attr(windows, ignore = "wine closes a connection that is to be reset")]
#[tokio::test]
async fn faults_happen_below_tls_too() {
    let web = secure();
    let stream = TcpStream::connect(web.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = in_time(connector(web.certificate()).connect(name, stream)).await.unwrap();
    // The server looks at the first bytes, so that HTTP/1 is understood whatever was agreed on.
    stream.write_all(post("", &call("reset_before", json!({}))).as_bytes()).await.unwrap();
    let error = in_time(stream.read(&mut [0; 1])).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

//! HTTP/2: streams that are refused, and connections that go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::SendResponse;
use linetender_core::{LossReport, ServerRefusal};
use linetender_wire::http::{Endpoint, Pool, Settings, Surroundings};
use tokio::time::timeout;

use super::peer::{SOON, pool_with, post, server, spawn};

fn reply(mut respond: SendResponse<Bytes>, text: &str) {
    let head = http::Response::builder().header("content-type", "application/json").body(()).unwrap();
    let mut body = respond.send_response(head, false).unwrap();
    body.send_data(Bytes::copy_from_slice(text.as_bytes()), true).unwrap();
}

/// A server that treats its nth request, over all connections, as `treat` says; what is true goes away afterwards.
async fn peer(
    treat: impl Fn(usize, usize, SendResponse<Bytes>) -> bool + Clone + Send + Sync + 'static,
) -> Pool {
    let seen = Arc::new(AtomicUsize::new(0));
    let (at, _) = server(move |number, stream| {
        let (seen, treat) = (seen.clone(), treat.clone());
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_request, respond))) = connection.accept().await {
                if treat(number, seen.fetch_add(1, Ordering::SeqCst), respond) {
                    connection.graceful_shutdown();
                }
            }
        }
    })
    .await;
    pool_with(at, Settings { http2_only: true, ..Settings::default() })
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let pool = peer(|connection, _, respond| {
        reply(respond, &connection.to_string());
        false
    })
    .await;
    let sends = (0..20).map(|_| {
        let pool = pool.clone();
        async move {
            let mut response = pool.send(&post()).await.unwrap();
            assert_eq!(response.body.all(100).await.unwrap(), "0");
        }
    });
    let tasks: Vec<_> = sends.map(spawn).collect();
    for task in tasks {
        timeout(SOON, task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_refused_stream_is_a_proof_and_leaves_the_connection_alone() {
    let pool = peer(|connection, request, mut respond| {
        match request {
            0 => respond.send_reset(h2::Reason::REFUSED_STREAM),
            _ => reply(respond, &connection.to_string()),
        }
        false
    })
    .await;
    let broken = pool.send(&post()).await.unwrap_err();
    assert_eq!(broken.report, LossReport::Refused(ServerRefusal::RefusedStream), "{broken}");
    assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "0");
}

#[tokio::test]
async fn any_other_reset_proves_nothing() {
    let pool = peer(|_, _, mut respond| {
        respond.send_reset(h2::Reason::INTERNAL_ERROR);
        false
    })
    .await;
    let broken = pool.send(&post()).await.unwrap_err();
    assert_eq!((broken.report, broken.written), (LossReport::Nothing, None), "{broken}");
}

#[tokio::test]
async fn after_a_goaway_the_next_request_has_a_new_connection() {
    let pool = peer(|connection, request, respond| {
        reply(respond, &connection.to_string());
        request == 0
    })
    .await;
    assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "0");
    // It may still meet the connection that goes away; then that is known, and only then is it sent again.
    let answer = match pool.send(&post()).await {
        Ok(mut response) => response.body.all(100).await.unwrap(),
        Err(broken) => {
            assert_ne!(broken.report, LossReport::Nothing, "{broken}");
            pool.send(&post()).await.unwrap().body.all(100).await.unwrap()
        }
    };
    assert_eq!(answer, "1");
}

#[tokio::test]
async fn a_goaway_below_our_stream_is_a_refusal() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    // By hand: settings; then, once a request came, a GOAWAY that names stream 0 as the last one.
    let (at, _) = server(|_, mut stream| async move {
        let mut buffer = [0; 4096];
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        let mut all = Vec::new();
        // The body travels in the clear, in a frame of its own.
        while !String::from_utf8_lossy(&all).contains(super::peer::BODY) {
            let read = stream.read(&mut buffer).await.unwrap();
            all.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    let pool = pool_with(at, Settings { http2_only: true, ..Settings::default() });
    let broken = timeout(SOON, pool.send(&post())).await.unwrap().unwrap_err();
    assert_eq!(broken.report, LossReport::Refused(ServerRefusal::Goaway), "{broken}");
}

#[tokio::test]
async fn a_connection_that_ends_in_mid_call_proves_nothing() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    // A GOAWAY that names our stream, then the end: it may have run.
    let (at, _) = server(|_, mut stream| async move {
        let mut buffer = [0; 4096];
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        let mut all = Vec::new();
        while !String::from_utf8_lossy(&all).contains(super::peer::BODY) {
            let read = stream.read(&mut buffer).await.unwrap();
            all.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]).await.unwrap();
    })
    .await;
    let pool = pool_with(at, Settings { http2_only: true, ..Settings::default() });
    let broken = timeout(SOON, pool.send(&post())).await.unwrap().unwrap_err();
    assert_eq!(broken.report, LossReport::Nothing, "{broken}");
}

#[tokio::test]
async fn over_tls_http2_is_agreed_on() {
    let (certificate, acceptor) = super::tls::identity("localhost", &[b"h2", b"http/1.1"]);
    let (at, _server) = server(move |number, stream| {
        let acceptor = acceptor.clone();
        async move {
            let stream = acceptor.accept(stream).await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                assert_eq!((request.uri().path(), request.uri().host()), ("/mcp", Some("localhost")));
                reply(respond, &number.to_string());
            }
        }
    })
    .await;
    let endpoint = Endpoint::new(&format!("https://localhost:{}/mcp", at.port())).unwrap();
    let pool = Pool::new(endpoint, Surroundings::bare().trusting([certificate]), Settings::default());
    for _ in 0..3 {
        let mut response = timeout(SOON, pool.send(&post())).await.unwrap().unwrap();
        assert_eq!(response.body.all(100).await.unwrap(), "0");
    }
    assert_eq!(pool.idle(), 0);
}

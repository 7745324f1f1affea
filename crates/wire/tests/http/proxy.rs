//! Through proxies.

use linetender_core::LossReport;
use linetender_wire::http::{Endpoint, Phase, Pool, Proxies, Settings, Surroundings};
use tokio::net::TcpStream;

use super::peer::{answer, ok, post, read_request, server};
use super::tls::secure_server;

#[tokio::test]
async fn plain_http_is_asked_of_the_proxy_with_the_whole_address() {
    let (at, _proxy) = server(|_, mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            assert!(request.starts_with("POST http://far.test/mcp HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("\r\nhost: far.test\r\n"), "{request}");
            assert!(request.contains("\r\nproxy-authorization: Basic bWU6cHc=\r\n"), "{request}");
            answer(&mut stream, &ok("through")).await;
        }
    })
    .await;
    let proxies = Proxies { http: format!("http://me:pw@{at}"), ..Proxies::default() };
    let endpoint = Endpoint::new("http://far.test/mcp").unwrap();
    let pool = Pool::new(endpoint, Surroundings::bare().through(&proxies), Settings::default());
    assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "through");
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let (port, certificate) = secure_server("far.test").await;
    let (at, _proxy) = server(move |_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        assert!(request.starts_with("CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n"), "{request}");
        answer(&mut stream, "HTTP/1.1 200 Connection established\r\n\r\n").await;
        let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut far).await;
    })
    .await;
    let proxies = Proxies { https: format!("http://{at}"), ..Proxies::default() };
    let around = Surroundings::bare().trusting([certificate]).through(&proxies);
    let pool = Pool::new(Endpoint::new("https://far.test/mcp").unwrap(), around, Settings::default());
    assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "secret");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_as_such() {
    for (status, config) in [("407 Proxy Authentication Required", true), ("502 Bad Gateway", false)] {
        let (at, _proxy) = server(move |_, mut stream| async move {
            read_request(&mut stream).await;
            answer(&mut stream, &format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await;
        })
        .await;
        let proxies = Proxies { https: format!("http://{at}"), ..Proxies::default() };
        let around = Surroundings::bare().through(&proxies);
        let pool = Pool::new(Endpoint::new("https://far.test/mcp").unwrap(), around, Settings::default());
        let broken = pool.send(&post()).await.unwrap_err();
        assert_eq!(
            (broken.phase, broken.report),
            (Phase::Proxy { config }, LossReport::NoByteWritten),
            "{broken}"
        );
    }
}

#[tokio::test]
async fn hosts_that_need_no_proxy_have_none() {
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, &ok("direct")).await;
    })
    .await;
    let proxies =
        Proxies { http: "http://127.0.0.1:1".into(), no: "localhost,127.0.0.1".into(), ..Proxies::default() };
    let endpoint = Endpoint::new(&format!("http://{at}/mcp")).unwrap();
    let pool = Pool::new(endpoint, Surroundings::bare().through(&proxies), Settings::default());
    assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "direct");
}

/// Credentials may be sent to this machine without TLS: a proxy could read them.
#[tokio::test]
async fn plain_http_to_this_machine_goes_through_no_proxy() {
    let (proxy, _proxy) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, &ok("proxied")).await;
    })
    .await;
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, &ok("direct")).await;
    })
    .await;
    let proxies = Proxies { http: format!("http://{proxy}"), ..Proxies::default() };
    for name in ["127.0.0.1", "localhost", "LocalHost"] {
        let endpoint = Endpoint::new(&format!("http://{name}:{}/mcp", at.port())).unwrap();
        let pool = Pool::new(endpoint, Surroundings::bare().through(&proxies), Settings::default());
        assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "direct", "{name}");
    }
}

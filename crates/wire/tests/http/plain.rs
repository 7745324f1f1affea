//! HTTP/1.1 without TLS.

use std::time::Duration;

use linetender_core::LossReport;
use linetender_wire::http::{Endpoint, Phase, Pool, Settings, Surroundings, Waits};
use tokio::time::timeout;

use super::peer::{BODY, SOON, answer, listen, ok, pool, pool_with, post, read_request, server, spawn};

#[tokio::test]
async fn an_answer_comes_back_and_its_connection_is_used_again() {
    let (at, _server) = server(|number, mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            assert!(request.starts_with("POST /mcp HTTP/1.1\r\n") && request.ends_with(BODY), "{request}");
            assert!(!request.contains("accept-encoding"), "{request}");
            answer(&mut stream, &ok(&number.to_string())).await;
        }
    })
    .await;
    let pool = pool(at);
    for _ in 0..3 {
        let mut response = pool.send(&post()).await.unwrap();
        assert_eq!(response.status, 200);
        // Of this request, not of those before it on the same connection.
        let written = response.body.request_written().unwrap() - BODY.len() as u64;
        assert!((1..200).contains(&written), "{written} bytes beside the body");
        assert_eq!(response.body.all(100).await.unwrap(), "0");
        assert_eq!(pool.idle(), 0, "whoever reads it may yet find it unfit");
        drop(response);
        assert_eq!(pool.idle(), 1);
    }
    pool.clear();
    assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), "1");
}

#[tokio::test]
async fn without_pooling_each_request_has_its_own_connection() {
    let (at, _server) = server(|number, mut stream| async move {
        while read_request(&mut stream).await.is_some() {
            answer(&mut stream, &ok(&number.to_string())).await;
        }
    })
    .await;
    let pool = pool_with(at, Settings { pooling: false, ..Settings::default() });
    for expected in ["0", "1"] {
        assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), expected);
    }
    assert_eq!(pool.idle(), 0);
}

#[tokio::test]
async fn an_event_streams_connection_is_kept_only_on_request() {
    let (at, _server) = server(|number, mut stream| async move {
        while read_request(&mut stream).await.is_some() {
            let event = format!("data: {number}\n\n");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n";
            answer(&mut stream, &format!("{head}Content-Length: {}\r\n\r\n{event}", event.len())).await;
        }
    })
    .await;
    for (reuse_streams, kept) in [(false, 0), (true, 1)] {
        let pool = pool_with(at, Settings { reuse_streams, ..Settings::default() });
        let mut response = pool.send(&post()).await.unwrap();
        assert!(response.is_event_stream());
        assert!(response.body.chunk().await.unwrap().is_some());
        assert_eq!(response.body.chunk().await.unwrap(), None);
        drop(response);
        assert_eq!(pool.idle(), kept);
    }
}

/// The head of a stream, and then its event: a server that leaves `TCP_NODELAY` alone holds the second back until the
/// first is acknowledged, which a kept connection puts off for 40 ms.
#[cfg(all(target_os = "linux", not(linetender_portable)))]
#[tokio::test]
async fn a_kept_stream_does_not_stall() {
    const CALLS: u32 = 20;
    let (at, _server) = server(|number, mut stream| async move {
        while read_request(&mut stream).await.is_some() {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            answer(&mut stream, &format!("{head}6\r\nid: 0\n\r\n")).await;
            answer(&mut stream, &format!("9\r\ndata: {number}\n\n\r\n")).await;
            answer(&mut stream, "0\r\n\r\n").await;
        }
    })
    .await;
    let pool = pool(at);
    let start = tokio::time::Instant::now();
    for _ in 0..CALLS {
        let mut response = pool.send(&post()).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"data: 0\n\n") {
            seen.extend_from_slice(&response.body.chunk().await.unwrap().unwrap());
        }
        response.body.forget().await;
        assert_eq!(pool.idle(), 1);
    }
    assert!(start.elapsed() < CALLS * Duration::from_millis(20), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_stream_that_goes_on_behind_its_answer_is_closed() {
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n";
        answer(&mut stream, &format!("{head}{}", "x".repeat(10_000))).await;
        let _ = read_request(&mut stream).await;
    })
    .await;
    let pool = pool_with(at, Settings { reuse_streams: true, ..Settings::default() });
    let mut response = pool.send(&post()).await.unwrap();
    assert!(response.body.chunk().await.unwrap().is_some());
    timeout(SOON, response.body.forget()).await.unwrap();
    assert_eq!(pool.idle(), 0);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used_again() {
    let (at, _server) = server(|number, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, &ok(&number.to_string())).await;
    })
    .await;
    let pool = pool(at);
    for expected in ["0", "1", "2"] {
        assert_eq!(pool.send(&post()).await.unwrap().body.all(100).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let (at, _server) = server(|_, mut stream| async move {
        while read_request(&mut stream).await.is_some() {
            answer(&mut stream, &ok("x")).await;
        }
    })
    .await;
    let pool = pool_with(at, Settings { idle_limit: Duration::from_millis(20), ..Settings::default() });
    pool.send(&post()).await.unwrap().body.all(100).await.unwrap();
    assert_eq!(pool.idle(), 1);
    let closed = async {
        while pool.idle() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, closed).await.unwrap();
}

#[tokio::test]
async fn a_stale_connection_and_a_server_that_is_gone_prove_that_nothing_was_written() {
    let (at, server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, &ok("x")).await;
    })
    .await;
    let pool = pool(at);
    pool.send(&post()).await.unwrap().body.all(100).await.unwrap();
    server.abort();
    let _ = server.await;
    let broken = pool.send(&post()).await.unwrap_err();
    assert_eq!(
        (broken.phase, broken.written, broken.report),
        (Phase::Refused, Some(0), LossReport::NoByteWritten)
    );
}

#[tokio::test]
async fn a_refused_connect_says_where_and_is_no_matter_of_configuration() {
    let (listener, at) = listen().await;
    drop(listener);
    let request = post();
    let broken = pool(at).send(&request).await.unwrap_err();
    assert_eq!((broken.phase, broken.report), (Phase::Refused, LossReport::NoByteWritten));
    assert!(broken.to_string().contains(&at.to_string()) && !broken.is_config(), "{broken}");
    assert!(!request.begun.get());
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_told() {
    let endpoint = Endpoint::new("http://no-such-host.invalid/mcp").unwrap();
    let broken =
        Pool::new(endpoint, Surroundings::bare(), Settings::default()).send(&post()).await.unwrap_err();
    assert!(matches!(broken.phase, Phase::Dns { .. }), "{broken}");
    assert_eq!(broken.report, LossReport::NoByteWritten);
}

#[tokio::test]
async fn a_reset_after_the_body_proves_nothing() {
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    })
    .await;
    let request = post();
    let broken = pool(at).send(&request).await.unwrap_err();
    assert_eq!((broken.phase, broken.report), (Phase::Head, LossReport::Nothing), "{broken}");
    assert!(broken.written.unwrap() > BODY.len() as u64 && request.begun.get());
}

#[tokio::test]
async fn a_request_that_was_begun_and_cut_proves_nothing() {
    // More than the socket's buffers hold, so that it is cut in the middle.
    let (at, _server) = server(|_, mut stream| async move {
        let _ = tokio::io::AsyncReadExt::read_u8(&mut stream).await;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    })
    .await;
    let mut request = post();
    request.body = vec![b' '; 32 << 20].into();
    let broken = pool(at).send(&request).await.unwrap_err();
    assert_eq!((broken.phase, broken.report), (Phase::Request, LossReport::Nothing), "{broken}");
    assert!((1..32 << 20).contains(&broken.written.unwrap()));
}

#[tokio::test]
async fn half_a_body_says_how_much_had_come() {
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half").await;
    })
    .await;
    let pool = pool(at);
    let broken = pool.send(&post()).await.unwrap().body.all(1000).await.unwrap_err();
    assert_eq!((broken.phase, broken.received, broken.report), (Phase::Body, 6, LossReport::Nothing));
    assert!(broken.to_string().contains("6 bytes received"), "{broken}");
    assert_eq!(pool.idle(), 0);
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit() {
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        for _ in 0..10_000 {
            answer(&mut stream, "400\r\n").await;
            answer(&mut stream, &" ".repeat(0x400)).await;
            answer(&mut stream, "\r\n").await;
        }
    })
    .await;
    let broken = pool(at).send(&post()).await.unwrap().body.all(10_000).await.unwrap_err();
    assert_eq!(broken.phase, Phase::TooLarge { limit: 10_000 });
    assert!((10_001..10_000 + (64 << 10)).contains(&broken.received), "{}", broken.received);
    assert_eq!(pool(at).send(&post()).await.unwrap().body.head(100).await.len(), 100);
}

#[tokio::test]
async fn endless_headers_and_what_is_no_http_are_refused() {
    for script in [
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: x\r\n".repeat(1000)),
        "SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(),
    ] {
        let (at, _server) = server(move |_, mut stream| {
            let script = script.clone();
            async move {
                read_request(&mut stream).await;
                answer(&mut stream, &script).await;
            }
        })
        .await;
        let broken = pool(at).send(&post()).await.unwrap_err();
        assert_eq!((broken.phase, broken.report), (Phase::Head, LossReport::Nothing), "{broken}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_not_unfolded() {
    let (at, _server) = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        answer(&mut stream, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx").await;
    })
    .await;
    let broken = pool(at).send(&post()).await.unwrap_err();
    assert!(
        broken.phase == Phase::Head
            && broken.report == LossReport::Nothing
            && broken.to_string().contains("gzip"),
        "{broken}"
    );
}

#[tokio::test]
async fn h20_what_a_redirect_leads_to_proves_nothing_about_who_redirected() {
    let (listener, at) = listen().await;
    let redirecting = spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        // It ran the call, and is gone: nothing listens at the second hop.
        drop(listener);
        let said = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        answer(&mut stream, said).await;
    });
    let broken = timeout(SOON, pool(at).send(&post())).await.unwrap().unwrap_err();
    redirecting.await.unwrap();
    assert_eq!((broken.phase, broken.report), (Phase::Refused, LossReport::Nothing), "{broken}");
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_and_no_other() {
    let (at, _server) = server(move |_, mut stream| async move {
        while let Some(request) = read_request(&mut stream).await {
            let response = if request.starts_with("POST /mcp/ ") {
                assert!(request.ends_with(BODY));
                ok("there")
            } else {
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp/\r\nContent-Length: 0\r\n\r\n".to_owned()
            };
            answer(&mut stream, &response).await;
        }
    })
    .await;
    assert_eq!(pool(at).send(&post()).await.unwrap().body.all(100).await.unwrap(), "there");

    for (location, shown) in [("http://127.0.0.1:1/x", "127.0.0.1:1/x"), ("/mcp", "more than 3 redirects")] {
        let (at, _server) = server(move |_, mut stream| async move {
            while read_request(&mut stream).await.is_some() {
                let head = "HTTP/1.1 308 Permanent Redirect\r\nContent-Length: 0\r\n";
                answer(&mut stream, &format!("{head}Location: {location}\r\n\r\n")).await;
            }
        })
        .await;
        let broken = pool(at).send(&post()).await.unwrap_err();
        assert!(broken.phase == Phase::Redirect && broken.is_config(), "{broken}");
        assert!(broken.to_string().contains(shown), "{broken}");
    }
}

#[tokio::test]
async fn a_dropped_response_closes_its_connection() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Some(told)));
    let (at, _server) = server(move |_, mut stream| {
        let told = told.clone();
        async move {
            read_request(&mut stream).await;
            answer(&mut stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n")
                .await;
            assert_eq!(read_request(&mut stream).await, None);
            told.lock().unwrap().take().map(|told| told.send(()));
        }
    })
    .await;
    let mut response = pool(at).send(&post()).await.unwrap();
    assert_eq!(response.body.chunk().await.unwrap().unwrap(), ": hello\n\n");
    drop(response);
    timeout(SOON, heard).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_peer_that_never_answers_a_connect_is_given_up() {
    // A listener whose queue is full drops what comes: the kernel's way of not answering.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let at = socket.local_addr().unwrap().as_socket().unwrap();
    let mut filling = Vec::new();
    for _ in 0..4 {
        filling.push(timeout(Duration::from_millis(50), tokio::net::TcpStream::connect(at)).await);
    }
    let waits = Waits { each: Duration::from_millis(100), ..Waits::default() };
    let pool = pool_with(at, Settings { waits, ..Settings::default() });
    let broken = pool.send(&post()).await.unwrap_err();
    assert_eq!((broken.phase, broken.report), (Phase::Connect, LossReport::NoByteWritten), "{broken}");
    // Whoever gives up before that knows as much.
    let request = post();
    assert!(timeout(Duration::from_millis(20), pool.send(&request)).await.is_err());
    assert!(!request.begun.get());
}

//! Connections: so many at once, none for longer than it asks something, and each read by its peer.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use linetender_holder::Holder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::answer::Address;
use crate::guard::Guard;
use crate::stall::Stall;
use crate::{Admin, Certificate};

/// Connections at once. Others wait.
const CONNECTIONS: usize = 64;

/// How long a request's header may take to come; also how long a connection may wait for its next request.
const HEADER: Duration = Duration::from_secs(10);

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What is read of a connection before it is understood, and kept of a response before it is sent.
const BUFFER: usize = 32 * 1024;

/// The most headers of a request.
const HEADERS: usize = 64;

/// If no connection can be accepted (no descriptors), how long until the next try.
const AGAIN: Duration = Duration::from_millis(200);

/// Serves whoever comes, until it is dropped.
pub(crate) async fn serve(admin: Admin, holder: Holder) {
    let Admin { listener, token, hosts, certificate, .. } = admin;
    let guard = Guard::new(&hosts, certificate.is_some());
    let address = Arc::new(Address::new(holder, token, guard));
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // It is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, from)) => {
                let (address, certificate) = (Arc::clone(&address), certificate.clone());
                connections.spawn(one(stream, from.ip().to_canonical(), address, certificate, place));
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

async fn one(
    stream: TcpStream,
    from: IpAddr,
    address: Arc<Address>,
    certificate: Option<Certificate>,
    _place: OwnedSemaphorePermit,
) {
    // Events are short, and are to come when they happen.
    let _ = stream.set_nodelay(true);
    let Some(certificate) = certificate else { return requests(stream, from, address).await };
    let shaken = async {
        let mut config = (*certificate().await).clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config)).accept(stream).await
    };
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, shaken).await {
        requests(stream, from, address).await;
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    from: IpAddr,
    address: Arc<Address>,
) {
    let service = service_fn(move |request| {
        let address = Arc::clone(&address);
        async move { Ok::<_, Infallible>(address.answer(request, from).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(Stall::new(stream)), service);
    // How it ends is its peer's business.
    let _ = served.await;
}

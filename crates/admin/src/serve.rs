//! Connections: so many at once, none for longer than it asks something, and each read by its peer. Whoever has shown no token
//! gives way to whoever comes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use linetender_holder::Holder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::answer::Address;
use crate::guard::Guard;
use crate::stall::Stall;
use crate::{Admin, Certificate};

/// Connections at once. One more replaces the oldest that has shown no token; if all have, it waits.
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
    let (mut connections, strangers) = (JoinSet::new(), Strangers::default());
    for number in 0_u64.. {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if places.available_permits() == 0
            && let Some((_, oldest)) = strangers.list().pop_first()
        {
            oldest.abort();
        }
        // It is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stranger = Stranger { number, among: strangers.clone() };
        let (address, certificate) = (Arc::clone(&address), certificate.clone());
        let mut list = strangers.list();
        let one = one(stream, from.ip().to_canonical(), address, certificate, (stranger, place));
        list.insert(number, connections.spawn(one));
    }
}

/// Connections that have shown no token yet, oldest first.
#[derive(Clone, Default)]
struct Strangers(Arc<Mutex<BTreeMap<u64, AbortHandle>>>);

impl Strangers {
    fn list(&self) -> MutexGuard<'_, BTreeMap<u64, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, until it is dropped or known.
struct Stranger {
    number: u64,
    among: Strangers,
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.among.list().remove(&self.number);
    }
}

/// Goes with each request of a connection, and is told when one of them shows the token.
#[derive(Clone)]
pub(crate) struct Unknown(Arc<Mutex<Option<Stranger>>>);

impl Unknown {
    /// From now on the connection keeps its place.
    pub(crate) fn is_known(&self) {
        let stranger = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(stranger);
    }
}

async fn one(
    stream: TcpStream,
    from: IpAddr,
    address: Arc<Address>,
    certificate: Option<Certificate>,
    (stranger, _place): (Stranger, OwnedSemaphorePermit),
) {
    let unknown = Unknown(Arc::new(Mutex::new(Some(stranger))));
    // Events are short, and are to come when they happen.
    let _ = stream.set_nodelay(true);
    let Some(certificate) = certificate else { return requests(stream, from, address, unknown).await };
    let shaken = async {
        let mut config = (*certificate().await).clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config)).accept(stream).await
    };
    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, shaken).await {
        requests(stream, from, address, unknown).await;
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    from: IpAddr,
    address: Arc<Address>,
    unknown: Unknown,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let address = Arc::clone(&address);
        request.extensions_mut().insert(unknown.clone());
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

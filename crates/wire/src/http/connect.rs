//! A connection of our own: looked up, connected, tunnelled and encrypted within bounds, and every byte counted.
//!
//! Pooled clients hide which connection a request went to and what became of it there. We need to know, as a fact,
//! whether a byte of a request was written; so the socket is ours, and what writes to it is counted.

mod acks;
mod around;
mod counted;
pub mod network;
mod proxy;
mod race;
mod socket;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "connect/no_tls.rs"]
mod tls;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
#[path = "connect/no_unix.rs"]
mod unix;
mod watch;

pub use around::{Proxies, Surroundings};
pub(super) use counted::{Counted, Written};
use network::{Network, Quiet};
pub(super) use race::Winner;
pub(super) use socket::{ACKS_AT_ONCE, WATCHES};
use watch::{Knock, Watched};

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::uri::Scheme;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::broken::{Broken, Phase};
use super::endpoint::Endpoint;
use crate::elsewhere::Elsewhere;

/// How long the steps before a request may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Waits {
    /// To look up a name.
    pub dns: Duration,
    /// To connect to one of its addresses.
    pub each: Duration,
    /// To connect to any of them.
    pub connect: Duration,
    /// To agree on TLS, and before that on a tunnel through a proxy: each.
    pub handshake: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            dns: Duration::from_secs(5),
            each: Duration::from_secs(4),
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
        }
    }
}

/// What a connection speaks, and how its requests have to be spelt.
pub(super) enum Speaks {
    Http1 { target: Target },
    Http2,
}

/// How a request names what it wants.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// By its path, to the server itself.
    Origin,
    /// By its whole address, to a proxy.
    Absolute { auth: Option<HeaderValue> },
}

/// Bytes to and from a server.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection of the system's, whose peer is watched.
type OverTcp = Watched<socket::Shared>;

/// A connection, before anything was said on it.
pub(super) struct Connected {
    pub(super) io: Box<dyn Stream>,
    pub(super) tcp: Arc<dyn Quiet>,
    pub(super) written: Written,
    pub(super) speaks: Speaks,
}

/// Connects. No byte of any request is written here.
pub(super) async fn connect(
    to: &Endpoint,
    around: &Surroundings,
    waits: Waits,
    http2_only: bool,
    winner: &Winner,
) -> Result<Connected, Broken> {
    if let Some(network) = around.elsewhere() {
        return connect_elsewhere(network, to, waits, http2_only).await;
    }
    if let Some(path) = to.socket() {
        let (stream, look) = unix::connect(path, waits.connect).await?;
        let (io, written) = Counted::new(stream);
        return Ok(Connected { io: Box::new(io), tcp: look, written, speaks: plainly(http2_only) });
    }
    let proxy = around.proxy_for(to);
    let (host, port) = match &proxy {
        None => (to.host().to_owned(), to.port()),
        Some(proxy) if proxy.uri().scheme().is_some_and(|scheme| *scheme != Scheme::HTTP) => {
            return Err(Broken::unsent(Phase::Proxy { config: true }, "only http:// proxies are supported"));
        }
        Some(proxy) => {
            let host = proxy.uri().host().unwrap_or_default();
            (host.trim_matches(['[', ']']).to_owned(), proxy.uri().port_u16().unwrap_or(80))
        }
    };
    let tcp = Arc::new(socket::connect(&host, port, waits, winner).await?);
    let look = Arc::<socket::Tcp>::clone(&tcp);
    let mut stream = Watched::new(socket::Shared(Arc::clone(&tcp)), look, tcp.knock());
    let auth = proxy.as_ref().and_then(|proxy| proxy.basic_auth().cloned());
    if proxy.is_some() && to.is_secure() {
        let asking = proxy::tunnel(&mut stream, to, auth.as_ref());
        bounded(waits.handshake, Phase::Proxy { config: false }, asking).await?;
    }
    let (stream, written) = Counted::new(stream);
    let (io, speaks): (Box<dyn Stream>, _) = if to.is_secure() {
        let asking = tls::secure(stream, to, around.tls());
        let (stream, http2) = bounded(waits.handshake, Phase::Tls { certificate: false }, asking).await?;
        (Box::new(stream), if http2 { Speaks::Http2 } else { Speaks::Http1 { target: Target::Origin } })
    } else if proxy.is_some() {
        (Box::new(stream), Speaks::Http1 { target: Target::Absolute { auth } })
    } else {
        (Box::new(stream), plainly(http2_only))
    };
    Ok(Connected { io, tcp, written, speaks })
}

/// On a simulated network there are neither proxies nor TLS.
async fn connect_elsewhere(
    Elsewhere(network): &Elsewhere<dyn Network>,
    to: &Endpoint,
    waits: Waits,
    http2_only: bool,
) -> Result<Connected, Broken> {
    let connecting = async {
        let stream = network.connect(to.host(), to.port()).await;
        let phase = |error: &std::io::Error| match error.kind() {
            std::io::ErrorKind::ConnectionRefused => Phase::Refused,
            _ => Phase::Connect,
        };
        stream.map_err(|error| Broken::unsent(phase(&error), format_args!("{}: {error}", to.host())))
    };
    let stream = bounded(waits.connect, Phase::Connect, connecting).await?;
    let tcp = stream.look();
    let (again, at) = (Arc::clone(network), (Arc::<str>::from(to.host()), to.port()));
    let knock = move || -> Knock {
        let (again, (host, port)) = (Arc::clone(&again), at.clone());
        Box::pin(async move { again.connect(&host, port).await.map(drop) })
    };
    let (io, written) = Counted::new(Watched::new(stream, Arc::clone(&tcp), knock));
    Ok(Connected { io: Box::new(io), tcp, written, speaks: plainly(http2_only) })
}

/// What is spoken to the server itself where nobody negotiates.
const fn plainly(http2_only: bool) -> Speaks {
    if http2_only { Speaks::Http2 } else { Speaks::Http1 { target: Target::Origin } }
}

async fn bounded<T>(
    wait: Duration,
    phase: Phase,
    work: impl Future<Output = Result<T, Broken>>,
) -> Result<T, Broken> {
    timeout(wait, work)
        .await
        .unwrap_or_else(|_| Err(Broken::unsent(phase, format_args!("timed out after {wait:?}"))))
}

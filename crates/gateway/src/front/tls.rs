//! TLS at the address: handshakes that hold nobody up, with a certificate that may be renewed.
//!
//! A connection has its place and its activity before its handshake begins, so an unfinished handshake is to the gateway what an
//! unfinished header is: it ends after [`HEAD`](super::activity::HEAD), and gives way when all places are taken. What a handshake
//! costs is processor time, for a signature: one step of one handshake is done at a time, and users take turns at it. However many
//! come, they take no more than one processor, and whoever begins many waits behind itself.

mod files;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Poll;
use std::time::Duration;

use linetender_wire::aside;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use super::accept::Connection;
use super::activity::{Activity, Watch};
use super::long::LongTurns;
use crate::config::{Settings, TlsFiles};
use files::Stamp;

/// How often it is looked whether the files have changed, if connections come.
const LOOK: Duration = Duration::from_secs(1);

/// What is encrypted of a response before its peer takes it: one record. The memory budget does not count it.
const RECORD: usize = 16 * 1024;

/// What is read of a request that is not TLS. A peer that has more to say may miss the answer.
const PLAIN: u64 = 64 * 1024;

/// What somebody gets who speaks plain HTTP.
const NOT_PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 35\r\nConnection: close\r\n\r\n\
    this port speaks TLS: use https://\n";

/// What a door speaks TLS with.
pub(super) struct Tls {
    files: TlsFiles,
    config: Mutex<Arc<ServerConfig>>,
    /// When somebody last looked at the files.
    looked: Mutex<Instant>,
    /// Which files were last read. Whoever looks holds it meanwhile.
    read: Mutex<Stamp>,
    turns: LongTurns,
}

impl Tls {
    /// What the settings say, tried.
    pub(super) fn of(settings: &Settings) -> Result<Option<Arc<Self>>, String> {
        let Some(files) = settings.tls().map_err(|half| half.to_string())? else { return Ok(None) };
        // In this order: what changes between the two is seen at the next look.
        let stamp = Stamp::of(&files);
        let config = files::load(&files)?;
        Ok(Some(Arc::new(Self {
            files,
            config: Mutex::new(config),
            looked: Mutex::new(Instant::now()),
            read: Mutex::new(stamp),
            turns: LongTurns::new(),
        })))
    }

    /// Shakes hands with a peer. An error is the peer's business.
    pub(super) async fn handshake(
        self: Arc<Self>,
        mut stream: TcpStream,
        activity: &Activity,
    ) -> io::Result<TlsStream<TcpStream>> {
        activity.shakes_hands();
        let mut first = [0];
        // No record of TLS begins with a letter, and every method of HTTP does.
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
            refuse_plain(&mut stream).await?;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "plain HTTP"));
        }
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let config = self.config().await;
        let principal = activity.owner().principal;
        let mut turn = self.turns.turn(principal).await;
        let mut handshake = pin!(hello.into_stream_with(config, |peer| peer.set_buffer_limit(Some(RECORD))));
        let shaken = loop {
            let step = poll_fn(|context| Poll::Ready(handshake.as_mut().poll(context))).await;
            drop(turn);
            match step {
                Poll::Ready(shaken) => break shaken?,
                Poll::Pending => woken().await,
            }
            // A peer can choose at which step there is something to sign.
            turn = self.turns.turn(principal).await;
        };
        activity.shook_hands();
        Ok(shaken)
    }

    /// What to shake hands with now.
    pub(super) async fn config(self: &Arc<Self>) -> Arc<ServerConfig> {
        if self.is_due() {
            let this = Arc::clone(self);
            aside(move || this.look()).await;
        }
        Arc::clone(&lock(&self.config))
    }

    fn is_due(&self) -> bool {
        let mut looked = lock(&self.looked);
        let due = looked.elapsed() >= LOOK;
        if due {
            *looked = Instant::now();
        }
        due
    }

    /// Reads the files if they have changed. If they cannot be used, what was served is served on.
    fn look(&self) {
        // On a file system that hangs, one look does, and not one more each second.
        let mut read = match self.read.try_lock() {
            Ok(read) => read,
            Err(TryLockError::Poisoned(read)) => read.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let stamp = Stamp::of(&self.files);
        if *read == stamp {
            return;
        }
        // Also if they are broken: that is told once.
        *read = stamp;
        match files::load(&self.files) {
            Ok(config) => {
                *lock(&self.config) = config;
                let certificate = self.files.certificate.display();
                tracing::info!(%certificate, "serving the renewed TLS certificate");
            }
            Err(error) => {
                tracing::warn!(%error, "cannot use the changed TLS files; serving the old certificate");
            }
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection after its handshake, if it has one; none if that fails or takes too long, if its place is wanted for somebody
/// else, or if the gateway is about to end: nothing was asked yet.
pub(super) async fn secured(
    connection: Connection,
    closing: &mut watch::Receiver<bool>,
) -> Option<Connection> {
    if !connection.needs_handshake() {
        return Some(connection);
    }
    let activity = connection.activity();
    // It is large, and a connection that serves should not carry it along.
    let shaking = Box::pin(connection.secured());
    tokio::select! {
        biased;
        shaken = shaking => match shaken {
            Ok(connection) => Some(connection),
            Err(error) => {
                tracing::debug!(%error, "no TLS handshake");
                None
            }
        },
        overdue = Watch::new(&activity) => {
            tracing::debug!(?overdue, "closing a connection in its TLS handshake");
            None
        }
        () = activity.gives_way() => None,
        _ = closing.wait_for(|closing| *closing) => None,
    }
}

/// Waits until the task is woken by what was polled just before.
async fn woken() {
    let mut waited = false;
    poll_fn(move |_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}

/// Tells somebody who speaks plain HTTP what to do. What it said is read, or it would be reset before it has read that.
async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(NOT_PLAIN).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(PLAIN), &mut tokio::io::sink()).await.map(drop)
}

//! An MCP server over Streamable HTTP that misbehaves on purpose.
//!
//! It speaks both eras on real sockets, because what a line must tell apart happens there: a reset before the headers, a
//! connection that went stale in a pool, a stream cut in the middle. Faults of one call are tools ([`TOOLS`]), everything
//! else is [`Manners`], which can be changed while it runs.

mod answers;
mod body;
mod calls;
mod door;
mod faults;
mod flags;
mod goaway;
mod house;
mod legacy;
mod manners;
mod methods;
mod modern;
mod post;
mod replay;
mod reply;
mod sse_door;
mod streams;
mod tally;
mod tap;
mod tls;
mod tools;
mod wants;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::process;
use house::House;

pub use flags::{config, main};
pub use manners::{Answers, Fault, Manners, Sockets, Speaks, SseDoor, Streams, UnknownSession};
pub use tally::{Counters, Seen};
pub use tap::Ending;
pub use tools::TOOLS;
pub use wants::Wants;

/// How many connections the kernel may hold for us.
const BACKLOG: u32 = 1024;

/// How often it is tried to take a port again.
const BINDS: u32 = 400;

/// How long the ends of connections may take to reach whoever held them.
const DELIVERED: Duration = Duration::from_secs(2);

/// What cannot change while a server lives.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The address; 127.0.0.1, if not said.
    pub host: Option<Ipv4Addr>,
    /// The port; 0 takes any that is free.
    pub port: u16,
    /// Whether it speaks TLS, with a certificate made at start.
    pub tls: bool,
    /// Where it writes what it read and ran.
    pub book: Option<PathBuf>,
    /// How it behaves at first.
    pub manners: Manners,
}

/// A running server. Its tasks end with it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use linetender_badserver::webserver::{Config, Ending, Speaks, WebServer};
///
/// let mut web = WebServer::start(Config::default())?;
/// web.set(|manners| manners.speaks = Speaks::Modern);
/// assert!(web.url().ends_with("/mcp"));
/// web.restart(Ending::Reset).await?;
/// assert_eq!(web.counters().connections, 0);
/// # std::io::Result::Ok(()) })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct WebServer {
    house: Arc<House>,
    address: SocketAddr,
    door: Option<Door>,
}

/// The listener's task, and the word that ends it.
#[derive(Debug)]
struct Door {
    closing: watch::Sender<Option<Ending>>,
    task: JoinSet<()>,
}

impl WebServer {
    /// Starts it on the runtime of the caller.
    ///
    /// # Errors
    /// If the port is taken, the book cannot be opened, or no certificate can be made.
    pub fn start(config: Config) -> io::Result<Self> {
        let listener = bind((config.host.unwrap_or(Ipv4Addr::LOCALHOST), config.port).into())?;
        let address = listener.local_addr()?;
        let house = House::build(config, address)?;
        let mut server = Self { house, address, door: None };
        server.open(listener);
        Ok(server)
    }

    /// Where it serves MCP.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.house.origin)
    }

    /// Where it serves the transport of 2024-11-05, HTTP+SSE.
    pub fn sse_url(&self) -> String {
        format!("{}/sse", self.house.origin)
    }

    /// Cuts the streams of that transport, and nothing else.
    pub fn cut_event_streams(&self) {
        self.house.open_streams.cut();
    }

    /// How many streams of that transport are open.
    pub fn event_streams(&self) -> usize {
        self.house.open_streams.count()
    }

    /// Its port, which it keeps across restarts.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that a client has to trust, as DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.house.tls.as_ref().map(|tls| &*tls.der)
    }

    /// The certificate that a client has to trust, as PEM.
    pub fn certificate_pem(&self) -> Option<&str> {
        self.house.tls.as_ref().map(|tls| &*tls.pem)
    }

    /// Changes how it behaves, from now on. What concerns sockets also applies to those that are open.
    pub fn set(&self, change: impl FnOnce(&mut Manners)) {
        self.house.set(change);
    }

    /// Forgets every session, and what could have been resumed, as a restart would.
    pub fn forget_sessions(&self) {
        self.house.forget_sessions();
    }

    /// Tells everybody who listens that the tools have changed, and changes them.
    pub fn change_tools(&self) {
        self.house.change_tools();
    }

    /// How many streams are open on which a change would be told.
    pub fn listeners(&self) -> usize {
        self.house.changes.receiver_count()
    }

    /// Ends every open connection, and goes on listening.
    pub fn end_connections(&self, how: Ending) {
        self.house.end_connections(how);
    }

    /// What was seen so far, over all restarts.
    pub fn counters(&self) -> Counters {
        self.house.tally.counters()
    }

    /// The last requests, oldest first. Only so many are kept.
    pub fn seen(&self) -> Vec<Seen> {
        self.house.tally.seen()
    }

    /// Closes the listener and every connection. When this returns, the port refuses, and nobody holds an end of a connection
    /// that is over: on a busy machine the kernel takes its time to deliver a reset, and a request may cross with it.
    pub async fn stop(&mut self, how: Ending) {
        if let Some(mut door) = self.door.take() {
            door.closing.send_replace(Some(how));
            while door.task.join_next().await.is_some() {}
            self.delivered().await;
        }
    }

    /// Until nobody holds an end of a connection that is over, or is about to be; not for ever.
    pub async fn delivered(&self) {
        // What the kernel says of our own ends does not count: a process that is just being started has copies of them.
        let dead = |client: &u16| !self.house.serves(*client);
        let delivered = async {
            while process::connected_to(self.port()).iter().any(dead) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(DELIVERED, delivered).await;
    }

    /// Stops, forgets every session, and listens on the same port again.
    ///
    /// # Errors
    /// If somebody else took the port.
    pub async fn restart(&mut self, how: Ending) -> io::Result<()> {
        self.stop(how).await;
        self.house.forget_sessions();
        let listener = bind_again(self.address).await?;
        self.open(listener);
        Ok(())
    }

    fn open(&mut self, listener: TcpListener) {
        let (closing, closed) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(door::keep(Arc::clone(&self.house), listener, closed));
        self.door = Some(Door { closing, task });
    }
}

/// A process that is just being started has a copy of our old listener until it becomes another program: the port is free
/// in a moment.
async fn bind_again(address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..BINDS {
        match bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            bound => return bound,
        }
    }
    bind(address)
}

/// A listener whose port can be taken again while old connections linger.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

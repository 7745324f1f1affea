//! A proxy on loopback that breaks what lies between two healthy peers.
//!
//! A server can misbehave by itself; a network does so to both sides at once, and in the middle of a byte stream that
//! neither knows to be broken. Faults are switched while it runs, and apply to open and to new connections alike.

mod pump;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const BACKLOG: u32 = 1024;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// From the client to the target.
    Up,
    /// From the target to the client.
    Down,
}

/// What the proxy does to connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Every piece is held back this long, each way.
    Latency(Duration),
    /// Nothing passes, and nobody is told: connections stay open, new ones are accepted.
    Silence,
    /// All connections are reset, and new ones too.
    Reset,
    /// Nobody listens. Open connections go on.
    Refuse,
    /// So many bytes at a time, this far apart, each way.
    Drip {
        /// How many at a time.
        bytes: usize,
        /// How far apart.
        every: Duration,
    },
    /// Each connection is closed once so many bytes have gone this way since the fault began.
    CutAfter {
        /// Which way is counted.
        way: Way,
        /// How many pass.
        bytes: u64,
    },
}

/// What went through.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Passed {
    /// Connections accepted.
    pub connections: u64,
    /// Bytes passed on to the target.
    pub up: u64,
    /// Bytes passed on to clients.
    pub down: u64,
}

/// A running proxy. Its tasks end with it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use linetender_badserver::proxy::{Fault, Proxy};
/// use linetender_badserver::webserver::{Config, WebServer};
///
/// let web = WebServer::start(Config::default())?;
/// let proxy = Proxy::start(web.address())?;
/// proxy.set(Fault::Refuse).await;
/// assert!(tokio::net::TcpStream::connect(proxy.addr()).await.is_err());
/// # std::io::Result::Ok(()) })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

/// What the proxy's tasks share.
#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    fault: watch::Sender<Fault>,
    state: watch::Sender<State>,
    connections: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    listening: bool,
    open: usize,
}

impl Proxy {
    /// Starts it in front of a target, on the runtime of the caller.
    ///
    /// # Errors
    /// If the target is not on loopback, or there is no port.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        if !target.ip().is_loopback() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the target is not on loopback"));
        }
        let listener = bind(0)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            fault: watch::Sender::new(Fault::None),
            state: watch::Sender::new(State { listening: true, open: 0 }),
            connections: AtomicU64::new(0),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        });
        let mut task = JoinSet::new();
        task.spawn(Arc::clone(&shared).keep(listener, address.port()));
        Ok(Self { address, shared, _task: task })
    }

    /// Where clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Switches the fault. When this returns, a listener that shall be closed is closed, one that shall be open is open,
    /// and connections that shall be reset are gone.
    pub async fn set(&self, fault: Fault) {
        self.shared.fault.send_replace(fault);
        let done = |state: &State| {
            state.listening == (fault != Fault::Refuse) && (fault != Fault::Reset || state.open == 0)
        };
        let _ = self.shared.state.subscribe().wait_for(done).await;
    }

    /// What went through so far.
    pub fn passed(&self) -> Passed {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Shared { connections, up, down, .. } = &*self.shared;
        Passed { connections: read(connections), up: read(up), down: read(down) }
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.shared.state.borrow().open
    }
}

impl Shared {
    /// Accepts for as long as the proxy lives, except while it shall refuse.
    async fn keep(self: Arc<Self>, listener: TcpListener, port: u16) {
        let mut connections = JoinSet::new();
        let mut fault = self.fault.subscribe();
        let mut listener = Some(listener);
        loop {
            let refuses = *fault.borrow_and_update() == Fault::Refuse;
            if refuses {
                listener = None;
            } else if listener.is_none() {
                listener = bind(port).ok();
            }
            self.state.send_modify(|state| state.listening = listener.is_some());
            tokio::select! {
                changed = fault.changed() => if changed.is_err() { return },
                stream = accept(listener.as_ref()) => {
                    connections.spawn(connection(self.opened(), stream));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn opened(self: &Arc<Self>) -> Opened {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.state.send_modify(|state| state.open += 1);
        Opened(Arc::clone(self))
    }

    fn count(&self, way: Way, bytes: usize) {
        let count = if way == Way::Up { &self.up } else { &self.down };
        count.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Counts a connection as open until it is dropped.
struct Opened(Arc<Shared>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.open -= 1);
    }
}

/// Serves a connection. What counts it is named first, so that it is dropped after the sockets.
async fn connection(opened: Opened, client: TcpStream) {
    let shared = &opened.0;
    let mut fault = shared.fault.subscribe();
    let server = tokio::select! {
        biased;
        _ = fault.wait_for(|fault| *fault == Fault::Reset) => {
            let _ = client.set_zero_linger();
            return;
        }
        connected = TcpStream::connect(shared.target) => connected,
    };
    // A target that cannot be reached looks like a peer that went away.
    let Ok(server) = server else { return };
    pump::run(shared, client, server).await;
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            return stream;
        }
    }
}

fn bind(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    socket.listen(BACKLOG)
}

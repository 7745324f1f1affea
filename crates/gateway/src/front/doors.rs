//! Where agents come in. All of it is opened and tried before a server is started.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};

use super::accept::{Door, Listener};
use super::caller::Admission;
use super::socket::Socket;
use super::tls::Tls;
use crate::bearers::Bearers;
use crate::config::Settings;
use crate::peer::{Owners, Users};

/// Connections that wait to be accepted. With the usual 128, whoever connects a hundred times keeps others waiting for a second.
const BACKLOG: u32 = 4096;

/// Listeners that are open: an address, a Unix socket, or both.
#[derive(Debug)]
pub struct Doors {
    pub(super) open: Vec<Door>,
    address: Option<SocketAddr>,
    is_tls: bool,
    socket: Option<PathBuf>,
    pub(super) bearers: Option<Arc<dyn Bearers>>,
}

/// A certificate that may be renewed while it is used. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Certificate(Arc<Tls>);

impl Certificate {
    /// What to shake hands with now.
    pub async fn config(&self) -> Arc<rustls::ServerConfig> {
        self.0.config().await
    }
}

/// Why no agent could come in: a sentence for whoever starts the gateway.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotOpen(String);

impl From<CannotOpen> for io::Error {
    fn from(why: CannotOpen) -> Self {
        Self::other(why)
    }
}

impl Doors {
    /// Opens what the settings name. `usual_socket` is where the Unix socket is if they do not say.
    ///
    /// # Errors
    /// An address or a named socket that is taken; TLS files that cannot be used; an address other than loopback without `insecure`; and a machine on which
    /// it cannot be told whose a connection is.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(settings: &Settings, usual_socket: Option<&Path>) -> Result<Self, CannotOpen> {
        if let Some(refusal) = settings.refusal() {
            return Err(CannotOpen(refusal));
        }
        let tcp = match settings.listen.address() {
            None => None,
            Some(address) => Some(
                bind(address).map_err(|error| CannotOpen(format!("cannot listen on {address}: {error}")))?,
            ),
        };
        let socket = match &settings.socket {
            Some(named) => named.path().map(|path| (path, Socket::bind(path, false))),
            None => usual_socket.map(|path| (path, Socket::bind(path, true))),
        };
        let socket = match socket {
            None => None,
            Some((_, Ok(socket))) => Some(socket),
            // Nobody asked for it: it is done without, unless it is all there is.
            Some((path, Err(error))) if settings.socket.is_none() && tcp.is_some() => {
                tracing::warn!(%error, path = %path.display(), "serving without a Unix socket");
                None
            }
            Some((path, Err(error))) => {
                return Err(CannotOpen(format!("cannot listen on the socket {}: {error}", path.display())));
            }
        };
        Self::of(settings, tcp, socket)
    }

    /// Serves this listener alone, under the rules of the settings.
    ///
    /// # Errors
    /// As with [`open`](Self::open).
    pub fn over(settings: &Settings, listener: TcpListener) -> Result<Self, CannotOpen> {
        let own = listener.local_addr().map_or(settings.listen, Into::into);
        if let Some(refusal) = (Settings { listen: own, ..settings.clone() }).refusal() {
            return Err(CannotOpen(refusal));
        }
        Self::of(settings, Some(listener), None)
    }

    fn of(settings: &Settings, tcp: Option<TcpListener>, socket: Option<Socket>) -> Result<Self, CannotOpen> {
        let users = Users::of(settings.local_users.as_deref()).map_err(CannotOpen)?;
        let tls = if tcp.is_some() { Tls::of(settings).map_err(CannotOpen)? } else { None };
        let is_tls = tls.is_some();
        let mut doors = Self { open: Vec::new(), address: None, is_tls, socket: None, bearers: None };
        if let Some(listener) = tcp {
            let failed = |error: io::Error| CannotOpen(format!("cannot listen: {error}"));
            let address = listener.local_addr().map_err(failed)?;
            doors.address = Some(address);
            let admission = if settings.auth.is_on() {
                let is_public = |url: &String| url.starts_with("https://");
                if !is_tls
                    && !address.ip().to_canonical().is_loopback()
                    && !settings.public_url.as_ref().is_some_and(is_public)
                {
                    tracing::warn!(
                        %address,
                        "tokens travel unencrypted to this address: set tls_certificate and tls_key, or put a TLS proxy before it and set \
                         public_url"
                    );
                }
                // Whoever has a token may come from anywhere, through a proxy of another user too.
                Admission::everybody()
            } else if settings.insecure {
                tracing::warn!(
                    %address,
                    "insecure = true: everybody who can reach this address can call the tools, without authentication"
                );
                Admission::everybody()
            } else {
                if !users.are_told_apart() {
                    let error =
                        io::Error::other("in this user namespace all users have the number that we have");
                    return Err(unknown_owners(error));
                }
                let owners = Owners::known_at(address.ip()).map_err(unknown_owners)?;
                Admission::only(users.clone(), Some(owners))
            };
            doors.open.push(Door::new(Listener::Tcp(listener), admission).speaking(tls));
        }
        if let Some(socket) = socket {
            doors.socket = Some(socket.path().to_owned());
            // Its mode admits nobody else anyway: `insecure` is about addresses.
            doors.open.push(Door::new(Listener::Unix(socket), Admission::only(users, None)));
        }
        if doors.open.is_empty() {
            let words = "nothing to listen on: gateway.listen is off, and there is no Unix socket (set gateway.socket)";
            return Err(CannotOpen(words.to_owned()));
        }
        Ok(doors)
    }

    /// Lets this verify the tokens of agents.
    #[must_use]
    pub fn verified_by(mut self, bearers: Arc<dyn Bearers>) -> Self {
        self.bearers = Some(bearers);
        self
    }

    /// The address that is listened on.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where agents find all servers over TCP.
    pub fn url(&self) -> Option<String> {
        let scheme = if self.is_tls { "https" } else { "http" };
        self.address.map(|address| format!("{scheme}://{address}/mcp"))
    }

    /// Tries the TLS files that the settings name.
    ///
    /// # Errors
    /// Files that cannot be used, with the reason.
    pub fn check_tls(settings: &Settings) -> Result<(), CannotOpen> {
        if settings.listen.address().is_none() {
            return Ok(());
        }
        Tls::of(settings).map(drop).map_err(CannotOpen)
    }

    /// What another address of the gateway speaks TLS with, if the settings name a certificate.
    ///
    /// # Errors
    /// Files that cannot be used, with the reason.
    pub fn certificate(settings: &Settings) -> Result<Option<Certificate>, CannotOpen> {
        Tls::of(settings).map(|tls| tls.map(Certificate)).map_err(CannotOpen)
    }

    /// The Unix socket that is listened on.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As the standard library does: a gateway that starts again takes its port back at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over an error")]
fn unknown_owners(error: io::Error) -> CannotOpen {
    CannotOpen(format!(
        "cannot tell which user opens a connection to the gateway, so any user of this machine could call the tools: {error} (is \
         AF_NETLINK forbidden, or /proc not mounted?). Serve on the Unix socket alone (`listen = \"off\"` in [gateway]), or admit \
         everybody with `insecure = true` in [gateway] (or --insecure)"
    ))
}

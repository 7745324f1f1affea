//! The admin address of a gateway: what a [`Holder`] answers on its socket, over HTTP, and metrics.
//!
//! Everything but the page and `/healthz` needs a token in the `Authorization` header. Requests that name a foreign host, or come
//! from a page of another origin, are refused, so a browser cannot be made to ask for somebody else. Nothing here counts or decides
//! anything: it shows what the holder has, and passes orders on to it.

mod answer;
mod events;
mod guard;
mod metrics;
mod openapi;
mod page;
mod problem;
mod query;
mod routes;
mod serve;
mod stall;
mod token;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use linetender_holder::Holder;
use rustls::ServerConfig;
use tokio::net::TcpListener;

pub use metrics::{Kind, METRICS, Metric};
pub use openapi::document as openapi;

use token::Token;

/// What the address speaks TLS with, asked anew for each connection: certificates are renewed.
pub type Certificate = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Arc<ServerConfig>> + Send>> + Send + Sync>;

/// Where the token comes from.
#[derive(Clone)]
pub enum Secret {
    /// This is the token.
    Text(String),
    /// It stands in this file, which may change.
    File(PathBuf),
}

/// How the address is served.
pub struct Options {
    /// Address and port.
    pub listen: SocketAddr,
    /// The token that requests have to show.
    pub token: Secret,
    /// Host names that may stand in the Host header, beside localhost and IP addresses.
    pub hosts: Vec<String>,
    /// With it, the address speaks `https://` alone.
    pub certificate: Option<Certificate>,
}

/// An address that is open, and not served yet.
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    hosts: Vec<String>,
    certificate: Option<Certificate>,
}

impl Admin {
    /// Opens the address, and reads the token.
    ///
    /// # Errors
    /// A sentence for whoever starts the gateway.
    pub async fn open(options: Options) -> Result<Self, String> {
        let Options { listen, token, hosts, certificate } = options;
        let token = Token::of(token)?;
        let cannot = |error: io::Error| format!("cannot listen on the admin address {listen}: {error}");
        let listener = TcpListener::bind(listen).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Self { listener, address, token, hosts, certificate })
    }

    /// Tries the token, without listening.
    ///
    /// # Errors
    /// A sentence for whoever checks a config file.
    pub fn check_token(token: Secret) -> Result<(), String> {
        Token::of(token).map(drop)
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Serves until it is dropped.
    pub async fn serve(self, holder: Holder) {
        serve::serve(self, holder).await;
    }
}

/// The token stays secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What stands in the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! An endpoint that only hands bytes on: what is the least that anything between an agent and a server over HTTP can cost, if it
//! ends one connection and begins another.

use std::error::Error;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use http::uri::Uri;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

struct Relay {
    to: Uri,
    client: Client<HttpConnector, Incoming>,
}

/// An endpoint that only hands bytes on to this address. It prints its own, and serves until its socket breaks.
///
/// # Errors
/// If it cannot listen, or not any more.
pub async fn relay(to: &str) -> Result<(), String> {
    let (url, served) = listen(to).await.map_err(|error| error.to_string())?;
    println!("listening on {url}");
    Err(served.await.to_string())
}

/// A relay that listens, and serves for as long as it is polled.
pub(super) async fn listen(
    to: &str,
) -> Result<(String, impl Future<Output = io::Error> + use<>), Box<dyn Error>> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let relay = Arc::new(Relay { to: to.parse()?, client });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok((format!("http://{}/mcp", listener.local_addr()?), relay.serve(listener)))
}

impl Relay {
    /// Until the socket breaks.
    async fn serve(self: Arc<Self>, listener: TcpListener) -> io::Error {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        let relay = Arc::clone(&self);
                        connections.spawn(http1::Builder::new().serve_connection(
                            TokioIo::new(stream),
                            service_fn(move |request| Arc::clone(&relay).hand_on(request)),
                        ));
                    }
                    Err(error) => return error,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// Head and body as they are, to the other address.
    async fn hand_on(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        request.headers_mut().remove(http::header::HOST);
        *request.uri_mut() = self.to.clone();
        self.client.request(request).await
    }
}

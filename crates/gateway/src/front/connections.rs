//! Connections, from the listener to their end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use linetender_wire::Steady;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::accept::{Bounded, Connection};
use super::guard::Guard;
use super::who::From;

/// How long nothing may go through a connection before its place is somebody else's, and at most twice that. This is for those
/// who ask nothing: a stream says something every few seconds, and a greeting, which does not, is over when its server is up or has
/// failed to start. That is a minute unless a policy has it otherwise.
const IDLE: Duration = Duration::from_secs(300);

/// What every request has to pass.
#[derive(Clone)]
pub(super) struct Entrance {
    guard: Arc<Guard>,
    router: TowerToHyperService<Router>,
}

impl Entrance {
    pub(super) fn new(guard: Guard, router: Router) -> Self {
        Self { guard: Arc::new(guard), router: TowerToHyperService::new(router) }
    }

    /// Lets a request in, or not. It knows where it comes from.
    fn pass(
        &self,
        mut request: Request<Incoming>,
        from: From,
    ) -> impl Future<Output = Result<Response, Infallible>> + use<> {
        let passes = if let Some(refused) = self.guard.refused(&request) {
            Err(refused)
        } else {
            request.extensions_mut().insert(from);
            Ok(self.router.call(request))
        };
        async move {
            match passes {
                Ok(routed) => routed.await,
                Err(refused) => Ok(refused),
            }
        }
    }
}

/// Serves whoever comes until it is about to end; then those who are there, until what they asked for is answered.
pub(super) async fn serve(listener: Bounded, entrance: Entrance, closing: watch::Receiver<bool>) {
    let mut about_to_end = closing.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (connection, from) = listener.accept() => {
                connections.spawn(one(connection, entrance.clone(), From(from.ip()), closing.clone()));
            }
            Some(_) = connections.join_next() => {}
            _ = about_to_end.wait_for(|closing| *closing) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection. How it ends is its agent's business.
async fn one(connection: Connection, entrance: Entrance, from: From, mut closing: watch::Receiver<bool>) {
    let stirs = connection.stirs();
    let server = auto::Builder::new(TokioExecutor::new());
    let service = service_fn(move |request| entrance.pass(request, from));
    let served = server.serve_connection(TokioIo::new(connection), service);
    // A handler that reads its request wakes the connection that it runs in.
    let mut served = Steady::new(Box::pin(served));
    loop {
        tokio::select! {
            _ = &mut served => return,
            _ = closing.wait_for(|closing| *closing) => break,
            () = tokio::time::sleep(IDLE) => {
                if !stirs.since_last() {
                    return;
                }
            }
        }
    }
    served.get_mut().as_mut().graceful_shutdown();
    let _ = served.await;
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::watch;
    use tokio::task::JoinSet;

    use super::{Bounded, Entrance, Guard, IDLE, serve};
    use crate::config::Settings;

    /// A house with one place. It stands for as long as what is returned.
    async fn house() -> (JoinSet<()>, watch::Sender<bool>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (closing, closes) = watch::channel(false);
        let router = Router::new().route("/", get(async || "here"));
        let mut tasks = JoinSet::new();
        let entrance = Entrance::new(Guard::new(&Settings::default()), router);
        tasks.spawn(serve(Bounded::new(listener, 1), entrance, closes));
        (tasks, closing, at)
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_now_and_then_keeps_a_place() {
        let (_tasks, _closing, at) = house().await;
        let mut asks = TcpStream::connect(at).await.unwrap();
        for _ in 0..4 {
            tokio::time::sleep(IDLE * 3 / 4).await;
            asks.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"here") {
                assert!(asks.read_buf(&mut answer).await.unwrap() > 0, "it was hung up on");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_nothing_does_not_keep_a_place_for_ever() {
        let (_tasks, _closing, at) = house().await;
        let mut silent = TcpStream::connect(at).await.unwrap();
        let mut asks = TcpStream::connect(at).await.unwrap();
        asks.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        assert_eq!(silent.read(&mut [0]).await.unwrap(), 0, "it was hung up on");
    }
}

//! Connections, from the door to their end.

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use linetender_wire::Steady;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::accept::{Bounded, Connection};
use super::who::From;

/// Serves whoever comes until it is about to end; then those who are there, until what they asked for is answered.
pub(super) async fn serve(listener: Bounded, router: Router, closing: watch::Receiver<bool>) {
    let mut about_to_end = closing.clone();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (connection, from) = listener.accept() => {
                let router = router.clone().layer(Extension(From(from.ip())));
                connections.spawn(one(connection, router, closing.clone()));
            }
            Some(_) = connections.join_next() => {}
            _ = about_to_end.wait_for(|closing| *closing) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection. How it ends is its agent's business.
async fn one(connection: Connection, router: Router, mut closing: watch::Receiver<bool>) {
    let server = auto::Builder::new(TokioExecutor::new());
    let served = server.serve_connection(TokioIo::new(connection), TowerToHyperService::new(router));
    // A handler that reads its request wakes the connection that it runs in.
    let mut served = Steady::new(Box::pin(served));
    tokio::select! {
        _ = &mut served => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    served.get_mut().as_mut().graceful_shutdown();
    let _ = served.await;
}

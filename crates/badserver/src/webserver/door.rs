//! Where connections come in, and what keeps each of them.

use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::goaway::Common;
use super::house::House;
use super::post;
use super::tap::{Ending, Flow, Tap, Tapped};

/// Accepts until told to close; then no connection is left when this returns.
pub(super) async fn keep(
    house: Arc<House>,
    listener: TcpListener,
    mut closing: watch::Receiver<Option<Ending>>,
) {
    let mut connections = JoinSet::new();
    let how = loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, from)) = accepted {
                connections.spawn(connection(Arc::clone(&house), stream, from.port()));
            },
            Some(_) = connections.join_next() => {}
            closed = closing.wait_for(Option::is_some) => break closed.ok().and_then(|how| *how),
        }
    };
    drop(listener);
    house.end_connections(how.unwrap_or(Ending::Fin));
    connections.shutdown().await;
}

async fn connection(house: Arc<House>, stream: TcpStream, client: u16) {
    let _counted = house.tally.connection();
    let _ = stream.set_nodelay(true);
    let tap = house.new_tap(client);
    let tapped = Tapped::new(stream, Arc::clone(&tap));
    let talks = async {
        match &house.tls {
            None => talk(&house, &tap, tapped).await,
            Some(tls) => {
                if let Ok(stream) = tls.acceptor.accept(tapped).await {
                    talk(&house, &tap, stream).await;
                }
            }
        }
    };
    tokio::select! {
        // The tap goes first: what has ended may not say another word.
        biased;
        () = tap.until(|flow| matches!(flow, Flow::Ended(_))) => {}
        () = talks => {}
    }
}

async fn talk<S>(house: &Arc<House>, tap: &Arc<Tap>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (house, tap) = (Arc::clone(house), Arc::clone(tap));
        async move { post::serve(house, tap, request).await }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut stream = Common::new(stream);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream.clone()), service));
    tokio::select! {
        biased;
        () = tap.until(|flow| *flow == Flow::Leaving) => connection.as_mut().graceful_shutdown(),
        // What is still sent is read away, or the kernel would reset and the frame could be lost.
        () = tap.until(|flow| *flow == Flow::Disowned) => stream.disown().await,
        _ = connection.as_mut() => return,
    }
    let _ = connection.await;
}

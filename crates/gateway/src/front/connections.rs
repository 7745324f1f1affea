//! Connections, from the listener to their end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Version};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use linetender_wire::Steady;
use linetender_wire::http::headers::METHOD;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::accept::{By, Connection, Door};
use super::activity::{Activity, Watch};
use super::cors;
use super::guard::Guard;
use super::places::Places;
use super::post;
use super::sent::{Counted, Sent, Unread};
use super::tls;
use super::upload::Cut;
use crate::budget::{Budget, Class, Held, OverBudget};

/// What is read of a connection before it is understood: the longest header, and no more than one piece of a body.
const BUFFER: usize = 64 * 1024;

/// The longest header over HTTP/2, unpacked.
const HEADERS: u32 = 64 * 1024;

/// A header that is longer draws on the memory budget: its request may wait for its body, and so may hundreds of them.
const LONG_HEADER: usize = 4 * 1024;

/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 64;

/// What may come on an HTTP/2 stream, and on all streams of a connection, before somebody reads it.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How often an HTTP/2 peer is pinged, and how long it may take to answer. One in the middle of a header cannot.
const PING: Duration = Duration::from_secs(15);
const PONG: Duration = Duration::from_secs(15);

/// What every request has to pass.
#[derive(Clone)]
pub(super) struct Entrance {
    guard: Arc<Guard>,
    router: TowerToHyperService<Router>,
    budget: Budget,
}

impl Entrance {
    pub(super) fn new(guard: Guard, router: Router, budget: Budget) -> Self {
        Self { guard: Arc::new(guard), router: TowerToHyperService::new(router), budget }
    }

    /// Lets a request in, or not. It knows where it comes from.
    fn pass(
        &self,
        mut request: Request<Incoming>,
        by: By,
        activity: &Arc<Activity>,
        unread: &Arc<Unread>,
    ) -> impl Future<Output = Result<Response<Sent>, Infallible>> + use<> {
        let in_flight = activity.request(only_listens(&request));
        let unread = Arc::clone(unread);
        let header = self.header(&request, activity);
        let caller = activity.caller();
        let is_http1 = request.version() < Version::HTTP_2;
        let origin = self.guard.origin(&request, by).cloned();
        let refused = self
            .guard
            .refused(&request, by, caller)
            .or_else(|| header.is_err().then(|| post::unread(Cut::OverBudget, 0, request.version())));
        let passes = if let Some(preflight) = cors::preflight(&request, origin.as_ref()) {
            Err(preflight)
        } else if let Some(mut refused) = refused {
            if is_http1 {
                // Whoever is refused once is refused again, and what is left of its request is not read.
                refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Err(refused)
        } else {
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(Arc::clone(activity));
            request.extensions_mut().insert(Arc::clone(&unread));
            Ok(self.router.call(request))
        };
        async move {
            let mut response = match passes {
                Ok(routed) => routed.await?,
                Err(refused) => refused,
            };
            if let Some(origin) = origin {
                cors::mark(&mut response, origin);
            }
            drop(header);
            let is_counted = response.extensions().get::<Counted>().is_some();
            Ok(response.map(|body| Sent::new(body, in_flight, unread, !is_http1, is_counted)))
        }
    }
}

impl Entrance {
    /// Room for the header of a request, if it is long.
    fn header<B>(&self, request: &Request<B>, activity: &Arc<Activity>) -> Result<Option<Held>, OverBudget> {
        let length = length_of(request.headers());
        if length <= LONG_HEADER {
            return Ok(None);
        }
        let holder: Weak<Activity> = Arc::downgrade(activity);
        let mut held = self.budget.hold(Class::Body, activity.owner(), holder);
        held.grow(length).map(|()| Some(held))
    }
}

/// How many bytes a header takes, about.
fn length_of(headers: &http::HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 64).sum()
}

/// Whether a request opens a stream of notifications, and asks for nothing else. In the modern era its header says so, and a
/// header that does not say what the body says is refused.
fn only_listens<B>(request: &Request<B>) -> bool {
    let listens = request.headers().get(METHOD).is_some_and(|method| method == "subscriptions/listen");
    request.method() == http::Method::GET || listens
}

/// Serves whoever comes until it is about to end; then those who are there, until what they asked for is answered.
pub(super) async fn serve(
    doors: Vec<Door>,
    places: Places,
    entrance: Entrance,
    closing: watch::Receiver<bool>,
) {
    let mut serving = JoinSet::new();
    for door in doors {
        serving.spawn(at(door, places.clone(), entrance.clone(), closing.clone()));
    }
    while serving.join_next().await.is_some() {}
}

/// The same at one door.
async fn at(door: Door, places: Places, entrance: Entrance, closing: watch::Receiver<bool>) {
    let mut about_to_end = closing.clone();
    let mut connections = JoinSet::new();
    {
        // It is not begun anew when a connection ends: one that waits for its place would be lost.
        let mut accepting = pin!(door.accept(&places));
        loop {
            tokio::select! {
                connection = &mut accepting => {
                    accepting.set(door.accept(&places));
                    connections.spawn(one(connection, entrance.clone(), closing.clone()));
                }
                Some(_) = connections.join_next() => {}
                _ = about_to_end.wait_for(|closing| *closing) => break,
            }
        }
    }
    drop(door);
    while connections.join_next().await.is_some() {}
}

/// One connection. How it ends is its agent's business.
async fn one(connection: Connection, entrance: Entrance, mut closing: watch::Receiver<bool>) {
    let Some(connection) = tls::secured(connection, &mut closing).await else { return };
    let (activity, by) = (connection.activity(), connection.by());
    let server = server();
    let service = {
        let activity = Arc::clone(&activity);
        let unread = Unread::new(&entrance.budget, &activity);
        service_fn(move |request| entrance.pass(request, by, &activity, &unread))
    };
    let served = server.serve_connection(TokioIo::new(connection), service);
    // A handler that reads its request wakes the connection that it runs in.
    let mut served = Steady::new(Box::pin(served));
    tokio::select! {
        biased;
        _ = &mut served => return,
        overdue = Watch::new(&activity) => {
            tracing::debug!(?overdue, "closing a connection");
            return;
        }
        () = activity.gives_way() => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    served.get_mut().as_mut().graceful_shutdown();
    let _ = served.await;
}

fn server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    // Not hyper's own limit on the time of a header: that ends connections between two requests as well.
    server.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(BUFFER);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS)
        .max_send_buf_size(BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    server
}

#[cfg(test)]
mod tests;

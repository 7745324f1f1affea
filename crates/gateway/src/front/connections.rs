//! Connections, from the listener to their end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
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
use super::activity::{Activity, BUFFER, HeadRefused, InFlight, Watch};
use super::cors;
use super::guard::{For, Guard, asks_for};
use super::identify::{Identify, Somebody};
use super::places::Places;
use super::quota::Quotas;
use super::sent::{Counted, Sent, Unread};
use super::tls;
use super::upload::Cut;
use super::{post, reply};
use crate::bearers::Bearers;
use crate::budget::{Budget, Class, Held, OverBudget};
use crate::config::Settings;
use crate::principal::Principal;

/// A request on its way through the router.
type Routed = <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Future;

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

/// How long a peer may take to read that there is no room for its header.
const TELLS: Duration = Duration::from_millis(250);

/// At the end: how long it is waited for one more whom the system has let in already, and how many there may be.
const LET_IN: Duration = Duration::from_millis(25);
const LAST: usize = 1024;

/// At the end: how long whoever is connected may take to ask once more, and is answered on the same connection. A request that comes
/// while a connection is closed under it is lost, and its agent or balancer cannot know whether it was read.
pub(super) const ASKS: Duration = Duration::from_millis(250);

/// The same where other gateways of a fleet take new connections meanwhile: a balancer that keeps connections uses each of them within
/// this time, if it uses them at all, and learns from the answer not to do so again.
pub(super) const ASKS_IN_A_FLEET: Duration = Duration::from_secs(2);

/// What every request has to pass.
#[derive(Clone)]
pub(super) struct Entrance {
    guard: Arc<Guard>,
    identify: Identify,
    quotas: Quotas,
    router: TowerToHyperService<Router>,
    budget: Budget,
    /// How long whoever is connected at the end may take to ask once more.
    asks: Duration,
}

/// A connection, as its requests see it.
#[derive(Clone)]
struct Connected {
    by: By,
    activity: Arc<Activity>,
    /// What of its answers is not read: whoever asked first on it answers for that.
    unread: Arc<OnceLock<Arc<Unread>>>,
    /// Whether the gateway is about to end.
    closing: watch::Receiver<bool>,
}

/// Whether a request is let in.
#[expect(clippy::large_enum_variant, reason = "nearly all are let in, and each would be an allocation more")]
enum Passes {
    In(Routed, Arc<Unread>),
    Out(Box<Response>),
}

/// The same, as far as it is known without waiting.
#[expect(clippy::large_enum_variant, reason = "as above")]
enum Perhaps {
    Decided(Passes),
    /// It shows this token, which has to be verified.
    Shows(Box<Entrance>, Box<Request<Incoming>>, String),
}

impl Entrance {
    pub(super) fn new(
        settings: &Settings,
        bearers: Option<Arc<dyn Bearers>>,
        router: Router,
        budget: Budget,
        asks: Duration,
    ) -> Self {
        Self {
            guard: Arc::new(Guard::new(settings)),
            identify: Identify::new(bearers, settings),
            quotas: Quotas::new(settings),
            router: TowerToHyperService::new(router),
            budget,
            asks,
        }
    }

    /// Lets a request in as somebody, or not. Who that is, is decided here and nowhere else.
    fn pass(
        &self,
        request: Request<Incoming>,
        on: &Connected,
    ) -> impl Future<Output = Result<Response<Sent>, Infallible>> + use<> {
        let mut in_flight = on.activity.request(only_listens(&request));
        let header = self.header(&request, &on.activity);
        let version = request.version();
        let origin = self.guard.origin(&request, on.by).cloned();
        let refused = self
            .guard
            .refused(&request, on.by)
            .or_else(|| header.is_err().then(|| post::unread(Cut::OverBudget, 0, version)));
        let preflight = cors::preflight(&request, origin.as_ref());
        let passes = match (preflight, refused) {
            (Some(preflight), _) => Perhaps::Decided(Passes::Out(Box::new(preflight))),
            (None, Some(mut refused)) => {
                if version < Version::HTTP_2 {
                    // Whoever is refused once is refused again, and what is left of its request is not read.
                    refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Perhaps::Decided(Passes::Out(Box::new(refused)))
            }
            (None, None) => self.identified(request, on, &mut in_flight),
        };
        let (on, budget) = (on.clone(), self.budget.clone());
        async move {
            if version < Version::HTTP_2 && on.activity.is_stuck() {
                // Its peer asks on and does not read: answers are made no faster than they are taken (X17).
                in_flight.offers();
                on.activity.can_write().await;
                in_flight.is_taken();
            }
            let passes = match passes {
                Perhaps::Decided(passes) => passes,
                Perhaps::Shows(entrance, request, token) => {
                    match entrance.identify.verified(&request, &token).await {
                        Ok(principal) => entrance.enter(*request, Some(principal), &on, &mut in_flight),
                        Err(_) if asks_for(request.uri().path()) == For::Health => {
                            entrance.enter(*request, None, &on, &mut in_flight)
                        }
                        Err(refused) => Passes::Out(refused),
                    }
                }
            };
            let (mut response, unread) = match passes {
                Passes::In(routed, unread) => (routed.await?, unread),
                // Its own account: whoever comes on this connection later may be somebody.
                Passes::Out(refused) => (*refused, Unread::new(&budget, &on.activity, on.activity.owner())),
            };
            if let Some(origin) = origin {
                cors::mark(&mut response, origin);
            }
            if version < Version::HTTP_2 && *on.closing.borrow() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            drop(header);
            let is_counted = response.extensions().get::<Counted>().is_some();
            Ok(response
                .map(|body| Sent::new(body, in_flight, unread, version >= Version::HTTP_2, is_counted)))
        }
    }

    /// Finds out who asks, as far as that is known without waiting.
    fn identified(&self, request: Request<Incoming>, on: &Connected, in_flight: &mut InFlight) -> Perhaps {
        let what = asks_for(request.uri().path());
        if what == For::Token {
            return Perhaps::Decided(self.enter(request, None, on, in_flight));
        }
        Perhaps::Decided(match self.identify.who(&request, on.activity.caller()) {
            Somebody::Shows(token) => {
                return Perhaps::Shows(Box::new(self.clone()), Box::new(request), token);
            }
            Somebody::Known(principal) => self.enter(request, Some(principal), on, in_flight),
            Somebody::Nobody(_) if what == For::Health => self.enter(request, None, on, in_flight),
            Somebody::Nobody(refused) => Passes::Out(refused),
        })
    }

    /// Lets somebody in, if it does not ask too much at once; or anybody, for what is for everybody.
    fn enter(
        &self,
        mut request: Request<Incoming>,
        principal: Option<Principal>,
        on: &Connected,
        in_flight: &mut InFlight,
    ) -> Passes {
        let mut owner = on.activity.owner();
        if let Some(principal) = principal {
            if asks_for(request.uri().path()) == For::Servers {
                match self.quotas.take(&principal) {
                    Ok(permit) => {
                        // What the body holds more than one message is known when it was read.
                        request.extensions_mut().insert(permit.clone());
                        in_flight.permitted(permit);
                    }
                    Err(over) => return Passes::Out(Box::new(reply::over_quota(over))),
                }
            }
            owner.principal = principal.number();
            request.extensions_mut().insert(principal);
        }
        let unread = on.unread.get_or_init(|| Unread::new(&self.budget, &on.activity, owner));
        let unread = Arc::clone(unread);
        request.extensions_mut().insert(Arc::clone(&on.activity));
        request.extensions_mut().insert(Arc::clone(&unread));
        Passes::In(self.router.call(request), unread)
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
        // A balancer that is refused goes elsewhere; whoever was let in, and is then cut off, does not know whether it was heard.
        door.lets_nobody_in();
        for _ in 0..LAST {
            let Ok(connection) = tokio::time::timeout(LET_IN, &mut accepting).await else { break };
            accepting.set(door.accept(&places));
            connections.spawn(one(connection, entrance.clone(), closing.clone()));
        }
    }
    drop(door);
    while connections.join_next().await.is_some() {}
}

/// One connection. How it ends is its agent's business.
async fn one(connection: Connection, entrance: Entrance, mut closing: watch::Receiver<bool>) {
    let Some(connection) = tls::secured(connection, &mut closing).await else { return };
    let (activity, by) = (connection.activity(), connection.by());
    activity.draws_on(&entrance.budget);
    let server = server();
    let connected =
        Connected { by, activity: Arc::clone(&activity), unread: Arc::default(), closing: closing.clone() };
    let once_more = entrance.asks;
    let service = service_fn(move |request| entrance.pass(request, &connected));
    let served = server.serve_connection(TokioIo::new(connection), service);
    // A handler that reads its request wakes the connection that it runs in.
    let mut served = Steady::new(Box::pin(served));
    loop {
        let closes = async {
            let _ = closing.wait_for(|closing| *closing).await;
        };
        tokio::select! {
            biased;
            _ = &mut served => return,
            overdue = Watch::new(&activity) => {
                tracing::debug!(?overdue, "closing a connection");
                return;
            }
            () = activity.gives_way() => return,
            () = activity.has_no_room_for_head() => match activity.refuses_head() {
                HeadRefused::Came => {}
                HeadRefused::Told => {
                    let _ = tokio::time::timeout(TELLS, &mut served).await;
                    return;
                }
                HeadRefused::Unsaid => return,
            },
            () = closes => break,
        }
    }
    // Whoever asks now is answered, and told that it was the last time.
    if tokio::time::timeout(once_more, &mut served).await.is_ok() {
        return;
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

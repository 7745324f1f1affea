//! Sessions that are at home with another gateway of the fleet: their requests are passed on, over one connection to each gateway.

mod passed;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self as client, SendRequest};
use hyper::server::conn::http2 as server;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use linetender_wire::frame::{Frame, Message};
use linetender_wire::http::headers::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::legacy;
use super::post::IDEMPOTENCY_KEY;
use super::sealed::{self, Closed, Made};
use super::who::{number, principal};
use super::{Front, reply};
use crate::failed::Failed;
use crate::kin::{Kin, NotReached, Stream};
use crate::listing::Endpoint;
use crate::principal::{Principal, Spelt};
use passed::Passed;

/// Says whom a request acts for, sealed by the gateway that let it in.
const ON_BEHALF_OF: HeaderName = HeaderName::from_static("linetender-principal");

/// What is passed on of a request's header beside that.
const PASSED: [HeaderName; 6] = [
    http::header::ACCEPT,
    http::header::CONTENT_TYPE,
    SESSION_ID,
    PROTOCOL_VERSION,
    LAST_EVENT_ID,
    IDEMPOTENCY_KEY,
];

/// Requests and streams at once on the connection between two gateways, and what may come on each before somebody reads it.
const STREAMS: u32 = 8192;
const WINDOW: u32 = 16 * 1024;

/// On all of them together: as much as all of them, so that those that nobody reads hold up no other.
const WINDOWS: u32 = STREAMS * WINDOW;

/// The largest piece.
const PIECE: u32 = 16 * 1024;

/// The longest header.
const HEADERS: u32 = 64 * 1024;

/// How many other gateways are tried.
const TRIES: usize = 3;

/// How long the beginning of an answer may take. A request may run for as long as it likes: its answer begins at once, as a stream.
const BEGINS: Duration = Duration::from_secs(60);

/// Sessions that are made anew take turns, by their ids.
const TURNS: usize = 64;

/// A request that another gateway passed on.
#[derive(Clone, Copy)]
struct FromKin;

/// The other gateways.
pub(super) struct Far {
    pub(super) kin: Arc<dyn Kin>,
    roads: Mutex<HashMap<u64, SendRequest<Full<Bytes>>>>,
    making: Vec<tokio::sync::Mutex<()>>,
}

/// Why a request was not answered by another gateway.
enum Unanswered {
    /// It was not asked.
    NotAsked(NotReached),
    /// It may have been.
    Lost,
}

impl Far {
    pub(super) fn new(kin: Arc<dyn Kin>) -> Self {
        let making = (0..TURNS).map(|_| tokio::sync::Mutex::default()).collect();
        Self { kin, roads: Mutex::default(), making }
    }

    fn roads(&self) -> MutexGuard<'_, HashMap<u64, SendRequest<Full<Bytes>>>> {
        self.roads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a new session: one that every gateway understands, if that can be had.
    pub(super) async fn id(
        &self,
        endpoint: &Endpoint,
        principal: &Principal,
        hello: &Frame,
    ) -> Option<String> {
        let made = Made::new(self.kin.own(), endpoint, principal, hello.text())?;
        sealed::seal(&*self.kin, &made).await
    }

    /// A connection to a gateway.
    async fn road(&self, node: u64) -> Result<SendRequest<Full<Bytes>>, NotReached> {
        let known = self.roads().get(&node).cloned();
        if let Some(mut road) = known.filter(|road| !road.is_closed())
            && road.ready().await.is_ok()
        {
            return Ok(road);
        }
        let stream = self.kin.reach(node).await?;
        let shaken = client::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOWS)
            .max_frame_size(PIECE)
            .handshake(TokioIo::new(stream))
            .await;
        // It was there a moment ago, and nothing was asked of it.
        let Ok((road, connection)) = shaken else { return Err(NotReached::Nobody) };
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends with its stream, or when nobody has the road"
        )]
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let mut roads = self.roads();
        roads.retain(|_, road| !road.is_closed());
        roads.insert(node, road.clone());
        Ok(road)
    }

    /// Asks another gateway.
    async fn ask(&self, node: u64, head: &Parts, body: &Bytes) -> Result<Response<Incoming>, Unanswered> {
        let spelt = principal(&head.extensions).spelt();
        let behalf =
            sealed::seal(&*self.kin, &spelt).await.and_then(|sealed| HeaderValue::from_str(&sealed).ok());
        let behalf = behalf.ok_or(Unanswered::NotAsked(NotReached::Silence))?;
        let mut road = self.road(node).await.map_err(Unanswered::NotAsked)?;
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = head.method.clone();
        let path = head.uri.path().to_owned();
        *request.uri_mut() = format!("http://gateway{path}").parse().map_err(|_| Unanswered::Lost)?;
        for name in PASSED {
            if let Some(value) = head.headers.get(&name) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        request.headers_mut().insert(ON_BEHALF_OF, behalf);
        match tokio::time::timeout(BEGINS, road.try_send_request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut error)) => {
                self.roads().remove(&node);
                // What is given back was not sent.
                let unsent = error.take_message().is_some();
                Err(if unsent { Unanswered::NotAsked(NotReached::Nobody) } else { Unanswered::Lost })
            }
            Err(_) => Err(Unanswered::Lost),
        }
    }

    /// Makes a session anew whose gateway is gone.
    async fn make(&self, front: &Arc<Front>, endpoint: &Endpoint, head: &Parts, id: &str, made: &Made) {
        let Some(hello) = &made.hello else { return };
        let turn = usize::try_from(number(id) % TURNS as u64).unwrap_or(0);
        let Some(making) = self.making.get(turn) else { return };
        let _turn = making.lock().await;
        if front.sessions.find(id, &principal(&head.extensions)).is_none() {
            legacy::again(front, endpoint, head, id, hello).await;
        }
    }
}

/// The answer of the gateway where a request's session is at home, if that is another one. `None`: it is here, where it is made anew
/// if it has to be; or nowhere.
pub(super) async fn elsewhere(
    front: &Arc<Front>,
    endpoint: &Endpoint,
    head: &Parts,
    (body, frames): (&Bytes, &[Frame]),
) -> Option<Response> {
    let far = front.far.as_ref()?;
    let id = head.headers.get(SESSION_ID)?.to_str().ok()?;
    let principal = principal(&head.extensions);
    if front.sessions.find(id, &principal).is_some() {
        return None;
    }
    let made: Made = sealed::open(&*far.kin, id).await.ok()?;
    // One that began here has ended.
    if made.node == far.kin.own() || !made.is_of(endpoint, &principal) {
        return None;
    }
    let (mut tried, passed_on) = (Vec::new(), head.extensions.get::<FromKin>().is_some());
    let mut home = if far.kin.is_there(made.node) { Some(made.node) } else { far.kin.home(id, &tried) };
    while let Some(node) = home.filter(|node| *node != far.kin.own() && !passed_on && tried.len() < TRIES) {
        match far.ask(node, head, body).await {
            Ok(response) => return Some(Passed::on(response, frames, endpoint)),
            Err(Unanswered::NotAsked(NotReached::Nobody)) => {
                tried.push(node);
                home = far.kin.home(id, &tried);
            }
            Err(Unanswered::NotAsked(NotReached::Silence)) => {
                return Some(refused(frames, &Failed::no_gateway().of(endpoint.server())));
            }
            Err(Unanswered::Lost) => {
                return Some(lost(frames, &Failed::gateway_lost().of(endpoint.server())));
            }
        }
    }
    far.make(front, endpoint, head, id, &made).await;
    None
}

/// Nothing was asked.
fn refused(frames: &[Frame], failed: &Failed) -> Response {
    let id = asked(frames).next().map_or("null", |(id, _)| id);
    reply::refused(StatusCode::SERVICE_UNAVAILABLE, id, failed)
}

/// Nobody knows what became of it.
fn lost(frames: &[Frame], failed: &Failed) -> Response {
    match asked(frames).next() {
        Some((id, method)) => reply::json(StatusCode::OK, failed.reply(id, method, false)),
        None => reply::json(StatusCode::BAD_GATEWAY, failed.error("null")),
    }
}

/// The requests among messages: their ids and methods.
fn asked(frames: &[Frame]) -> impl Iterator<Item = (&str, &str)> {
    frames.iter().filter_map(|frame| match frame.message() {
        Message::Request { id, method, .. } => Some((id, method)),
        Message::Notification { .. } | Message::Response { .. } => None,
    })
}

/// Serves what other gateways pass on, until it is about to end; then what was asked before.
pub(super) async fn serve(front: Arc<Front>, router: Router, closing: watch::Receiver<bool>) {
    let Some(far) = &front.far else { return };
    let router = TowerToHyperService::new(router);
    let mut about_to_end = closing.clone();
    let mut roads = JoinSet::new();
    loop {
        tokio::select! {
            stream = far.kin.accept() => {
                let Some(stream) = stream else { break };
                roads.spawn(road(stream, Arc::clone(&far.kin), router.clone(), closing.clone()));
            }
            Some(_) = roads.join_next() => {}
            _ = about_to_end.wait_for(|closing| *closing) => break,
        }
    }
    while roads.join_next().await.is_some() {}
}

async fn road(
    stream: Box<dyn Stream>,
    kin: Arc<dyn Kin>,
    router: TowerToHyperService<Router>,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (kin, router) = (Arc::clone(&kin), router.clone());
        async move {
            let principal = match on_behalf_of(&*kin, request.headers()).await {
                Ok(principal) => principal,
                Err(closed) => return Ok(not_let_in(closed)),
            };
            request.headers_mut().remove(ON_BEHALF_OF);
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(FromKin);
            router.call(request).await as Result<Response<Body>, Infallible>
        }
    });
    let mut builder = server::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOWS)
        .max_header_list_size(HEADERS);
    let mut served = Box::pin(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = &mut served => return,
        _ = closing.wait_for(|closing| *closing) => {}
    }
    served.as_mut().graceful_shutdown();
    let _ = served.await;
}

async fn on_behalf_of(kin: &dyn Kin, headers: &HeaderMap) -> Result<Principal, Closed> {
    let sealed = headers.get(ON_BEHALF_OF).and_then(|sealed| sealed.to_str().ok()).ok_or(Closed::Foreign)?;
    sealed::open::<Spelt>(kin, sealed).await.map(Principal::of_kin)
}

fn not_let_in(closed: Closed) -> Response {
    match closed {
        Closed::Foreign => reply::error(StatusCode::FORBIDDEN, "null", -32600, "the principal is not sealed"),
        Closed::NoKey => reply::refused(StatusCode::SERVICE_UNAVAILABLE, "null", &Failed::no_key()),
    }
}

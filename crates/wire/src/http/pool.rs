//! Requests to one origin, each sent exactly once, over connections that are kept while they are good.
//!
//! A pool that retries, or that hides which connection it used, cannot prove anything. This one never sends twice. What
//! it does know it says: a request of which no byte was written, or whose stream was refused, comes back with that
//! proof, and whoever asked decides.
//!
//! How long an answer may take is the caller's business: dropping the future, or the response, ends the exchange and
//! its connection (over HTTP/2: its stream). [`Begun`] then tells whether anything can have been written.

mod body;
mod idle;
mod redirect;
mod talk;

pub use body::Body;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linetender_core::Extent;
use tokio::time::timeout;

use super::broken::{Broken, Phase};
use super::connect::{self, Speaks, Surroundings, Waits};
use super::endpoint::Endpoint;
use crate::seam::Ticket;
use idle::Idle;
use talk::{Http1, Http2, Line};

/// How a pool behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// How long the steps before a request may take.
    pub waits: Waits,
    /// Whether an HTTP/1.1 connection is kept for the next request.
    pub pooling: bool,
    /// Whether one is kept even if it carried an event stream. Servers that do not set `TCP_NODELAY` write the head of
    /// a stream, and then wait for its ACK before they write the event: 40 ms, unless we acknowledge at once.
    pub reuse_streams: bool,
    /// How many idle connections are kept at most.
    pub idle_most: usize,
    /// How long an idle connection is kept. Servers and proxies close theirs without a word.
    pub idle_limit: Duration,
    /// Speak HTTP/2 without asking first, on plain `http`.
    pub http2_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            waits: Waits::default(),
            pooling: true,
            reuse_streams: connect::ACKS_AT_ONCE,
            idle_most: 64,
            idle_limit: Duration::from_secs(3),
            http2_only: false,
        }
    }
}

/// What is sent.
#[derive(Clone)]
pub struct Request {
    /// POST, GET or DELETE.
    pub method: Method,
    /// Without those that belong to the connection: `Host`, `Content-Length`.
    pub headers: HeaderMap,
    /// Empty for GET and DELETE.
    pub body: Bytes,
    /// Keep a clone to know, after dropping [`Pool::send`], whether it can have been written.
    pub begun: Begun,
}

/// Whether a request was handed to a connection. Until then no byte of it was written.
#[derive(Clone, Default)]
pub struct Begun {
    at: Arc<AtomicBool>,
    /// Whose request it is: they may have withdrawn it while a connection was made.
    ticket: Option<Arc<dyn Ticket>>,
}

impl Begun {
    /// For a request that can be withdrawn.
    pub fn of(ticket: Option<Arc<dyn Ticket>>) -> Self {
        Self { at: Arc::default(), ticket }
    }

    /// Whether it was.
    pub fn get(&self) -> bool {
        self.at.load(Ordering::Acquire)
    }

    /// It is about to be written; whether it may be. A redirect does not ask again.
    fn begin(&self, length: usize) -> bool {
        if self.get() {
            return true;
        }
        let extent = Extent { start: 0, len: u32::try_from(length).unwrap_or(u32::MAX) };
        let may = self.ticket.as_ref().is_none_or(|ticket| ticket.writing(extent));
        self.at.store(may, Ordering::Release);
        may
    }
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Begun").field(&self.get()).finish()
    }
}

/// What came back.
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers: at most [`Pool::HEAD_LIMIT`] bytes, and over HTTP/1.1 at most [`Pool::HEADERS_MOST`].
    pub headers: HeaderMap,
    /// The body, as far as it is read.
    pub body: Body,
    /// How long after the request's last byte the head came.
    pub took: Duration,
    /// Where it was answered, if redirects were followed to there.
    pub moved: Option<Endpoint>,
}

impl Response {
    /// Whether an event stream follows.
    pub fn is_event_stream(&self) -> bool {
        is_event_stream(&self.headers)
    }
}

/// Connections to one origin. Cheap to clone. Over HTTP/1.1 there are as many as requests under way: how many that may
/// be is the line's bound.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    /// Where requests are sent: the endpoint, or where it redirected the first of them.
    at: Mutex<Endpoint>,
    around: Surroundings,
    settings: Settings,
    idle: Idle,
    http2: Mutex<Option<Arc<Http2>>>,
    /// Which of its addresses answered last.
    winner: connect::Winner,
    /// Held while a connection that many may share is being made, so that they share one.
    dialling: tokio::sync::Mutex<()>,
    /// It spoke HTTP/2 before, so it will again.
    spoke_http2: AtomicBool,
}

impl Pool {
    /// How many headers a response may have.
    pub const HEADERS_MOST: usize = 128;
    /// How long the head of a response may be, in bytes.
    pub const HEAD_LIMIT: usize = 64 * 1024;
    /// How many redirects are followed.
    pub const REDIRECTS_MOST: usize = 3;

    /// Nothing is connected yet.
    pub fn new(endpoint: Endpoint, around: Surroundings, settings: Settings) -> Self {
        let idle = Idle::new(settings.idle_most, settings.idle_limit);
        Self(Arc::new(Inner {
            at: Mutex::new(endpoint.clone()),
            endpoint,
            around,
            settings,
            idle,
            http2: Mutex::new(None),
            winner: connect::Winner::default(),
            dialling: tokio::sync::Mutex::new(()),
            spoke_http2: AtomicBool::new(settings.http2_only),
        }))
    }

    /// Where it leads.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// How many idle connections it keeps.
    pub fn idle(&self) -> usize {
        self.0.idle.len()
    }

    /// Forgets every connection that is not in use.
    pub fn clear(&self) {
        self.0.idle.clear();
        lock(&self.0.http2).take();
    }

    /// Sends further requests here, at the same origin: a session stays where its first request was redirected to.
    pub(super) fn stay_at(&self, endpoint: Endpoint) {
        *lock(&self.0.at) = endpoint;
    }

    /// The same as [`send`](Self::send), but a redirect comes back as it is.
    pub(super) async fn send_unfollowed(&self, request: &Request) -> Result<Response, Broken> {
        let to = lock(&self.0.at).clone();
        usable(self.0.once(&to, request, || ()).await?)
    }

    /// Sends a request, once, and waits for the head of its response.
    ///
    /// # Errors
    /// If there is none, or one that cannot be used: with what is known about it.
    pub async fn send(&self, request: &Request) -> Result<Response, Broken> {
        self.send_and_tell(request, || ()).await
    }

    /// The same as [`send`](Self::send). `redirected` is called each time that the request is about to be sent to another place,
    /// on a connection that stands.
    pub(super) async fn send_and_tell(
        &self,
        request: &Request,
        redirected: impl Fn(),
    ) -> Result<Response, Broken> {
        let mut to = lock(&self.0.at).clone();
        for hop in 0..=Self::REDIRECTS_MOST {
            let again = || {
                if hop > 0 {
                    redirected();
                }
            };
            let response = self.0.once(&to, request, again).await;
            // Whoever redirected it had read all of it, and may have run it: no later hop proves anything about that one.
            let mut response =
                response.map_err(|broken| if hop == 0 { broken } else { broken.after_earlier_hop() })?;
            match redirect::of(&to, response.status, &response.headers) {
                redirect::Redirect::None => {
                    response.moved = (hop > 0).then_some(to);
                    return usable(response);
                }
                redirect::Redirect::To(next) => to = next,
                redirect::Redirect::Refused(words) => {
                    return Err(Broken::sent(Phase::Redirect, response.body.request_written(), words));
                }
            }
        }
        let words = format_args!("more than {} redirects; the last one to {to}", Self::REDIRECTS_MOST);
        Err(Broken::sent(Phase::Redirect, None, words))
    }
}

impl Inner {
    /// `begins` is called when the request is handed to a connection.
    async fn once(
        self: &Arc<Self>,
        to: &Endpoint,
        request: &Request,
        begins: impl Fn(),
    ) -> Result<Response, Broken> {
        let line = self.line().await?;
        if !request.begun.begin(request.body.len()) {
            return Err(Broken::unsent(Phase::Withdrawn, "cancelled by the caller before it was sent"));
        }
        begins();
        let (response, lease, took) = line.send(self, to, request).await?;
        let (head, incoming) = response.into_parts();
        let keep = self.settings.pooling
            && (self.settings.reuse_streams || !is_event_stream(&head.headers))
            && !closes(&head.headers);
        let body = Body::new(incoming, lease, keep.then(|| Arc::downgrade(self)));
        Ok(Response { status: head.status, headers: head.headers, body, took, moved: None })
    }

    /// A connection to use: kept, shared, or new.
    async fn line(&self) -> Result<Line, Broken> {
        if let Some(shared) = self.shared() {
            return Ok(Line::Many(shared));
        }
        if let Some(kept) = self.idle.take().await {
            return Ok(Line::One(kept));
        }
        // Where a connection can be shared it is worth to wait for somebody else's, but no longer than for our own.
        let _alone = if self.spoke_http2.load(Ordering::Relaxed) {
            timeout(self.settings.waits.connect, self.dialling.lock()).await.ok()
        } else {
            None
        };
        if let Some(shared) = self.shared() {
            return Ok(Line::Many(shared));
        }
        let Settings { waits, http2_only, .. } = self.settings;
        let connected =
            connect::connect(&self.endpoint, &self.around, waits, http2_only, &self.winner).await?;
        match connected.speaks {
            Speaks::Http1 { ref target } => {
                let target = target.clone();
                Http1::new(connected, target).await.map(Line::One)
            }
            Speaks::Http2 => {
                let shared = Arc::new(Http2::new(connected).await?);
                self.spoke_http2.store(true, Ordering::Relaxed);
                *lock(&self.http2) = Some(Arc::clone(&shared));
                Ok(Line::Many(shared))
            }
        }
    }

    fn shared(&self) -> Option<Arc<Http2>> {
        let mut slot = lock(&self.http2);
        if slot.as_ref().is_some_and(|shared| shared.is_closed() || shared.is_stale()) {
            slot.take();
        }
        slot.clone()
    }

    /// This connection takes no more requests.
    fn retire(&self, spent: &Arc<Http2>) {
        let mut slot = lock(&self.http2);
        if slot.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, spent)) {
            slot.take();
        }
    }
}

// Headers and bodies hold credentials, and sessions are credentials.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Request");
        shown.field("method", &self.method).field("body", &self.body.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Response");
        shown.field("status", &self.status).field("body", &self.body).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("endpoint", &self.0.endpoint).finish_non_exhaustive()
    }
}

/// The message for hyper, spelt for the one who reads it first.
fn message(
    to: &Endpoint,
    request: &Request,
    target: Option<&connect::Target>,
) -> http::Request<http_body_util::Full<Bytes>> {
    let mut message = http::Request::new(http_body_util::Full::new(request.body.clone()));
    *message.method_mut() = request.method.clone();
    *message.headers_mut() = request.headers.clone();
    let headers = message.headers_mut();
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(concat!("linetender/", env!("CARGO_PKG_VERSION"))));
    match target {
        // HTTP/2 has the host in the address.
        None => *message.uri_mut() = to.absolute_form(),
        Some(connect::Target::Origin) => {
            headers.insert(HOST, to.host_header());
            *message.uri_mut() = to.origin_form();
        }
        Some(connect::Target::Absolute { auth }) => {
            headers.insert(HOST, to.host_header());
            if let Some(auth) = auth {
                headers.insert(http::header::PROXY_AUTHORIZATION, auth.clone());
            }
            *message.uri_mut() = to.absolute_form();
        }
    }
    message
}

/// We offer no compression: a small body may unfold into an endless one.
fn usable(response: Response) -> Result<Response, Broken> {
    let coded = response.headers.get_all(CONTENT_ENCODING).iter().find(|coding| *coding != "identity");
    match coded {
        None => Ok(response),
        Some(coding) => {
            let words = format!("unexpected Content-Encoding {coding:?} (linetender requests identity)");
            Err(Broken::sent(Phase::Head, response.body.request_written(), words))
        }
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.as_bytes();
        let essence = kind.split(|&byte| byte == b';').next().unwrap_or(kind).trim_ascii();
        essence.eq_ignore_ascii_case(b"text/event-stream")
    })
}

fn closes(headers: &HeaderMap) -> bool {
    headers.get(http::header::CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// No code that holds one of these locks can panic, and none waits.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

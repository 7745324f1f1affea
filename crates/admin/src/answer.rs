//! From a request to its response.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use linetender::visible;
use linetender_holder::Holder;
use linetender_holder::holder::Act;
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};

use crate::events::{Next, Watch};
use crate::guard::Guard;
use crate::problem::Problem;
use crate::routes::{Calls, Found, LogLevel, Op, Processes, Route, Why, find};
use crate::serve::Unknown;
use crate::token::{Shown, Token};
use crate::{metrics, openapi, page, query};

/// The longest body of a request.
pub(crate) const LONGEST_BODY: usize = 16 * 1024;

/// How long a body may take to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// How long an order may take: as long as on the socket.
const ACT_TIME: Duration = Duration::from_secs(120);

/// Who may watch at once.
const WATCHERS: usize = 16;

/// Scrapes at once.
const SCRAPES: usize = 2;

/// What every request is answered from.
pub(crate) struct Address {
    pub(crate) holder: Holder,
    pub(crate) token: Token,
    pub(crate) guard: Guard,
    watchers: Arc<Semaphore>,
    scrapes: Arc<Semaphore>,
}

/// What a response holds.
pub(crate) enum Body {
    Whole(Option<Bytes>),
    /// What is made while it is read.
    Pieces(mpsc::Receiver<Bytes>),
    Events(Option<Next>),
}

impl Address {
    pub(crate) fn new(holder: Holder, token: Token, guard: Guard) -> Self {
        let (watchers, scrapes) = (Semaphore::new(WATCHERS).into(), Semaphore::new(SCRAPES).into());
        Self { holder, token, guard, watchers, scrapes }
    }

    /// The response to a request.
    pub(crate) async fn answer<B>(&self, request: Request<B>, from: IpAddr) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut response = match self.admitted(&request, from).await {
            Err(problem) => ended(problem.response()),
            Ok(Admitted::Page(asset)) => ended(page::response(asset)),
            Ok(Admitted::Nothing) => ended(Problem::no_route(request.uri().path()).response()),
            Ok(Admitted::Methods(methods)) => ended(Problem::wrong_method(&methods).response()),
            Ok(Admitted::Route(route, name)) => match self.routed(route, name, request).await {
                Ok(response) if route.is == Op::Health => ended(response),
                Ok(response) => response,
                // What is left of its body is not read.
                Err(problem) => ended(problem.response()),
            },
        };
        page::protect(&mut response);
        response
    }

    /// Whether a request is looked at, and what it is for.
    async fn admitted<B>(&self, request: &Request<B>, from: IpAddr) -> Result<Admitted, Problem> {
        if let Some(why) = self.guard.refuses(request) {
            return Err(Problem::foreign(why));
        }
        let (method, path) = (request.method().as_str(), request.uri().path());
        let is_read = matches!(method, "GET" | "HEAD");
        if let Some(asset) = page::ASSETS.iter().find(|asset| is_read && asset.path == path) {
            return Ok(Admitted::Page(asset));
        }
        let found = match find(method, path) {
            Found::Route(route, name) => Admitted::Route(route, name),
            Found::Methods(methods) => Admitted::Methods(methods),
            Found::Nothing if page::ASSETS.iter().any(|asset| asset.path == path) => {
                Admitted::Methods("GET".to_owned())
            }
            Found::Nothing => Admitted::Nothing,
        };
        if matches!(found, Admitted::Route(Route { is: Op::Health, .. }, _)) {
            return Ok(found);
        }
        // Not even what there is, is told to whoever shows no token.
        let mut shown = request.headers().get_all(AUTHORIZATION).iter();
        let bearer = match (shown.next(), shown.next()) {
            (Some(one), None) => one.to_str().ok().and_then(bearer),
            _ => None,
        };
        match self.token.judge(bearer, from).await {
            Shown::Right => {
                if let Some(connection) = request.extensions().get::<Unknown>() {
                    connection.is_known();
                }
                Ok(found)
            }
            Shown::Wrong => Err(Problem::wrong_token()),
            Shown::TooOften => Err(Problem::too_many_wrong()),
        }
    }

    async fn routed<B>(
        &self,
        route: &Route,
        server: String,
        request: Request<B>,
    ) -> Result<Response<Body>, Problem>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let declared =
            parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if declared.is_some_and(|length: usize| length > LONGEST_BODY) {
            return Err(Problem::too_large(LONGEST_BODY));
        }
        let body = read(body).await?;
        if route.is != Op::LogLevel && !body.is_empty() {
            return Err(Problem::wrong_body("this request takes no body", "send it without one"));
        }
        if route.is != Op::Events && parts.uri.query().is_some_and(|query| !query.is_empty()) {
            return Err(Problem::wrong_query(
                "this request takes no parameters",
                "leave out what follows the ?",
            ));
        }
        match route.is {
            Op::Health => Ok(text("text/plain; charset=utf-8", Body::whole("ok\n".into()))),
            Op::Status => Ok(json(&self.holder.report())),
            Op::Why => match self.holder.entries(&server) {
                Some(entries) => {
                    let story = self.holder.story(&server).map(|story| story.lines()).unwrap_or_default();
                    Ok(json(&Why { server, story, entries }))
                }
                None => Err(Problem::no_server(&self.holder.servers())),
            },
            Op::Calls => Ok(json(&Calls { calls: self.holder.calls() })),
            Op::Processes => Ok(json(&Processes { trees: self.holder.processes().await })),
            Op::Events => self.watch(parts.uri.query()),
            Op::Redial => self.act(Act::Redial { server }).await,
            Op::Park => self.act(Act::Park { server }).await,
            Op::Wake => self.act(Act::Wake { server }).await,
            Op::Drain => self.act(Act::Drain { server }).await,
            Op::Reload => self.act(Act::Reload).await,
            Op::LogLevel => {
                let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(is_json);
                let level = if is_json { level(&body)? } else { return Err(Problem::not_json()) };
                self.act(Act::LogLevel { level: level.level.name().to_owned() }).await
            }
            Op::Metrics => {
                let place = Arc::clone(&self.scrapes).try_acquire_owned();
                let place =
                    place.map_err(|_| Problem::busy(format!("{SCRAPES} scrapes are under way already")))?;
                let accept = parts.headers.get_all(ACCEPT);
                let format = metrics::Format::accepted(accept.iter().filter_map(|value| value.to_str().ok()));
                let pieces = metrics::scrape(&self.holder, format, place).await;
                Ok(text(format.media_type(), Body::Pieces(pieces)))
            }
            Op::OpenApi => Ok(json(&openapi::document())),
        }
    }

    async fn act(&self, act: Act) -> Result<Response<Body>, Problem> {
        let what_next = match act {
            Act::Reload => "mend the config file, and reload again; the old one stays in force until then",
            Act::LogLevel { .. } => "use error, warn, info, debug or trace",
            _ => "GET /api/v1/servers/{name}/why says what happened to the server",
        };
        tracing::info!(?act, "ordered at the admin address");
        match tokio::time::timeout(ACT_TIME, self.holder.act(&act)).await {
            Ok(Ok(done)) => Ok(json(&done)),
            Ok(Err(why)) => Err(Problem::not_done(why, what_next)),
            Err(_) => Err(Problem::late()),
        }
    }

    fn watch(&self, asked: Option<&str>) -> Result<Response<Body>, Problem> {
        let calls = query::calls(asked).map_err(|other| {
            let detail = format!("unknown parameter: {}", visible::cut(&other, 100));
            Problem::wrong_query(
                detail,
                "use calls=1 or calls=0; the token belongs into the Authorization header",
            )
        })?;
        let place = Arc::clone(&self.watchers).try_acquire_owned();
        let place = place.map_err(|_| Problem::busy(format!("{WATCHERS} watchers are connected already")))?;
        let events = Watch::new(&self.holder, calls, place).next();
        Ok(text("text/event-stream", Body::Events(Some(events))))
    }
}

/// What a request that is looked at is for.
enum Admitted {
    Page(&'static page::Asset),
    Route(&'static Route, String),
    Methods(String),
    Nothing,
}

/// The token in the header.
// RFC 9110, 11.1: the scheme is case-insensitive.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

async fn read<B>(body: B) -> Result<Bytes, Problem>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match tokio::time::timeout(BODY_TIME, Limited::new(body, LONGEST_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::too_large(LONGEST_BODY)),
        Ok(Err(_)) => Err(Problem::wrong_body("the body could not be read to its end", "send it again")),
        Err(_) => Err(Problem::too_slow()),
    }
}

fn level(body: &[u8]) -> Result<LogLevel, Problem> {
    // Only the place: what stands there is nothing to repeat.
    serde_json::from_slice(body).map_err(|error| {
        let detail =
            format!("the body is not as expected, at line {} column {}", error.line(), error.column());
        Problem::wrong_body(detail, "send {\"level\": \"debug\"}: error, warn, info, debug or trace")
    })
}

fn is_json(value: &HeaderValue) -> bool {
    let media_type = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/json")
}

fn json<T: Serialize>(value: &T) -> Response<Body> {
    let spelt = serde_json::to_string(value).unwrap_or_default();
    text("application/json", Body::whole(Bytes::from(visible::json(&spelt).into_owned())))
}

fn text(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The last response on its connection: whoever shows no token keeps no place.
fn ended(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Whole(bytes) => bytes.take(),
            Self::Pieces(pieces) => ready!(pieces.poll_recv(context)),
            Self::Events(events) => match events {
                None => None,
                Some(next) => {
                    let told = ready!(next.as_mut().poll(context));
                    let (rest, piece) = told.map(|(watch, bytes)| (watch.next(), bytes)).unzip();
                    *events = rest;
                    piece
                }
            },
        };
        Poll::Ready(piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Pieces(_) | Self::Events(_) => http_body::SizeHint::default(),
        }
    }
}

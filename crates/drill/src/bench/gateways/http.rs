//! An agent over HTTP: one kept connection, and nothing between it and the socket but hyper.

use bytes::Bytes;
use http::uri::Uri;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::speech::{Era, INITIALIZED};

/// Where an agent is, and as whom.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) era: Era,
    to: Uri,
    /// What a legacy agent was given when it was greeted.
    session: Option<HeaderValue>,
    /// What it shows for itself.
    authorization: Option<HeaderValue>,
}

/// One connection, which ends with this.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _task: JoinSet<()>,
}

impl Place {
    /// `http://TOKEN@HOST/PATH` is shown this token.
    pub(super) fn of(url: &str, era: Era) -> Result<Self, String> {
        let (url, token) = match url.strip_prefix("http://").and_then(|rest| rest.split_once('@')) {
            Some((token, rest)) => (format!("http://{rest}"), Some(token)),
            None => (url.to_owned(), None),
        };
        let to = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let authorization = token.map(|token| HeaderValue::try_from(format!("Bearer {token}"))).transpose();
        let authorization = authorization.map_err(|error| format!("{url}: {error}"))?;
        Ok(Self { era, to, session: None, authorization })
    }

    /// Greets it; a legacy agent has a session from then on.
    pub(super) async fn greet(&mut self) -> Result<(), String> {
        let mut connection = self.connect().await?;
        let method = if self.era == Era::Legacy { "initialize" } else { "server/discover" };
        let headers = self.era.headers(None, method, None);
        let answer = connection.send(self, Method::POST, headers, self.era.hello().into()).await?;
        self.session = answer.headers().get("mcp-session-id").cloned();
        let body = connection.read(answer).await?;
        if !body.starts_with(b"event:") && !body.windows(8).any(|window| window == b"\"result\"") {
            return Err(format!("not greeted: {}", String::from_utf8_lossy(&body)));
        }
        if self.era == Era::Legacy {
            let headers = self.era.headers(self.session.as_ref(), "", None);
            let answer = connection.send(self, Method::POST, headers, INITIALIZED.into()).await?;
            connection.read(answer).await?;
        }
        Ok(())
    }

    pub(super) async fn connect(&self) -> Result<Connection, String> {
        let address = self.to.authority().ok_or("an address without a host")?.as_str();
        let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let mut task = JoinSet::new();
        task.spawn(async move { drop(connection.await) });
        Ok(Connection { sender, _task: task })
    }

    /// The headers of a request, which are the same each time.
    pub(super) fn headers(&self, method: &'static str, name: Option<&str>) -> HeaderMap {
        self.era.headers(self.session.as_ref(), method, name)
    }
}

impl Connection {
    /// Sends a request. The response has begun when this returns.
    pub(super) async fn send(
        &mut self,
        place: &Place,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let host = place.to.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = Uri::try_from(place.to.path()).unwrap_or_default();
        *request.headers_mut() = headers;
        if let Some(host) = host {
            request.headers_mut().insert("host", host);
        }
        if let Some(authorization) = &place.authorization {
            request.headers_mut().insert("authorization", authorization.clone());
        }
        self.sender.ready().await.map_err(|error| error.to_string())?;
        let answer = self.sender.send_request(request).await.map_err(|error| error.to_string())?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let body = self.read(answer).await?;
        Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
    }

    /// All of a response, be it one body or a stream that ends with its answer.
    pub(super) async fn read(&mut self, answer: Response<Incoming>) -> Result<Bytes, String> {
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok(body.to_bytes())
    }
}

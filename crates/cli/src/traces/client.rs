//! OTLP goes the way that all of linetender's requests go: the same proxies, roots and TLS, and a bound on everything.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use linetender_auth::{Asker, Endpoint};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

/// How long a receiver may take for one batch.
const WITHIN: Duration = Duration::from_secs(10);

/// Sends batches from a thread that has no runtime.
pub(super) struct Client {
    asker: Asker,
    runtime: Handle,
}

impl Client {
    /// # Panics
    /// Outside a tokio runtime.
    pub(super) fn new() -> Self {
        Self { asker: Asker::of_this_machine(), runtime: Handle::current() }
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'sent>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'a: 'sent,
        Self: 'sent,
    {
        let asker = self.asker.clone();
        let asked = async move {
            let (parts, body) = request.into_parts();
            let to = Endpoint::new(&parts.uri.to_string())?;
            asker.ask(parts.method, &to, parts.headers, body, WITHIN).await
        };
        let asked = self.runtime.spawn(asked);
        Box::pin(async move {
            let reply = asked.await??;
            let mut response = Response::new(reply.body);
            *response.status_mut() = reply.status;
            *response.headers_mut() = reply.headers;
            Ok(response)
        })
    }
}

// Headers may hold a token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

//! Programs that log in by themselves, where an authorization server lets them. linetender has none: it parks a line until a
//! person logs in.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::HeaderMap;
use http::header::LOCATION;
use linetender_wire::http::{Asker, Endpoint};

/// How long one look may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Somebody who visits an address and says where it led.
pub trait Visitor: Send + Sync + 'static {
    /// Where the browser is to be sent back to.
    fn redirect_uri(&self) -> String;

    /// Visits the address, and returns the one to which it redirected in the end.
    fn visit(&self, url: String) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
}

/// Visits an authorization server that asks nobody anything and sends everybody back at once: those of test suites do.
#[derive(Clone, Debug)]
pub struct FirstRedirect {
    asker: Asker,
    redirect_uri: String,
}

impl FirstRedirect {
    /// Is sent back to this address, where nobody need listen.
    pub fn new(asker: Asker, redirect_uri: &str) -> Self {
        Self { asker, redirect_uri: redirect_uri.to_owned() }
    }
}

impl Visitor for FirstRedirect {
    fn redirect_uri(&self) -> String {
        self.redirect_uri.clone()
    }

    fn visit(&self, url: String) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> {
        let asker = self.asker.clone();
        Box::pin(async move {
            let at = Endpoint::new(&url).map_err(|broken| broken.words.to_string())?;
            let looked = asker.look(&at, HeaderMap::new(), WITHIN).await;
            let reply = looked.map_err(|broken| broken.to_string())?;
            let location = reply.headers.get(LOCATION).and_then(|location| location.to_str().ok());
            let status = reply.status.as_u16();
            location
                .map(str::to_owned)
                .ok_or_else(|| format!("the authorization server answered with status {status}"))
        })
    }
}

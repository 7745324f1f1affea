//! A browser with a person who agrees to everything: follows redirects and keeps cookies.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use linetender_auth::{Client, Error, LoggedIn, Login, Store, Visitor};
use linetender_wire::http::Endpoint;

use crate::provider::asker;

/// Where it is sent back to if nobody listens.
pub(crate) const BACK: &str = "http://127.0.0.1:9/callback";

/// Visits an address, and returns the first redirect that leads to `back`.
pub(crate) async fn visit(url: &str, back: &str) -> Result<String, String> {
    let mut url = url.to_owned();
    let mut cookies = BTreeMap::new();
    for _ in 0..10 {
        if url.starts_with(back) {
            return Ok(url);
        }
        let at = Endpoint::new(&url).map_err(|broken| broken.to_string())?;
        let mut headers = HeaderMap::new();
        let jar =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        headers.insert("cookie", HeaderValue::from_str(&jar).unwrap());
        let reply =
            asker().look(&at, headers, Duration::from_secs(20)).await.map_err(|broken| broken.to_string())?;
        for cookie in reply.headers.get_all("set-cookie") {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        let Some(location) = reply.headers.get("location") else {
            return Err(format!("{}: {}", reply.status, String::from_utf8_lossy(&reply.body)));
        };
        let location = location.to_str().unwrap();
        url = match location.strip_prefix('/') {
            Some(path) => format!("http://{}:{}/{path}", at.host(), at.port()),
            None => location.to_owned(),
        };
    }
    Err("too many redirects".to_owned())
}

/// A whole login, by way of an address that is pasted.
pub(crate) async fn login(store: &Store, server: &str, client: Client) -> Result<LoggedIn, Error> {
    let prepared = Login::new(store, server, client)?.through(asker()).prepare(None).await?;
    let pending = prepared.start(BACK).await?;
    let back = visit(pending.url(), BACK).await.unwrap();
    pending.finish(&back).await
}

/// One who logs in whenever that is needed.
pub(crate) struct Somebody;

impl Visitor for Somebody {
    fn redirect_uri(&self) -> String {
        BACK.to_owned()
    }

    fn visit(&self, url: String) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> {
        Box::pin(async move { visit(&url, BACK).await })
    }
}

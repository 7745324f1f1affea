//! Credentials that change while a server is held: where they come from, and the one task of a line that asks for them.
//!
//! In: a program's [`Keys`]; refusals, from dials, calls and the tender. Out: the key that every request reads when it is
//! sent, or why there is none. A line asks one question at a time, however many requests were refused at once.

mod pace;
mod ring;
mod task;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use linetender_wire::Redacted;
use tokio::sync::watch;

pub(crate) use ring::{KeyNews, KeyRing, Loss, Without};
pub(crate) use task::KeyTask;

/// What [`Keys::key`] comes to.
pub type Asked = Pin<Box<dyn Future<Output = Result<Option<Key>, NoKey>> + Send>>;

/// Where the credentials of a server come from that change while it is held: a login, a file, a command.
///
/// A line asks before each connection, when the server refuses a key, when a key says so, now and then (at first after a second,
/// later once a minute) while it has none that the server takes, and when [`changes`](Self::changes)
/// does; never twice at once. A newer key takes the place of the old one without ending the connection: calls that were
/// refused for the old key are sent once more, and everything else goes on.
///
/// ```
/// use std::sync::Arc;
///
/// use linetender::{Asked, Key, Keys, Refused, Server};
/// use tokio::sync::watch;
///
/// /// A token in a file, which somebody else keeps fresh.
/// #[derive(Debug)]
/// struct TokenFile(std::path::PathBuf, watch::Sender<u64>);
///
/// impl Keys for TokenFile {
///     fn key(self: Arc<Self>, _: Option<Refused>) -> Asked {
///         Box::pin(async move {
///             Ok(std::fs::read_to_string(&self.0).ok().and_then(|token| Key::bearer(token.trim()).ok()))
///         })
///     }
///
///     fn changes(&self) -> watch::Receiver<u64> {
///         self.1.subscribe()
///     }
/// }
///
/// let keys = Arc::new(TokenFile("/run/token".into(), watch::Sender::new(0)));
/// let server = Server::http("search", "https://mcp.example.com/mcp").keys(keys);
/// # let _ = server;
/// ```
pub trait Keys: Send + Sync + fmt::Debug + 'static {
    /// The key to send now; `None` if no credential is known: then none is sent, and the server says what it wants.
    /// `refused` is what the server has just refused.
    ///
    /// It bounds every wait of its own: after 20 s the line goes on without an answer. The future may be dropped at any time.
    fn key(self: Arc<Self>, refused: Option<Refused>) -> Asked;

    /// Changes whenever somebody logged in or out: a number that grows. The line then asks for the key again.
    fn changes(&self) -> watch::Receiver<u64>;

    /// What tells these credentials from others, in words that are the same in every process and no secret: the name of an
    /// account, or where it is kept. Servers with keys of the same identity are the same server. If it is empty, each
    /// `Keys` is like itself alone.
    fn identity(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}

/// One credential: the headers that carry it. Nothing prints it.
#[derive(Clone)]
pub struct Key {
    /// The headers, as they are sent. They take the place of configured ones of the same names.
    pub headers: Arc<HeaderMap>,
    /// When to ask for the next one, before this one expires.
    pub renew_at: Option<SystemTime>,
}

/// A key that the server refused.
#[derive(Clone)]
pub struct Refused {
    /// What was sent; `None` if there was no credential.
    pub key: Option<Key>,
    /// 401, or 403 if the credential is good but not for that request.
    pub status: u16,
    /// `WWW-Authenticate` as the server sent it, at most 4 KiB; several are joined with a comma. Foreign text.
    pub challenge: Box<str>,
}

/// Why there is no key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoKey {
    /// Somebody has to log in. The server's state is then `needs-auth`, and calls are refused at once with these words.
    Login {
        /// Why, and which command to type.
        words: Redacted,
    },
    /// It may work later: the authorization server does not answer. A key that was not refused is used on; otherwise the
    /// line waits as it does when it cannot connect.
    Later {
        /// Why.
        words: Redacted,
        /// Not before, if the peer said so.
        after: Option<Duration>,
    },
}

impl Key {
    /// A key in one header.
    pub fn new(name: HeaderName, value: HeaderValue) -> Self {
        let mut headers = HeaderMap::with_capacity(1);
        headers.insert(name, value);
        Self::of(headers)
    }

    /// A key in several headers.
    pub fn of(mut headers: HeaderMap) -> Self {
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        Self { headers: Arc::new(headers), renew_at: None }
    }

    /// A bearer token.
    ///
    /// # Errors
    /// If it contains what a header cannot.
    pub fn bearer(token: &str) -> Result<Self, http::header::InvalidHeaderValue> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"))?;
        Ok(Self::new(http::header::AUTHORIZATION, value))
    }

    /// The same, to be asked for again at this time.
    #[must_use]
    pub fn renew_at(mut self, at: SystemTime) -> Self {
        self.renew_at = Some(at);
        self
    }
}

/// Two keys are equal if the same is sent.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.headers == other.headers
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Key").field("headers", &names).field("renew_at", &self.renew_at).finish()
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let challenge = Redacted::head(&self.challenge, 200);
        f.debug_struct("Refused")
            .field("key", &self.key)
            .field("status", &self.status)
            .field("challenge", &challenge)
            .finish()
    }
}

/// The keys of a server, as a part of its configuration.
#[derive(Clone, Debug)]
pub(crate) struct Source(pub(crate) Arc<dyn Keys>);

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.0.identity(), other.0.identity());
        Arc::ptr_eq(&self.0, &other.0) || (!ours.is_empty() && ours == theirs)
    }
}

impl Eq for Source {}

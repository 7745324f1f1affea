//! The keys of a server to which somebody logged in: what a line asks.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use linetender::{Key, Keys, NoKey, Redacted, Refused};
use linetender_wire::http::Asker;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::challenge::Challenge;
use crate::client::{Client, Grant, PrivateKey};
use crate::encode::{base64url, sha256};
use crate::error::{Error, ErrorKind};
use crate::login::Login;
use crate::renew::{Because, Renewal, is_due};
use crate::secret::Secret;
use crate::store::Store;
use crate::store::record::{Granted, StepUps, moment, now};
use crate::tasks;
use crate::visitor::Visitor;

/// How long a question may take. What was begun goes on without whoever asked.
const WITHIN: Duration = Duration::from_secs(15);

/// How long a question waits for a new token while the old one is still good.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a token goes on that could not be renewed, before that is tried again.
const AGAIN: u64 = 30;

/// For how many seconds a token is new: a server that refuses it then has another reason than its age.
const NEW: u64 = 60;

/// How many tokens of the past are still masked in texts.
const MASKED: usize = 8;

/// The keys of one server, out of a [`Store`].
pub struct LoginKeys {
    renewal: Renewal,
    /// What a person types.
    command: String,
    visitor: Option<Arc<dyn Visitor>>,
    /// One question at a time, and how the last one that failed ended.
    flight: tokio::sync::Mutex<Flight>,
    asked: AtomicU64,
    /// Tokens that were handed out lately.
    recent: Mutex<VecDeque<Secret>>,
}

#[derive(Default)]
struct Flight {
    /// The number of the last question that had been asked when this failed.
    covers: u64,
    failed: Option<(Question, NoKey)>,
}

/// What was asked: what was refused, and with which status.
#[derive(Clone, Eq, PartialEq)]
struct Question(Option<(u16, Option<HeaderValue>)>);

impl Question {
    fn new(refused: Option<&Refused>) -> Self {
        let sent =
            |refused: &Refused| refused.key.as_ref().and_then(|key| key.headers.get(AUTHORIZATION).cloned());
        Self(refused.map(|refused| (refused.status, sent(refused))))
    }
}

impl LoginKeys {
    /// For the server at this address. `command` is what a person has to type to log in: it stands in texts.
    ///
    /// # Errors
    /// If nobody can log in at such an address.
    pub fn new(store: &Store, server: &str, client: Client, command: &str) -> Result<Self, Error> {
        let login = Login::new(store, server, client)?;
        let Login { store, asker, server, client, .. } = login;
        Ok(Self {
            renewal: Renewal { store, asker, server, client },
            command: command.to_owned(),
            visitor: None,
            flight: tokio::sync::Mutex::default(),
            asked: AtomicU64::new(0),
            recent: Mutex::default(),
        })
    }

    /// The same, through other proxies or trusting other roots.
    #[must_use]
    pub fn through(mut self, asker: Asker) -> Self {
        self.renewal.asker = asker;
        self
    }

    /// The same, with somebody who logs in when that is needed.
    #[must_use]
    pub fn visited_by(mut self, visitor: Arc<dyn Visitor>) -> Self {
        self.visitor = Some(visitor);
        self
    }

    fn login(&self) -> Login {
        let Renewal { store, asker, server, client } = self.renewal.clone();
        Login { store, asker, server, client, anew: false }
    }

    /// One question at a time. Whoever asked the same while that failed gets the same answer: an authorization server that is
    /// down is not asked once per waiter.
    async fn answer(&self, number: u64, refused: Option<Refused>) -> Result<Option<Key>, NoKey> {
        let question = Question::new(refused.as_ref());
        let mut flight = self.flight.lock().await;
        if number <= flight.covers
            && let Some((asked, failed)) = &flight.failed
            && *asked == question
        {
            return Err(failed.clone());
        }
        let answered = self.find(refused).await.map_err(|error| self.no_key(&error));
        flight.covers = self.asked.load(Ordering::Acquire);
        flight.failed = answered.as_ref().err().map(|no| (question, no.clone()));
        answered
    }

    async fn find(&self, refused: Option<Refused>) -> Result<Option<Key>, Error> {
        let stored = self.renewal.stored()?;
        let Some(refused) = refused else {
            return match stored {
                Some(granted) => self.current(granted).await.map(Some),
                None if self.had_key() && !self.renewal.client.grant.is_machine() => {
                    let words = format_args!("somebody logged out of the server at {}", self.renewal.server);
                    Err(Error::new(ErrorKind::LoginNeeded, words))
                }
                // It may want none, and if it does, its challenge says where to get one.
                None => Ok(None),
            };
        };
        let Some(granted) = stored else { return self.first(&refused).await.map(Some) };
        if !is_key(&granted, refused.key.as_ref()) {
            return Ok(Some(self.key(&granted)));
        }
        if refused.status == 403 {
            return self.step_up(granted, &refused).await.map(Some);
        }
        if self.renewal.client.grant.is_machine() {
            let (login, challenge) = (self.login(), &*refused.challenge);
            let renewed = self.renewal.begin_machine(&login, Some(challenge), Some(&granted.access)).await?;
            return Ok(Some(self.key(&renewed)));
        }
        // A token that is refused although it is new may be another issuer's business.
        let is_new = now() < granted.got_at.saturating_add(NEW);
        let moved = if is_new { self.renewal.moved(&refused.challenge).await } else { None };
        let renewed = match moved {
            Some(error) => Err(error),
            None => self.renewal.renew(&Because::Refused(granted.access)).await,
        };
        match renewed {
            Ok(renewed) => Ok(Some(self.key(&renewed))),
            Err(error) if error.kind() == ErrorKind::LoginNeeded && self.visitor.is_some() => {
                self.first(&refused).await.map(Some)
            }
            Err(error) => Err(error),
        }
    }

    /// The token that is stored, renewed if that is due.
    async fn current(&self, granted: Granted) -> Result<Key, Error> {
        if let Some(reason) = granted.over(now()).filter(|_| !self.renewal.client.grant.is_machine()) {
            return Err(Error::new(ErrorKind::LoginNeeded, reason));
        }
        if !is_due(&granted, now()) {
            return Ok(self.key(&granted));
        }
        let can_renew = granted.refresh.is_some() && granted.ended.is_none();
        if !can_renew && !self.renewal.client.grant.is_machine() {
            // Clocks go wrong. The server knows better whether it has ended.
            return Ok(Key { renew_at: None, ..self.key(&granted) });
        }
        let renewal = self.renewal.clone();
        let renewing = tasks::spawn(async move { renewal.renew(&Because::Due).await });
        let patience = if granted.is_valid(now()) { PATIENCE } else { WITHIN };
        let renewed = match timeout(patience, renewing).await {
            Ok(Ok(renewed)) => renewed,
            Ok(Err(_)) => {
                Err(Error::new(ErrorKind::Store, "linetender failed while it renewed a login (a bug)"))
            }
            Err(_) => {
                let words =
                    format_args!("no answer within {} s; it goes on in the background", patience.as_secs());
                Err(Error::new(ErrorKind::Unreachable, words))
            }
        };
        match renewed {
            Ok(renewed) => Ok(self.key(&renewed)),
            // A token that is still good goes on, whatever became of the attempt.
            Err(error) if granted.is_valid(now()) => {
                tracing::warn!(server = %self.renewal.server, %error, "token not renewed; the old one is still valid");
                let again = if error.is_passing() { Some(moment(now().saturating_add(AGAIN))) } else { None };
                Ok(Key { renew_at: again, ..self.key(&granted) })
            }
            Err(error) => Err(error),
        }
    }

    /// Nobody is logged in, and the server wants that.
    async fn first(&self, refused: &Refused) -> Result<Key, Error> {
        if self.renewal.client.grant.is_machine() {
            let login = self.login();
            let granted = self.renewal.begin_machine(&login, Some(&refused.challenge), None).await?;
            return Ok(self.key(&granted));
        }
        self.visit(&refused.challenge).await?.ok_or_else(|| {
            let words = format_args!("the server at {} wants somebody to log in", self.renewal.server);
            Error::new(ErrorKind::LoginNeeded, words)
        })
    }

    /// The token is good, but not for this.
    async fn step_up(&self, granted: Granted, refused: &Refused) -> Result<Key, Error> {
        let challenge = Challenge::read(&refused.challenge);
        let server = &self.renewal.server;
        if !challenge.wants_more_scopes() {
            let words = format_args!("the server at {server} does not let this login do that (status 403)");
            return Err(Error::new(ErrorKind::LoginNeeded, words));
        }
        let wanted = challenge.scopes.join(" ");
        if !granted.step_ups.may(now()) {
            let words = format_args!(
                "the server at {server} still refuses after {} logins with more scopes (it names: {wanted}); another one will hardly help, ask whoever runs the server",
                StepUps::MOST
            );
            return Err(Error::new(ErrorKind::LoginNeeded, words));
        }
        if self.renewal.client.grant.is_machine() {
            let because = Because::Scopes(granted.access, challenge.scopes);
            return self.renewal.renew(&because).await.map(|renewed| self.key(&renewed));
        }
        if let Some(key) = self.visit(&refused.challenge).await? {
            return Ok(key);
        }
        self.renewal.want(&granted.access, challenge.scopes).await?;
        let words =
            format_args!("the server at {server} wants more scopes for this than were granted ({wanted})");
        Err(Error::new(ErrorKind::LoginNeeded, words))
    }

    /// Logs in, if there is somebody who does that.
    async fn visit(&self, challenge: &str) -> Result<Option<Key>, Error> {
        let Some(visitor) = &self.visitor else { return Ok(None) };
        let pending = self.login().prepare(Some(challenge)).await?.start(&visitor.redirect_uri()).await?;
        let visited = visitor.visit(pending.url().to_owned()).await;
        let redirected = visited.map_err(|error| Error::new(ErrorKind::Refused, error))?;
        pending.finish(&redirected).await?;
        Ok(self.renewal.stored()?.map(|granted| self.key(&granted)))
    }

    /// Whether there was a login that this process knew.
    fn had_key(&self) -> bool {
        !self.recent.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// As it is sent.
    fn key(&self, granted: &Granted) -> Key {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if !recent.contains(&granted.access) {
            recent.push_back(granted.access.clone());
            if recent.len() > MASKED {
                recent.pop_front();
            }
        }
        drop(recent);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer(&granted.access));
        Key { headers: Arc::new(headers), renew_at: renew_at(granted) }
    }

    fn no_key(&self, error: &Error) -> NoKey {
        if error.is_passing() {
            return NoKey::Later { words: error.words().clone(), after: error.retry_after() };
        }
        // What a login cannot repair is not answered with one.
        let words = match error.kind() {
            ErrorKind::Config | ErrorKind::Store => error.to_string(),
            _ if self.renewal.client.grant.is_machine() => error.to_string(),
            // Ours first: what follows may be in the words of an authorization server.
            _ => format!("To log in, run `{}`: {error}", self.command),
        };
        NoKey::Login { words: Redacted::head(&words, 1000) }
    }
}

impl Keys for LoginKeys {
    fn key(
        self: Arc<Self>,
        refused: Option<Refused>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Key>, NoKey>> + Send>> {
        Box::pin(async move {
            let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
            let server = self.renewal.server.to_string();
            // A token request that was sent has to be heard out, whoever still waits for it.
            let answering = tasks::spawn(async move { self.answer(number, refused).await });
            let later = |words: String| NoKey::Later { words: Redacted::head(&words, 300), after: None };
            match timeout(WITHIN, answering).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => {
                    Err(later(format!("linetender failed while it looked for the login to {server} (a bug)")))
                }
                Err(_) => Err(later(format!(
                    "the login to {server} is still being renewed after {} s",
                    WITHIN.as_secs()
                ))),
            }
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.renewal.store.changes()
    }

    /// The server, and as whom: whatever of the configuration makes another client of it.
    fn identity(&self) -> Cow<'_, str> {
        let Client { id, secret, issuer, metadata_url, scopes, grant } = &self.renewal.client;
        let key = match grant {
            Grant::MachineKey(PrivateKey { pem, algorithm, key_id }) => {
                format!("{algorithm:?} {key_id:?} {}", pem.expose())
            }
            Grant::Person | Grant::Machine => String::new(),
        };
        let secret = secret.as_ref().map(Secret::expose);
        let rest = format!("{secret:?}\n{issuer:?}\n{metadata_url:?}\n{scopes:?}\n{key}\n{}", self.command);
        let by = if grant.is_machine() { "machine" } else { "login" };
        let id = id.as_deref().unwrap_or_default();
        format!("{by} {id} {} {}", self.renewal.server, base64url(&sha256(&rest))).into()
    }
}

impl std::fmt::Debug for LoginKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginKeys").field("server", &self.renewal.server).finish_non_exhaustive()
    }
}

fn bearer(token: &Secret) -> HeaderValue {
    // Every token was looked at when it was issued; one that was changed on disk is refused by the server.
    let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
    let mut value = value.unwrap_or_else(|_| HeaderValue::from_static("Bearer"));
    value.set_sensitive(true);
    value
}

/// Whether a key is made of this token.
fn is_key(granted: &Granted, key: Option<&Key>) -> bool {
    let sent = key.and_then(|key| key.headers.get(AUTHORIZATION));
    let token = sent.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    token.is_some_and(|token| granted.access.is(token))
}

/// A moment of this process's own before the token ends.
fn renew_at(granted: &Granted) -> Option<std::time::SystemTime> {
    let (from, to) = granted.renewal()?;
    let mut bytes = [0; 8];
    // Without randomness all processes ask at once, and one of them renews.
    let _ = getrandom::fill(&mut bytes);
    let span = to.saturating_sub(from).saturating_add(1);
    Some(moment(from.saturating_add(u64::from_le_bytes(bytes) % span)))
}

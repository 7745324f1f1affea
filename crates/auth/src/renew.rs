//! The one transaction in which a token is renewed, whoever asks and in however many processes.
//!
//! Lock; read again; if the token there is newer than the one that was refused, that is the answer. Else write down that a
//! token will be asked for, ask, store the answer, unlock. What is stored is replaced only by what is newer.
//!
//! One moment cannot be saved: an authorization server that hands out a new refresh token takes the old one back, and if this
//! process dies after it asked and before it stored the answer, nobody has the new one. The [`Intent`] tells the next process:
//! it tries the old token once, and if that is refused, says why somebody has to log in.
//!
//! So a request that was sent is heard out by a task of its own, which holds the lock, for a minute. Whoever wants the token
//! waits for that no longer than [`PATIENCE`].

use std::collections::BTreeMap;
use std::time::Duration;

use linetender_wire::http::Asker;
use linetender_wire::{hide, test_hooks, wall};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::client::{Client, Grant, PrivateKey};
use crate::discover::Discovered;
use crate::error::{Error, ErrorKind};
use crate::secret::Secret;
use crate::store::record::{ClientRecord, Credential, Ended, Granted, Intent, moment, now};
use crate::store::{Lock, Pointer, Store, Stored, Taken};
use crate::tasks;
use crate::token::{Failed, HEARD_OUT, TokenEndpoint, Tokens, WITHIN};

/// How long to wait for another process that renews a token.
const LOCK_WAIT: Duration = Duration::from_secs(14);

/// How long somebody waits who has a login to store or to end: until the slowest request of another process is over.
const LOCK_WAIT_LONG: Duration = Duration::from_secs(HEARD_OUT.as_secs() + 5);

/// How long a caller waits for the authorization server.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pauses, in seconds, between attempts to store a token that could not be stored: ten minutes.
const STORE_AGAIN: [u64; 14] = [1, 2, 4, 8, 15, 30, 60, 60, 60, 60, 60, 60, 90, 90];

/// After how many refusals in a row somebody is called who looks at it.
const REFUSALS: u32 = 3;

/// How often a login may change under our eyes before we give up.
const CHANGES_MOST: usize = 3;

/// What a renewal needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Renewal {
    pub(crate) store: Store,
    pub(crate) asker: Asker,
    pub(crate) server: Address,
    pub(crate) client: Client,
}

/// Why it is renewed.
#[derive(Clone, Debug)]
pub(crate) enum Because {
    /// The server refused this token.
    Refused(Secret),
    /// It ends soon.
    Due,
    /// These scopes are needed, beyond those of this token. Only a machine gets them without a person.
    Scopes(Secret, Vec<String>),
}

/// Waits for a lock as a login does: with words if it is not to be had.
pub(crate) async fn locked(store: &Store, pointer: &Pointer) -> Result<Lock, Error> {
    match store.lock(pointer, LOCK_WAIT_LONG).await? {
        Taken::Ours(lock) => Ok(lock),
        Taken::Theirs(holder) => Err(busy(holder, LOCK_WAIT_LONG)),
    }
}

/// A credential without grants.
pub(crate) fn empty(found: &Discovered, client: ClientRecord) -> Credential {
    Credential {
        version: 1,
        issuer: found.issuer.issuer.clone(),
        token_endpoint: found.issuer.token_endpoint.clone().unwrap_or_default(),
        revocation_endpoint: found.issuer.revocation_endpoint.clone(),
        client,
        grants: BTreeMap::new(),
    }
}

impl Renewal {
    /// Which credential is the server's own. One of another issuer than the configured one is of no use.
    fn pointer(&self) -> Result<Option<Pointer>, Error> {
        let found = self.store.find(&self.server)?;
        Ok(found.filter(|pointer| self.client.is_of(&pointer.issuer)))
    }

    /// What is stored for the server now.
    pub(crate) fn stored(&self) -> Result<Option<Granted>, Error> {
        let Some(pointer) = self.pointer()? else { return Ok(None) };
        let credential = self.store.read(&pointer)?;
        Ok(credential.and_then(|mut credential| credential.grants.remove(&self.server.canonical())))
    }

    /// A token that is newer than the one in question.
    pub(crate) async fn renew(&self, because: &Because) -> Result<Granted, Error> {
        for _ in 0..CHANGES_MOST {
            let Some(pointer) = self.pointer()? else { return Err(logged_out()) };
            let lock = match self.store.lock(&pointer, LOCK_WAIT).await? {
                Taken::Ours(lock) => lock,
                Taken::Theirs(holder) => return self.without_lock(because, holder),
            };
            test_hooks::point("auth renew locked");
            // Somebody may have logged in elsewhere meanwhile: then this was the wrong lock.
            if self.store.find(&self.server)?.as_ref() != Some(&pointer) {
                continue;
            }
            let Some(credential) = self.store.read(&pointer)? else { return Err(logged_out()) };
            let Some(granted) = credential.grants.get(&self.server.canonical()).cloned() else {
                return Err(logged_out());
            };
            if because.is_answered_by(&granted) {
                return Ok(granted);
            }
            let issuer = credential.issuer.clone();
            let (renewal, because) = (self.clone(), because.clone());
            let asking =
                tasks::spawn(async move { renewal.under_lock(lock, credential, granted, &because).await });
            return heard(asking, &issuer).await;
        }
        Err(Error::new(
            ErrorKind::Busy,
            "the login to this server changes all the time; linetender tries again later",
        ))
    }

    /// Another process has the lock for longer than any token request takes.
    fn without_lock(&self, because: &Because, holder: Option<u32>) -> Result<Granted, Error> {
        let stored = self.stored()?.filter(|granted| match because {
            Because::Due => granted.is_valid(now()),
            _ => because.is_answered_by(granted),
        });
        stored.ok_or_else(|| busy(holder, LOCK_WAIT))
    }

    async fn under_lock(
        &self,
        lock: Lock,
        credential: Credential,
        granted: Granted,
        because: &Because,
    ) -> Result<Granted, Error> {
        if let Some(ended) = &granted.ended
            && !self.client.grant.is_machine()
        {
            return Err(Error::new(ErrorKind::LoginNeeded, &ended.reason));
        }
        let url = Address::found(&credential.token_endpoint, "the token endpoint", &self.server)?;
        let client = self.presented(&credential);
        // A key is sent nowhere, but what it signs is: for the issuer that is configured, and no other.
        let key = self.key().filter(|_| self.client.issuer.as_ref() == Some(&credential.issuer));
        let endpoint =
            TokenEndpoint { asker: &self.asker, url: &url, issuer: &credential.issuer, client: &client, key };
        if self.client.grant.is_machine() {
            let more = match because {
                Because::Scopes(_, more) => more.clone(),
                Because::Refused(_) | Because::Due => Vec::new(),
            };
            let scopes = crate::scopes::union(granted.scopes.clone(), more);
            let tokens = match machine(&endpoint, &granted.resource, &scopes).await {
                Ok(tokens) => tokens,
                Err(failed) => return Err(self.machine_failed(&lock, &credential, failed).await),
            };
            let mut renewed = Granted { scopes, ..granted.clone() }.renewed(tokens, now());
            if matches!(because, Because::Scopes(..)) {
                renewed.step_ups = granted.step_ups.another(now());
            }
            return self.keep(lock, &credential, &granted, renewed).await;
        }
        let Some(refresh) = granted.refresh.clone() else {
            let words = format_args!(
                "the login at {} has ended, and that authorization server gave no refresh token",
                credential.issuer
            );
            return Err(Error::new(ErrorKind::LoginNeeded, words));
        };
        let intent = Intent { at: now(), pid: std::process::id() };
        let intending = Granted { intent: Some(intent), ..granted.clone() };
        self.put(&lock, &credential, intending.clone(), "auth intent").await?;
        test_hooks::point("auth request");
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
            ("resource", granted.resource.as_str()),
        ];
        let asked = endpoint.request(&form, HEARD_OUT).await;
        test_hooks::point("auth answered");
        match asked {
            Ok(tokens) => {
                let renewed = granted.renewed(tokens, now());
                let kept = self.keep(lock, &credential, &granted, renewed).await;
                test_hooks::point("auth unlock");
                kept
            }
            Err(Failed::Undone(error)) => {
                // Nobody has seen the token: what was known before still holds.
                self.put(&lock, &credential, granted, "auth undo").await?;
                Err(error)
            }
            // The intent stays: the token may have been replaced.
            Err(Failed::Unknown(error)) => Err(error),
            Err(Failed::Refused { code, error }) => {
                self.refused(
                    &lock,
                    &credential,
                    &intending,
                    granted.intent.as_ref(),
                    because,
                    (&code, &error),
                )
                .await
            }
        }
    }

    /// The authorization server does not renew this token.
    async fn refused(
        &self,
        lock: &Lock,
        credential: &Credential,
        ours: &Granted,
        interrupted: Option<&Intent>,
        because: &Because,
        refusal: (&str, &Error),
    ) -> Result<Granted, Error> {
        let (code, error) = refusal;
        // A program that knows nothing of locks may have stored another one. That is never touched.
        let stored = self.stored()?;
        match stored {
            Some(stored) if stored.refresh == ours.refresh => {}
            Some(stored) => return Ok(stored),
            None => return Err(logged_out()),
        }
        let client_gone = matches!(code, "invalid_client" | "unauthorized_client");
        let reason = match interrupted {
            Some(intent) if code == "invalid_grant" => format!(
                "at {} process {} asked {} for a new token, and it or its connection ended before it could store the answer; the old token is no longer accepted ({code})",
                wall::rfc3339(moment(intent.at)),
                intent.pid,
                credential.issuer,
            ),
            _ if client_gone => {
                format!("this client is not known any more, and the next login registers it again: {error}")
            }
            _ => error.to_string(),
        };
        let is_final = client_gone || code == "invalid_grant";
        let access_refused = matches!(because, Because::Refused(_));
        let ended = Ended { at: now(), reason: reason.clone(), access_refused };
        let refusals = ours.refusals.saturating_add(1);
        let marked = Granted { intent: None, refusals, ended: is_final.then_some(ended), ..ours.clone() };
        let mut credential = credential.clone();
        credential.client.is_gone |= client_gone;
        self.put(lock, &credential, marked, "auth refusal").await?;
        // The others say nothing of the login: a request that was garbled on its way, a server that was half set up.
        let passes = !is_final && refusals < REFUSALS;
        Err(Error::new(if passes { ErrorKind::Unreachable } else { ErrorKind::LoginNeeded }, reason))
    }

    /// Whether the server has gone over to another authorization server, where what is stored is of no use. Then the words.
    pub(crate) async fn moved(&self, challenge: &str) -> Option<Error> {
        let stored = self.store.find(&self.server).ok()??;
        let challenge = crate::challenge::Challenge::read(challenge);
        let named = crate::discover::issuers(&self.asker, &self.server, &challenge).await.ok()?;
        let first = named.first().filter(|_| !named.contains(&stored.issuer))?;
        let words = format_args!(
            "the server at {} has gone over to the authorization server {first}; the login at {} is of no use there",
            self.server, stored.issuer
        );
        Some(Error::new(ErrorKind::LoginNeeded, words))
    }

    /// Notes which scopes the next login has to ask for.
    pub(crate) async fn want(&self, refused: &Secret, scopes: Vec<String>) -> Result<(), Error> {
        let Some(pointer) = self.store.find(&self.server)? else { return Ok(()) };
        let Taken::Ours(lock) = self.store.lock(&pointer, LOCK_WAIT).await? else { return Ok(()) };
        let Some(mut credential) = self.store.read(&pointer)? else { return Ok(()) };
        let Some(granted) = credential.grants.get_mut(&self.server.canonical()) else { return Ok(()) };
        // A server that calls a token a scope does not get it shown to anybody, nor sent anywhere.
        let scopes = scopes.into_iter().filter(|scope| hide(scope) == *scope);
        let wanted = crate::scopes::union(granted.wanted.clone(), scopes);
        if granted.access != *refused || granted.wanted == wanted {
            return Ok(());
        }
        granted.wanted = wanted;
        self.store.write(&lock, credential, "auth wanted").await
    }

    /// The first token of a machine, or one of another issuer.
    pub(crate) async fn begin_machine(
        &self,
        login: &crate::login::Login,
        challenge: Option<&str>,
        refused: Option<&Secret>,
    ) -> Result<Granted, Error> {
        let challenge = match challenge {
            Some(header) => crate::challenge::Challenge::read(header),
            None => crate::discover::challenge(&self.asker, &self.server).await?,
        };
        let pinned = self.client.issuer.as_deref();
        let found = crate::discover::discover(&self.asker, &self.server, &challenge, pinned).await?;
        let Some(client) = crate::register::without_asking(&found, &self.client)? else {
            return Err(Error::new(ErrorKind::Config, "a machine's login needs a client_id"));
        };
        let pointer = Pointer::new(&self.server, &found.issuer.issuer, &client.id);
        let lock = locked(&self.store, &pointer).await?;
        let is_same = self.store.find(&self.server)?.as_ref() == Some(&pointer);
        let stored = if is_same { self.stored()? } else { None };
        let of_resource = found.resource_scopes.as_deref();
        let mut scopes = crate::scopes::select(&self.client.scopes, &challenge.scopes, of_resource, None);
        if let Some(stored) = &stored {
            // Another process may have been here first.
            if refused.is_none_or(|refused| stored.access != *refused) && stored.is_valid(now()) {
                return Ok(stored.clone());
            }
            scopes = crate::scopes::union(stored.scopes.clone(), scopes);
        }
        let url = found.issuer.token_endpoint.as_deref().unwrap_or_default();
        let url = Address::found(url, "the token endpoint", &self.server)?;
        let issuer = &found.issuer.issuer;
        let endpoint =
            TokenEndpoint { asker: &self.asker, url: &url, issuer, client: &client, key: self.key() };
        let tokens = match machine(&endpoint, &found.resource, &scopes).await {
            Ok(tokens) => tokens,
            Err(failed) => {
                // Without a record there is nothing to mark.
                let known = match self.store.look(&pointer) {
                    Stored::There(known) => known,
                    Stored::NotThere | Stored::Damaged(_) | Stored::Unreadable(_) => {
                        empty(&found, client.clone())
                    }
                };
                return Err(self.machine_failed(&lock, &known, failed).await);
            }
        };
        let mut granted = Granted::new(found.resource.clone(), tokens, scopes, now());
        granted.step_ups = stored.map(|stored| stored.step_ups).unwrap_or_default();
        login.keep_under(lock, &found, client, granted.clone()).await?;
        Ok(granted)
    }

    /// A machine got no token. One that got some before is believed to have what it needs, until it was refused several times.
    async fn machine_failed(&self, lock: &Lock, credential: &Credential, failed: Failed) -> Error {
        let error = match failed {
            Failed::Refused { error, .. } => error,
            Failed::Undone(error) | Failed::Unknown(error) => return error,
        };
        if let Some(granted) = credential.grants.get(&self.server.canonical()) {
            let refusals = granted.refusals.saturating_add(1);
            let marked = Granted { refusals, ..granted.clone() };
            let is_noted = self.put(lock, credential, marked, "auth refusal").await.is_ok();
            if is_noted && refusals < REFUSALS {
                return Error::new(ErrorKind::Unreachable, error);
            }
        }
        let words = format_args!(
            "check the client_id and the secret or key that are configured for this server: {error}"
        );
        Error::new(ErrorKind::Config, words)
    }

    /// The key of a machine that signs.
    const fn key(&self) -> Option<&PrivateKey> {
        match &self.client.grant {
            Grant::MachineKey(key) => Some(key),
            Grant::Person | Grant::Machine => None,
        }
    }

    /// What is configured now counts, if it is the same client of the same issuer: secrets are rotated there.
    fn presented(&self, credential: &Credential) -> ClientRecord {
        let mut client = credential.client.clone();
        let is_same = self.client.id.as_ref() == Some(&client.id)
            && self.client.issuer.as_ref() == Some(&credential.issuer);
        if is_same && self.client.secret.is_some() {
            client.secret.clone_from(&self.client.secret);
        }
        client
    }

    /// Stores what was issued. What cannot be stored is used all the same: nothing else is good any more.
    async fn keep(
        &self,
        lock: Lock,
        credential: &Credential,
        before: &Granted,
        renewed: Granted,
    ) -> Result<Granted, Error> {
        let pointer = Pointer::new(&self.server, &credential.issuer, &credential.client.id);
        let pointed = self.store.find(&self.server).ok().flatten();
        if pointed.is_some_and(|pointed| pointed != pointer) {
            // Somebody logged in with another client meanwhile: nobody would ever look for this one again.
            crate::account::revoke(&self.asker, &self.server, credential, &renewed).await;
            if let Err(error) = self.store.forget_grant(&lock, &pointer).await {
                tracing::debug!(%error, "old login not removed");
            }
            return self.stored()?.ok_or_else(logged_out);
        }
        let Err(error) = self.put(&lock, credential, renewed.clone(), "auth answer").await else {
            return Ok(renewed);
        };
        tracing::warn!(server = %self.server, %error, "token renewed but not stored; it is used from memory, and storing it is tried again");
        self.store.keep(&pointer, before.refresh.clone(), renewed.clone());
        let (renewal, credential, unsaved) = (self.clone(), credential.clone(), renewed.clone());
        tasks::spawn(async move { renewal.keep_later(lock, &credential, unsaved).await });
        Ok(renewed)
    }

    /// Under the lock: another process would try the token that is on the disk, and that is good no more.
    async fn keep_later(&self, lock: Lock, credential: &Credential, renewed: Granted) {
        for pause in STORE_AGAIN {
            sleep(Duration::from_secs(pause)).await;
            if self.put(&lock, credential, renewed.clone(), "auth answer").await.is_ok() {
                tracing::info!(server = %self.server, "token stored");
                return;
            }
        }
        tracing::error!(server = %self.server, "token not stored: this login ends with this process");
    }

    async fn put(
        &self,
        lock: &Lock,
        credential: &Credential,
        granted: Granted,
        stage: &'static str,
    ) -> Result<(), Error> {
        let mut credential = credential.clone();
        credential.grants.insert(self.server.canonical(), granted);
        self.store.write(lock, credential, stage).await
    }
}

impl Because {
    /// Whether what is stored is what is wanted.
    fn is_answered_by(&self, stored: &Granted) -> bool {
        match self {
            Self::Refused(token) | Self::Scopes(token, _) => stored.access != *token,
            Self::Due => !is_due(stored, now()),
        }
    }
}

/// Whether it is time to renew a token.
pub(crate) fn is_due(granted: &Granted, now: u64) -> bool {
    granted.renewal().is_some_and(|(from, _)| now >= from)
}

/// A token for a machine.
async fn machine(endpoint: &TokenEndpoint<'_>, resource: &str, scopes: &[String]) -> Result<Tokens, Failed> {
    let scope = scopes.join(" ");
    let mut form = vec![("grant_type", "client_credentials"), ("resource", resource)];
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    endpoint.request(&form, WITHIN).await
}

fn logged_out() -> Error {
    Error::new(ErrorKind::LoginNeeded, "nobody is logged in to this server")
}

/// What becomes of a request, if that is known soon.
async fn heard(asking: JoinHandle<Result<Granted, Error>>, issuer: &str) -> Result<Granted, Error> {
    match timeout(PATIENCE, asking).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(Error::new(ErrorKind::Store, "linetender failed while it renewed a login (a bug)")),
        Err(_) => Err(Error::new(
            ErrorKind::Unreachable,
            format_args!(
                "the authorization server {issuer} has not answered yet; linetender still waits for the new token, and uses it when it comes"
            ),
        )),
    }
}

fn busy(holder: Option<u32>, waited: Duration) -> Error {
    let seconds = waited.as_secs();
    let words = match holder {
        Some(pid) if pid == std::process::id() => {
            "linetender is still renewing this login: the authorization server has not answered yet, or its answer could not be stored yet; linetender tries again later".to_owned()
        }
        Some(pid) => format!(
            "process {pid} has been renewing this login for more than {seconds} s: either the authorization server has not answered it yet, or it is stopped (look at it with: ps -o stat,args -p {pid}); linetender tries again later"
        ),
        None => format!(
            "another process has been renewing this login for more than {seconds} s; linetender tries again later"
        ),
    };
    Error::new(ErrorKind::Busy, words)
}

//! A login by a person, as values: what is asked for, where the browser goes, and what came back.
//!
//! Nothing here opens a browser or waits for one. [`Login::prepare`] finds the authorization server, [`Prepared::start`] makes
//! the address to visit, and [`Pending::finish`] takes the address that the browser was sent back to, however that was got:
//! from [`Loopback`], or typed in.

mod response;

use std::path::PathBuf;

use linetender_wire::http::Asker;

use crate::address::Address;
use crate::challenge::Challenge;
use crate::client::Client;
use crate::discover::{self, Discovered};
use crate::encode::{base64url, form, sha256};
use crate::error::{Error, ErrorKind};
use crate::loopback::Loopback;
use crate::register;
use crate::renew;
use crate::scopes;
use crate::secret::Secret;
use crate::store::record::{ClientRecord, Granted, StepUps, now};
use crate::store::{Lock, Pointer, Store, Stored};
use crate::token::{HEARD_OUT, TokenEndpoint};

/// A login to one server.
#[derive(Clone, Debug)]
pub struct Login {
    pub(crate) store: Store,
    pub(crate) asker: Asker,
    pub(crate) server: Address,
    pub(crate) client: Client,
    /// No client is presented that was registered before.
    pub(crate) anew: bool,
}

/// The authorization server is known.
#[derive(Debug)]
pub struct Prepared {
    login: Login,
    found: Discovered,
    scopes: Vec<String>,
    /// A client of ours that is registered there.
    known: Option<ClientRecord>,
    step_ups: StepUps,
}

/// A browser has to visit [`Pending::url`].
#[derive(Debug)]
pub struct Pending {
    login: Login,
    found: Discovered,
    client: ClientRecord,
    scopes: Vec<String>,
    step_ups: StepUps,
    url: Secret,
    state: Secret,
    verifier: Secret,
    redirect_uri: String,
}

/// A login that is stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoggedIn {
    /// The server.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// Whether it can be renewed without a person.
    pub stays: bool,
    /// A damaged file that was in the way, where it is now. A logout from this server deletes it.
    pub moved_aside: Option<PathBuf>,
}

impl Login {
    /// To the server at this address.
    ///
    /// # Errors
    /// If nobody can log in at such an address.
    pub fn new(store: &Store, server: &str, client: Client) -> Result<Self, Error> {
        let server = Address::of_server(server)?;
        Ok(Self { store: store.clone(), asker: Asker::of_this_machine(), server, client, anew: false })
    }

    /// The same, through other proxies or trusting other roots.
    #[must_use]
    pub fn through(self, asker: Asker) -> Self {
        Self { asker, ..self }
    }

    /// The same, with a client that is registered anew: for a person whose authorization server does not know the old one any
    /// more, and says so in the browser alone.
    #[must_use]
    pub fn registering_anew(self) -> Self {
        Self { anew: true, ..self }
    }

    /// Finds the authorization server. `challenge` is the `WWW-Authenticate` header with which the server refused; without
    /// one the server is asked for it.
    ///
    /// # Errors
    /// If there is none that can be used, or it cannot be reached.
    pub async fn prepare(self, challenge: Option<&str>) -> Result<Prepared, Error> {
        let challenge = match challenge {
            Some(header) => Challenge::read(header),
            None => discover::challenge(&self.asker, &self.server).await?,
        };
        let found =
            discover::discover(&self.asker, &self.server, &challenge, self.client.issuer.as_deref()).await?;
        let issuer = &found.issuer;
        issuer.check_pkce()?;
        let mut scopes = scopes::select(
            &self.client.scopes,
            &challenge.scopes,
            found.resource_scopes.as_deref(),
            issuer.scopes_supported.as_deref(),
        );
        let mut step_ups = StepUps::default();
        if let Some(before) = self.stored(&issuer.issuer)?
            && (challenge.wants_more_scopes() || !before.wanted.is_empty())
        {
            scopes = scopes::union(before.scopes, scopes::union(before.wanted, scopes));
            step_ups = before.step_ups.another(now());
        }
        let known = if self.anew { None } else { self.known(&issuer.issuer)? };
        Ok(Prepared { login: self, found, scopes, known, step_ups })
    }

    /// What was granted before, by the same issuer: nothing of another one is ever used.
    fn stored(&self, issuer: &str) -> Result<Option<Granted>, Error> {
        let pointer = readable(self.store.look_for(&self.server))?;
        let Some(pointer) = pointer.filter(|pointer| pointer.issuer == issuer) else { return Ok(None) };
        let credential = readable(self.store.look(&pointer))?;
        Ok(credential.and_then(|mut credential| credential.grants.remove(&self.server.canonical())))
    }

    /// The client that linetender registered there before, for whichever server.
    fn known(&self, issuer: &str) -> Result<Option<ClientRecord>, Error> {
        let mut fitting = self
            .store
            .credentials()?
            .into_iter()
            .filter(|credential| credential.issuer == issuer && register::is_usable(&credential.client));
        Ok(fitting.next().map(|credential| credential.client))
    }
}

impl Prepared {
    /// The authorization server.
    pub fn issuer(&self) -> &str {
        &self.found.issuer.issuer
    }

    /// What will be asked for.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// A listener on this machine for the browser's way back: on the port that is registered, if that is free.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn listen(&self) -> Result<Loopback, Error> {
        let registered = self.known.as_ref().and_then(|client| client.redirect_uri.as_deref());
        Loopback::open(registered).await
    }

    /// Makes the address that a browser has to visit, which then comes back to `redirect_uri`. Registers linetender if that is
    /// needed.
    ///
    /// # Errors
    /// If there is no client to present, or the authorization server has no place to go to.
    pub async fn start(self, redirect_uri: &str) -> Result<Pending, Error> {
        let Self { login, found, scopes, known, step_ups } = self;
        if login.client.grant.is_machine() {
            return Err(Error::new(
                ErrorKind::Config,
                "this server is configured for a machine's login: nobody has to log in",
            ));
        }
        let known = known.filter(|client| client.redirect_uri.as_deref() == Some(redirect_uri));
        let client = match register::without_asking(&found, &login.client)? {
            Some(client) => client,
            None => match known {
                Some(client) => client,
                None => register::register(&login.asker, &login.server, &found, redirect_uri).await?,
            },
        };
        let endpoint = found.issuer.authorization_endpoint.as_deref().unwrap_or_default();
        let endpoint = Address::found(endpoint, "the authorization endpoint", &login.server)?;
        let (state, verifier) = (random()?, random()?);
        let challenge = base64url(&sha256(verifier.expose()));
        let asked = scopes.join(" ");
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", redirect_uri),
            ("state", state.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &found.resource),
        ];
        if !asked.is_empty() {
            query.push(("scope", &asked));
        }
        // OpenID Connect Core, 11: without it offline_access is passed over.
        if scopes.iter().any(|scope| scope == "offline_access") {
            query.push(("prompt", "consent"));
        }
        let joint = if endpoint.as_str().contains('?') { '&' } else { '?' };
        let url = Secret::new(format!("{}{joint}{}", endpoint.as_str(), form(query)));
        let redirect_uri = redirect_uri.to_owned();
        Ok(Pending { login, found, client, scopes, step_ups, url, state, verifier, redirect_uri })
    }
}

impl Pending {
    /// The address to visit. It is for the person's browser alone.
    pub fn url(&self) -> &str {
        self.url.expose()
    }

    /// Where the browser comes back to.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The authorization server.
    pub fn issuer(&self) -> &str {
        &self.found.issuer.issuer
    }

    /// Whether an address that a browser was sent to belongs to this login. A stranger's page can send it to ours, too.
    pub fn is_ours(&self, redirected: &str) -> bool {
        response::is_ours(redirected, &self.redirect_uri, &self.state)
    }

    /// Takes the address that the browser was sent back to, and gets and stores the tokens.
    ///
    /// # Errors
    /// If it does not belong to this login, the person or the authorization server said no, or nothing can be stored.
    pub async fn finish(self, redirected: &str) -> Result<LoggedIn, Error> {
        let expected = response::Expected {
            redirect_uri: &self.redirect_uri,
            state: &self.state,
            issuer: &self.found.issuer.issuer,
            issuer_always_named: self.found.issuer.authorization_response_iss_parameter_supported,
        };
        let code = expected.read(redirected)?;
        let issuer = &self.found.issuer;
        let endpoint = issuer.token_endpoint.as_deref().unwrap_or_default();
        let url = Address::found(endpoint, "the token endpoint", &self.login.server)?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", self.verifier.expose()),
            ("resource", &self.found.resource),
        ];
        let endpoint = TokenEndpoint {
            asker: &self.login.asker,
            url: &url,
            issuer: &issuer.issuer,
            client: &self.client,
            key: None,
        };
        let tokens = match endpoint.request(&form, HEARD_OUT).await {
            Ok(tokens) => tokens,
            Err(failed) => {
                if failed.is_about_client() {
                    self.login.client_is_gone(&issuer.issuer, &self.client).await;
                }
                return Err(failed.error());
            }
        };
        let mut granted = Granted::new(self.found.resource.clone(), tokens, self.scopes.clone(), now());
        granted.step_ups = self.step_ups;
        self.login.keep(&self.found, self.client, granted).await
    }
}

impl Login {
    /// Stores what was granted, and makes it the server's own.
    pub(crate) async fn keep(
        &self,
        found: &Discovered,
        client: ClientRecord,
        granted: Granted,
    ) -> Result<LoggedIn, Error> {
        let pointer = Pointer::new(&self.server, &found.issuer.issuer, &client.id);
        let lock = renew::locked(&self.store, &pointer).await?;
        let mut done = LoggedIn {
            server: self.server.to_string(),
            issuer: found.issuer.issuer.clone(),
            scopes: granted.scopes.clone(),
            stays: granted.refresh.is_some() || self.client.grant.is_machine(),
            moved_aside: None,
        };
        done.moved_aside = self.keep_under(lock, found, client, granted).await?;
        Ok(done)
    }

    /// The same, by whoever has the lock of that credential. Returns where a damaged file is now that was in the way.
    pub(crate) async fn keep_under(
        &self,
        lock: Lock,
        found: &Discovered,
        client: ClientRecord,
        granted: Granted,
    ) -> Result<Option<PathBuf>, Error> {
        let issuer = &found.issuer;
        let pointer = Pointer::new(&self.server, &issuer.issuer, &client.id);
        // A file that cannot be read may hold logins to other servers: it is never replaced.
        let (stored, aside) = match self.store.look(&pointer) {
            Stored::There(credential) => (Some(credential), None),
            Stored::NotThere => (None, None),
            Stored::Damaged(_) => (None, Some(self.store.move_aside(&lock, &pointer).await?)),
            Stored::Unreadable(error) => return Err(error),
        };
        let mut credential = stored.unwrap_or_else(|| renew::empty(found, client.clone()));
        credential.client = client;
        credential.token_endpoint = issuer.token_endpoint.clone().unwrap_or_default();
        credential.revocation_endpoint.clone_from(&issuer.revocation_endpoint);
        credential.grants.insert(self.server.canonical(), granted);
        self.store.write(&lock, credential, "auth login").await?;
        let before = self.store.point(&lock, pointer.clone()).await?;
        drop(lock);
        if let Some(before) = before.filter(|before| *before != pointer) {
            crate::account::drop_grant(&self.store, before).await;
        }
        Ok(aside)
    }

    /// The authorization server does not know the client that was registered there: the next login registers another.
    async fn client_is_gone(&self, issuer: &str, client: &ClientRecord) {
        let pointer = Pointer::new(&self.server, issuer, &client.id);
        let Ok(lock) = renew::locked(&self.store, &pointer).await else { return };
        let Ok(Some(mut credential)) = self.store.read(&pointer) else { return };
        credential.client.is_gone = true;
        if let Err(error) = self.store.write(&lock, credential, "auth tidy").await {
            tracing::debug!(%error, "client not marked as gone");
        }
    }
}

/// A record, if it can be had. A damaged one is of no use to a login; one that cannot be read now may be.
fn readable<T>(stored: Stored<T>) -> Result<Option<T>, Error> {
    match stored {
        Stored::There(record) => Ok(Some(record)),
        Stored::NotThere | Stored::Damaged(_) => Ok(None),
        Stored::Unreadable(error) => Err(error),
    }
}

fn random() -> Result<Secret, Error> {
    Secret::random().map_err(Error::no_randomness)
}

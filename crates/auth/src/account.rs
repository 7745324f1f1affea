//! Who is logged in where, and how that ends.

use std::time::{Duration, SystemTime};

use linetender_wire::http::Asker;

use crate::address::Address;
use crate::error::Error;
use crate::renew;
use crate::store::record::{Credential, Granted, Origin, moment, now};
use crate::store::{Pointer, Store, Stored, Taken};
use crate::token::TokenEndpoint;

/// How long a revocation may take.
const REVOKE_WITHIN: Duration = Duration::from_secs(5);

/// How long to wait for the lock of a login that is not used any more.
const TIDY_WAIT: Duration = Duration::from_secs(2);

/// A login that is stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Account {
    /// The server, without the query of its address.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// As which client.
    pub client_id: String,
    /// Where that client comes from: `configured`, `document` or `registered`.
    pub client_origin: &'static str,
    /// What was granted.
    pub scopes: Vec<String>,
    /// Until when the token is good, if the authorization server said so.
    pub expires_at: Option<SystemTime>,
    /// What becomes of it then.
    pub standing: Standing,
}

/// What becomes of a login when its token ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It is renewed without a person.
    Renews,
    /// It ends then.
    Ends,
    /// It has ended.
    Ended {
        /// Why.
        reason: String,
    },
    /// A process asked for a new token, and has not stored the answer.
    Renewing {
        /// Which process.
        pid: u32,
        /// Since when.
        since: SystemTime,
    },
    /// The server wants more scopes than were granted.
    WantsScopes {
        /// These.
        scopes: Vec<String>,
    },
}

/// What a logout did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LoggedOut {
    /// The login is deleted here, and the authorization server has taken its tokens back.
    Revoked,
    /// The login is deleted here. The authorization server has no way to take tokens back: they end by themselves.
    Deleted,
    /// The login is deleted here, but the authorization server could not be told: it was not reached, or the login was damaged.
    NotRevoked(Error),
    /// Nobody was logged in.
    Nobody,
}

/// All logins of this user, by server.
///
/// # Errors
/// If the store cannot be read.
pub fn list(store: &Store) -> Result<Vec<Account>, Error> {
    let mut accounts = Vec::new();
    for pointer in store.all()? {
        let Ok(Some(credential)) = store.read(&pointer) else { continue };
        let Some(granted) = credential.grants.get(&pointer.server) else { continue };
        accounts.push(Account {
            server: Address::of_server(&pointer.server).map(|server| server.to_string()).unwrap_or_default(),
            issuer: credential.issuer.clone(),
            client_id: credential.client.id.clone(),
            client_origin: match credential.client.origin {
                Origin::Configured => "configured",
                Origin::Document => "document",
                Origin::Registered => "registered",
            },
            scopes: granted.scopes.clone(),
            expires_at: granted.expires_at.map(moment),
            standing: standing(granted),
        });
    }
    accounts.sort_by(|one, other| one.server.cmp(&other.server));
    Ok(accounts)
}

fn standing(granted: &Granted) -> Standing {
    if let Some(ended) = &granted.ended {
        return Standing::Ended { reason: ended.reason.clone() };
    }
    if !granted.wanted.is_empty() {
        return Standing::WantsScopes { scopes: granted.wanted.clone() };
    }
    if let Some(intent) = &granted.intent {
        return Standing::Renewing { pid: intent.pid, since: moment(intent.at) };
    }
    match granted.refresh {
        Some(_) => Standing::Renews,
        None if granted.is_valid(now()) => Standing::Ends,
        None => Standing::Ended { reason: "the token has expired, and there is no refresh token".to_owned() },
    }
}

/// Logs out of a server: tells the authorization server if it wants to know, and deletes the login here in any case.
///
/// # Errors
/// If it cannot be read or deleted. A login that cannot be read (its file belongs to another version, or may not be opened) is left as
/// it is; a damaged one is deleted.
pub async fn logout(store: &Store, server: &str) -> Result<LoggedOut, Error> {
    logout_through(store, server, &Asker::of_this_machine()).await
}

/// The same, through other proxies or trusting other roots.
///
/// # Errors
/// If it cannot be deleted.
pub async fn logout_through(store: &Store, server: &str, asker: &Asker) -> Result<LoggedOut, Error> {
    let server = Address::of_server(server)?;
    let pointed = match store.look_for(&server) {
        Stored::There(pointer) => Some(pointer),
        Stored::NotThere | Stored::Damaged(_) => None,
        Stored::Unreadable(error) => return Err(error),
    };
    // Before anything is changed: a login that cannot be read is not half deleted.
    if let Some(Stored::Unreadable(error)) = pointed.as_ref().map(|pointed| store.look(pointed)) {
        return Err(error);
    }
    // From here on nobody uses it, and a renewal that still runs is waited for.
    store.unpoint(&server).await?;
    let canonical = server.canonical();
    let stored =
        store.credentials()?.into_iter().filter(|credential| credential.grants.contains_key(&canonical));
    let mut all: Vec<Pointer> =
        stored.map(|credential| Pointer::new(&server, &credential.issuer, &credential.client.id)).collect();
    // A login that is damaged can still be deleted.
    all.extend(pointed.filter(|pointed| !all.contains(pointed)));
    let mut done = Ok(LoggedOut::Nobody);
    for pointer in all {
        let ended = end(store, &server, pointer, asker).await;
        done = match (done, ended) {
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(LoggedOut::NotRevoked(error)), _) | (_, Ok(LoggedOut::NotRevoked(error))) => {
                Ok(LoggedOut::NotRevoked(error))
            }
            (Ok(LoggedOut::Deleted), _) => Ok(LoggedOut::Deleted),
            (_, ended) => ended,
        };
    }
    done
}

/// Ends what one credential has for this server.
async fn end(store: &Store, server: &Address, pointer: Pointer, asker: &Asker) -> Result<LoggedOut, Error> {
    let lock = renew::locked(store, &pointer).await?;
    let (credential, damage) = match store.look(&pointer) {
        Stored::There(credential) => (Some(credential), None),
        Stored::NotThere => (None, None),
        Stored::Damaged(error) => (None, Some(error)),
        Stored::Unreadable(error) => return Err(error),
    };
    let granted = credential.as_ref().and_then(|credential| credential.grants.get(&pointer.server));
    let done = match credential.as_ref().zip(granted) {
        Some((credential, granted)) => revoke(asker, server, credential, granted).await,
        // The tokens that could be revoked are not known.
        None => damage.map_or(LoggedOut::Deleted, LoggedOut::NotRevoked),
    };
    store.forget(&lock, pointer).await?;
    Ok(done)
}

/// Tells the authorization server that a grant is not needed any more, if it wants to know.
pub(crate) async fn revoke(
    asker: &Asker,
    server: &Address,
    credential: &Credential,
    granted: &Granted,
) -> LoggedOut {
    let url = credential.revocation_endpoint.as_deref();
    let Some(Ok(url)) = url.map(|url| Address::found(url, "the revocation endpoint", server)) else {
        return LoggedOut::Deleted;
    };
    let (token, kind) = match &granted.refresh {
        Some(refresh) => (refresh, "refresh_token"),
        None => (&granted.access, "access_token"),
    };
    let form = [("token", token.expose()), ("token_type_hint", kind)];
    let (issuer, client) = (&*credential.issuer, &credential.client);
    let endpoint = TokenEndpoint { asker, url: &url, issuer, client, key: None };
    match endpoint.revoke(&form, REVOKE_WITHIN).await {
        Ok(()) => LoggedOut::Revoked,
        Err(error) => LoggedOut::NotRevoked(error),
    }
}

/// Forgets what another issuer or client granted before. It is of no use any more, and nobody looks for it. If it is just
/// being renewed, whoever does that forgets it.
pub(crate) async fn drop_grant(store: &Store, before: Pointer) {
    let Ok(Taken::Ours(lock)) = store.lock(&before, TIDY_WAIT).await else { return };
    if let Err(error) = store.forget_grant(&lock, &before).await {
        tracing::debug!(%error, "old login not removed");
    }
}

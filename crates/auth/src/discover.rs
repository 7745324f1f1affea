//! From the address of a server to its authorization server.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use linetender_wire::http::{Asker, Reply};
use serde::de::DeserializeOwned;

use crate::address::Address;
use crate::challenge::Challenge;
use crate::error::{Error, ErrorKind};
use crate::metadata::{self, Issuer, Resource, issuer_places, resource_places};

/// How long one request for metadata may take.
const EACH: Duration = Duration::from_secs(5);

/// What is sent to a server to see its challenge: it changes nothing where nobody has to log in.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"linetender-login","method":"ping"}"#;

/// What a login to a server goes by.
#[derive(Clone, Debug)]
pub(crate) struct Discovered {
    /// The resource, exactly as it is published: it stands so in both requests.
    pub(crate) resource: String,
    pub(crate) resource_scopes: Option<Vec<String>>,
    pub(crate) issuer: Issuer,
    /// The issuer has no metadata: its endpoints are guesses.
    pub(crate) is_guess: bool,
}

/// What came from one place.
pub(crate) enum Found<T> {
    Here(T),
    /// It is said that there is nothing.
    Nothing,
}

/// Asks the server what it says to somebody without a token.
pub(crate) async fn challenge(asker: &Asker, server: &Address) -> Result<Challenge, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    let asked = asker.ask(Method::POST, server.endpoint(), headers, Bytes::from_static(PING), EACH).await;
    let reply = asked.map_err(|broken| {
        Error::new(
            ErrorKind::Unreachable,
            format_args!("the server at {server} could not be reached: {broken}"),
        )
    })?;
    if reply.status != StatusCode::UNAUTHORIZED {
        // Some servers let pings pass. The well-known addresses remain.
        return Ok(Challenge::default());
    }
    Ok(Challenge::read(&joined(&reply.headers)))
}

/// All of a response's challenges as one header.
fn joined(headers: &HeaderMap) -> String {
    let all = headers.get_all(WWW_AUTHENTICATE).iter();
    all.map(|value| String::from_utf8_lossy(value.as_bytes())).collect::<Vec<_>>().join(", ")
}

/// Finds the authorization server of a server. If `pinned` is there, it has to be that one.
pub(crate) async fn discover(
    asker: &Asker,
    server: &Address,
    challenge: &Challenge,
    pinned: Option<&str>,
) -> Result<Discovered, Error> {
    let Some(resource) = resource_of(asker, server, challenge).await? else {
        return fallback(asker, server, pinned).await;
    };
    let published = Address::found(&resource.resource, "the protected resource", server)?;
    if !published.covers(server) {
        let words = format_args!(
            "the server at {server} presents the metadata of another resource, {published}; linetender does not ask for a token that was meant for somebody else"
        );
        return Err(Error::new(ErrorKind::Metadata, words));
    }
    let named = choose(server, &resource.authorization_servers, pinned)?;
    let address = Address::found(named, "the authorization server", server)?;
    match issuer_of(asker, server, &address, named).await? {
        Some(issuer) => Ok(Discovered {
            resource: resource.resource,
            resource_scopes: resource.scopes_supported,
            issuer,
            is_guess: false,
        }),
        None => Err(Error::new(
            ErrorKind::Metadata,
            format_args!(
                "the authorization server {named} publishes no metadata (looked at {})",
                issuer_places(&address).join(", ")
            ),
        )),
    }
}

/// The authorization servers that a server names; none if it publishes no metadata.
pub(crate) async fn issuers(
    asker: &Asker,
    server: &Address,
    challenge: &Challenge,
) -> Result<Vec<String>, Error> {
    let resource = resource_of(asker, server, challenge).await?;
    Ok(resource.map(|resource| resource.authorization_servers).unwrap_or_default())
}

/// MCP 2025-03-26: without metadata of the resource, the authorization server is at the server's own origin.
async fn fallback(asker: &Asker, server: &Address, pinned: Option<&str>) -> Result<Discovered, Error> {
    let origin = server.origin();
    if let Some(pinned) = pinned.filter(|pinned| *pinned != origin) {
        let words =
            format_args!("the server at {server} names no authorization server, but {pinned} is configured");
        return Err(Error::new(ErrorKind::Metadata, words));
    }
    let address = Address::found(&origin, "the authorization server", server)?;
    let found = issuer_of(asker, server, &address, &origin).await?;
    let is_guess = found.is_none();
    let issuer = found.unwrap_or_else(|| Issuer::by_default(&origin));
    let resource = format!("{}{}", server.origin(), server.path());
    Ok(Discovered { resource, resource_scopes: None, issuer, is_guess })
}

async fn resource_of(
    asker: &Asker,
    server: &Address,
    challenge: &Challenge,
) -> Result<Option<Resource>, Error> {
    for place in resource_places(server, challenge.resource_metadata.as_deref()) {
        let address = Address::found(&place, "the protected resource's metadata", server)?;
        if let Found::Here(resource) = get::<Resource>(asker, &address).await? {
            return Ok(Some(resource));
        }
    }
    Ok(None)
}

/// The first that can be used: nothing says which is better.
fn choose<'a>(server: &Address, named: &'a [String], pinned: Option<&str>) -> Result<&'a str, Error> {
    let fits = |issuer: &&String| match pinned {
        Some(pinned) => issuer.as_str() == pinned,
        None => Address::found(issuer, "the authorization server", server).is_ok(),
    };
    if let Some(issuer) = named.iter().take(16).find(fits) {
        return Ok(issuer);
    }
    let words = match (named.first(), pinned) {
        (None, _) => format!("the server at {server} names no authorization server"),
        (Some(_), Some(pinned)) => format!(
            "the server at {server} does not name the authorization server {pinned} that is configured for it (it names {}); nothing was sent there. If the server has moved, register a client there, and change client_id and issuer in the config",
            named.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
        (Some(first), None) => {
            return Err(Address::found(first, "the authorization server", server)
                .err()
                .unwrap_or_else(|| Error::new(ErrorKind::Metadata, "no authorization server can be used")));
        }
    };
    Err(Error::new(ErrorKind::Metadata, words))
}

/// The metadata of an authorization server, as one that `server` leads to.
pub(crate) async fn issuer_of(
    asker: &Asker,
    server: &Address,
    address: &Address,
    named: &str,
) -> Result<Option<Issuer>, Error> {
    for place in issuer_places(address) {
        let place = Address::found(&place, "the authorization server", server)?;
        let Found::Here(issuer) = get::<Issuer>(asker, &place).await? else { continue };
        // RFC 8414, 3.3: identical, not equivalent. Else somebody speaks for another.
        if issuer.issuer != named {
            let words = format_args!(
                "the metadata at {place} belongs to another authorization server: it names the issuer {}, and {named} was expected",
                issuer.issuer
            );
            return Err(Error::new(ErrorKind::Metadata, words));
        }
        return Ok(Some(issuer));
    }
    Ok(None)
}

/// One document. A redirect that is not followed and every 4xx mean that it is not here.
pub(crate) async fn get<T: DeserializeOwned>(asker: &Asker, from: &Address) -> Result<Found<T>, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let reply = match asker.ask(Method::GET, from.endpoint(), headers, Bytes::new(), EACH).await {
        Ok(reply) => reply,
        Err(broken) if broken.phase == linetender_wire::http::Phase::Redirect => return Ok(Found::Nothing),
        Err(broken) => {
            let words = format_args!("{} could not be reached: {broken}", from.origin());
            return Err(Error::new(ErrorKind::Unreachable, words));
        }
    };
    read(&reply, from)
}

fn read<T: DeserializeOwned>(reply: &Reply, from: &Address) -> Result<Found<T>, Error> {
    if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
        let words = format_args!("{from} answered with status {}", reply.status.as_u16());
        return Err(
            Error::new(ErrorKind::Unreachable, words).after(crate::token::retry_after(&reply.headers))
        );
    }
    if reply.status != StatusCode::OK || reply.body.len() > metadata::LONGEST {
        return Ok(Found::Nothing);
    }
    match serde_json::from_slice(&reply.body) {
        Ok(found) => Ok(Found::Here(found)),
        // A page for people, at an address that means nothing to that server.
        Err(_) if !reply.body.trim_ascii_start().starts_with(b"{") => Ok(Found::Nothing),
        Err(error) => {
            let words = format_args!("the metadata at {from} cannot be read: {error}");
            Err(Error::new(ErrorKind::Metadata, words))
        }
    }
}

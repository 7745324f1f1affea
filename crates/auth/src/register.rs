//! As whom linetender presents itself to an authorization server.
//!
//! MCP 2026-07-28, authorization, "Client Registration Approaches": a client that was registered by hand, then a client ID
//! metadata document, then dynamic registration, then the person is asked.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method as Verb, StatusCode};
use linetender_wire::Redacted;
use linetender_wire::http::Asker;
use serde::Deserialize;
use serde_json::json;

use crate::address::Address;
use crate::client::{Client, Grant};
use crate::discover::Discovered;
use crate::error::{Error, ErrorKind, quoted};
use crate::secret::Secret;
use crate::store::record::{ClientRecord, Method, Origin, now};

/// How long a registration may take.
const WITHIN: Duration = Duration::from_secs(10);

/// The longest client id that is taken.
const LONGEST: usize = 4096;

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

/// The client that needs nothing from the authorization server.
pub(crate) fn without_asking(found: &Discovered, config: &Client) -> Result<Option<ClientRecord>, Error> {
    let listed = found.issuer.token_endpoint_auth_methods_supported.as_deref();
    let client = |id: &str, secret: Option<Secret>, method, origin| ClientRecord {
        id: id.to_owned(),
        secret,
        secret_expires_at: None,
        method,
        origin,
        redirect_uri: None,
        is_gone: false,
    };
    if let Some(id) = &config.id {
        check_issuer(found, config)?;
        let method = match &config.grant {
            Grant::MachineKey(_) => Method::PrivateKeyJwt,
            Grant::Person | Grant::Machine => method(listed, config.secret.is_some()),
        };
        return Ok(Some(client(id, config.secret.clone(), method, Origin::Configured)));
    }
    if config.grant.is_machine() {
        return Err(Error::new(
            ErrorKind::Config,
            "a machine logs in with a client that was registered for it: configure its client_id",
        ));
    }
    let document =
        config.metadata_url.as_deref().filter(|_| found.issuer.client_id_metadata_document_supported);
    Ok(document.map(|url| client(url, None, Method::None, Origin::Document)))
}

/// A secret goes to the authorization server that the user named for it. The MCP server names one too, and if that counted it
/// could have the secret sent wherever it likes.
fn check_issuer(found: &Discovered, config: &Client) -> Result<(), Error> {
    let named = &found.issuer.issuer;
    if !config.has_secret() || config.issuer.as_ref() == Some(named) {
        return Ok(());
    }
    let rule = "linetender sends a configured secret or private key only to the authorization server that is configured beside it";
    let words = if found.is_guess {
        format!(
            "{rule}, and none is. This server names none either: put issuer = \"https://…\" beside client_id, with the address of the authorization server at which that client is registered"
        )
    } else {
        format!(
            "{rule}, and none is. This server names {named}: if the client is registered there, put issuer = \"{named}\" beside client_id"
        )
    };
    Err(Error::new(ErrorKind::Config, words))
}

/// How a client proves who it is, by what the authorization server lists.
fn method(listed: Option<&[String]>, has_secret: bool) -> Method {
    let lists = |name: &str| listed.is_some_and(|listed| listed.iter().any(|method| method == name));
    match (has_secret, listed) {
        (false, _) => Method::None,
        // RFC 8414, 2: whoever lists nothing supports client_secret_basic.
        (true, None) => Method::ClientSecretBasic,
        (true, Some(_)) if lists("client_secret_basic") => Method::ClientSecretBasic,
        (true, Some(_)) if lists("client_secret_post") => Method::ClientSecretPost,
        (true, Some(_)) => Method::None,
    }
}

/// Registers linetender, if the authorization server lets anybody do that.
pub(crate) async fn register(
    asker: &Asker,
    server: &Address,
    found: &Discovered,
    redirect_uri: &str,
) -> Result<ClientRecord, Error> {
    let issuer = &found.issuer;
    let Some(endpoint) = &issuer.registration_endpoint else {
        let words = format_args!(
            "the authorization server {} does not let programs register themselves: register linetender there by hand (as a native application, redirect URI {redirect_uri}), and configure its client_id for this server",
            issuer.issuer
        );
        return Err(Error::new(ErrorKind::Client, words));
    };
    let endpoint = Address::found(endpoint, "the registration endpoint", server)?;
    let mut grants = vec!["authorization_code"];
    if issuer.supports_refresh() {
        grants.push("refresh_token");
    }
    let wish = json!({
        "client_name": "linetender",
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted(issuer.token_endpoint_auth_methods_supported.as_deref()),
    });
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let asked = asker.ask(Verb::POST, endpoint.endpoint(), headers, wish.to_string().into(), WITHIN).await;
    let reply = asked.map_err(|broken| {
        let words = format_args!("the authorization server {} could not be reached: {broken}", issuer.issuer);
        Error::new(ErrorKind::Unreachable, words)
    })?;
    if reply.status != StatusCode::CREATED && reply.status != StatusCode::OK {
        let body = Redacted::head(&String::from_utf8_lossy(&reply.body), 200).to_string();
        let shown = quoted(&body, None);
        let is_passing = reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS;
        let kind = if is_passing && !found.is_guess { ErrorKind::Unreachable } else { ErrorKind::Client };
        let words = format_args!(
            "the authorization server {} did not register linetender (status {}); {shown}",
            issuer.issuer,
            reply.status.as_u16()
        );
        return Err(Error::new(kind, words));
    }
    let registered = serde_json::from_slice::<Registered>(&reply.body).ok();
    let registered =
        registered.filter(|client| !client.client_id.is_empty() && client.client_id.len() <= LONGEST);
    let registered = registered.ok_or_else(|| {
        let words = format_args!(
            "the authorization server {} answered a registration with something else",
            issuer.issuer
        );
        Error::new(ErrorKind::Client, words)
    })?;
    Ok(of(registered, issuer.token_endpoint_auth_methods_supported.as_deref(), redirect_uri))
}

fn of(registered: Registered, listed: Option<&[String]>, redirect_uri: &str) -> ClientRecord {
    let has_secret = registered.client_secret.is_some();
    let method = match registered.token_endpoint_auth_method.as_deref() {
        Some("none") => Method::None,
        Some("client_secret_basic") if has_secret => Method::ClientSecretBasic,
        Some("client_secret_post") if has_secret => Method::ClientSecretPost,
        _ => method(listed, has_secret),
    };
    ClientRecord {
        id: registered.client_id,
        secret: registered.client_secret,
        // Zero means never.
        secret_expires_at: registered.client_secret_expires_at.filter(|at| *at > 0),
        method,
        origin: Origin::Registered,
        redirect_uri: Some(redirect_uri.to_owned()),
        is_gone: false,
    }
}

/// A program on a person's machine keeps no secret from that person, so none is wanted where that is allowed.
fn wanted(listed: Option<&[String]>) -> &'static str {
    let known = ["none", "client_secret_basic", "client_secret_post"];
    let Some(listed) = listed else { return "none" };
    known.into_iter().find(|method| listed.iter().any(|name| name == method)).unwrap_or("none")
}

/// Whether a client that registered itself can be used again.
pub(crate) fn is_usable(client: &ClientRecord) -> bool {
    let is_in_time = client.secret_expires_at.is_none_or(|at| now().saturating_add(300) < at);
    client.origin == Origin::Registered && is_in_time && !client.is_gone
}

#[cfg(test)]
mod tests {
    use super::{Registered, is_usable, method, of, wanted};
    use crate::secret::Secret;
    use crate::store::record::Method;

    fn listed(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_method_is_one_that_the_authorization_server_lists() {
        for (names, has_secret, expected) in [
            (Some(&["none"][..]), true, Method::None),
            (Some(&["client_secret_post"]), true, Method::ClientSecretPost),
            (Some(&["client_secret_post", "client_secret_basic"]), true, Method::ClientSecretBasic),
            (Some(&["client_secret_post"]), false, Method::None),
            (None, true, Method::ClientSecretBasic),
            (None, false, Method::None),
        ] {
            let names = names.map(listed);
            assert_eq!(method(names.as_deref(), has_secret), expected, "{names:?} {has_secret}");
        }
        assert_eq!(wanted(Some(&listed(&["client_secret_post", "none"]))), "none");
        assert_eq!(wanted(Some(&listed(&["private_key_jwt", "client_secret_post"]))), "client_secret_post");
    }

    #[test]
    fn what_the_registration_says_counts_and_an_expired_secret_is_not_used() {
        let registered = |said: Option<&str>, expires| Registered {
            client_id: "c".to_owned(),
            client_secret: Some(Secret::new("a client's secret")),
            client_secret_expires_at: expires,
            token_endpoint_auth_method: said.map(str::to_owned),
        };
        let names = listed(&["none", "client_secret_basic"]);
        let client = of(registered(Some("none"), Some(0)), Some(&names), "r");
        assert!(client.method == Method::None && is_usable(&client));
        assert_eq!(
            of(registered(Some("client_secret_post"), None), Some(&names), "r").method,
            Method::ClientSecretPost
        );
        assert_eq!(of(registered(None, None), Some(&names), "r").method, Method::ClientSecretBasic);
        assert!(!is_usable(&of(registered(None, Some(1)), None, "r")));
    }
}

//! Logins by a person, from the challenge to the stored token, and their end.

use std::sync::Arc;
use std::time::Duration;

use linetender::{Keys as _, NoKey, Refused};
use linetender_auth::{Client, ErrorKind, LoggedOut, Login, LoginKeys, Standing, list, logout_through};
use serde_json::json;

use crate::browser::{self, BACK, Somebody};
use crate::provider::{Provider, asker, call};

/// What the line says of a refusal.
pub(crate) async fn refused(provider: &Provider, key: Option<linetender::Key>) -> Refused {
    let headers = key.as_ref().map(|key| (*key.headers).clone()).unwrap_or_default();
    let reply = call(&provider.at.mcp, &headers).await;
    let challenge = reply.headers["www-authenticate"].to_str().unwrap().into();
    Refused { key, status: reply.status.as_u16(), challenge }
}

pub(crate) fn words(no: &NoKey) -> String {
    match no {
        NoKey::Login { words } | NoKey::Later { words, .. } => words.to_string(),
    }
}

#[tokio::test]
async fn a_login_is_found_by_every_process_and_ends_with_logout() {
    let Some(provider) = Provider::start("logout") else { return };
    let keys = provider.keys();
    assert!(
        keys.clone().key(None).await.unwrap().is_none(),
        "without a login the server is tried without a key"
    );
    let challenge = refused(&provider, None).await;
    let no = keys.clone().key(Some(challenge)).await.unwrap_err();
    assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains("linetender login test"), "{no:?}");

    let mut changes = keys.changes();
    provider.login().await;
    tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.expect("seen soon").unwrap();
    let key = keys.clone().key(None).await.unwrap().unwrap();
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
    assert!(key.renew_at.is_some() && !format!("{key:?}").contains("Bearer"));

    let listed = list(&provider.store()).unwrap();
    let [account] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(
        (account.server.as_str(), account.issuer.as_str()),
        (provider.at.mcp.as_str(), provider.at.issuer.as_str())
    );
    assert_eq!((&account.standing, account.client_origin), (&Standing::Renews, "registered"));
    // What the challenge names, and what keeps the login: the authorization server lists it.
    assert_eq!(account.scopes, ["mcp:read", "offline_access"]);

    let out = logout_through(&provider.store(), &provider.at.mcp, &asker()).await.unwrap();
    assert!(matches!(out, LoggedOut::Revoked), "{out:?}");
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 401, "revoked");
    let no = keys.clone().key(None).await.unwrap_err();
    assert!(
        matches!(no, NoKey::Login { .. }) && words(&no).contains("logged out"),
        "whoever had a key has none now: {no:?}"
    );
    assert!(
        provider.keys().key(None).await.unwrap().is_none() && list(&provider.store()).unwrap().is_empty()
    );
    let again = logout_through(&provider.store(), &provider.at.mcp, &asker()).await.unwrap();
    assert!(matches!(again, LoggedOut::Nobody), "{again:?}");
}

#[tokio::test]
async fn a_logout_without_the_authorization_server_deletes_all_the_same() {
    let Some(mut provider) = Provider::start("logout-down") else { return };
    provider.login().await;
    provider.kill();
    let out = logout_through(&provider.store(), &provider.at.mcp, &asker()).await.unwrap();
    assert!(matches!(out, LoggedOut::NotRevoked(_)), "{out:?}");
    assert!(list(&provider.store()).unwrap().is_empty());
}

#[tokio::test]
async fn a_browser_comes_back_to_the_loopback_and_strangers_do_not_disturb_it() {
    let Some(provider) = Provider::start("loopback") else { return };
    let login =
        || Login::new(&provider.store(), &provider.at.mcp, Client::default()).unwrap().through(asker());
    let prepared = login().prepare(None).await.unwrap();
    let loopback = prepared.listen().await.unwrap();
    let pending = prepared.start(loopback.redirect_uri()).await.unwrap();
    let origin = loopback.redirect_uri().strip_suffix("/callback").unwrap().to_owned();
    let (url, back) = (pending.url().to_owned(), loopback.redirect_uri().to_owned());
    let person = async move {
        let silent = tokio::net::TcpStream::connect(origin.strip_prefix("http://").unwrap()).await.unwrap();
        for stranger in
            ["/favicon.ico", "/callback?code=stolen&state=guessed", "/callback?error=x&error_description=y"]
        {
            let at = linetender_wire::http::Endpoint::new(&format!("{origin}{stranger}")).unwrap();
            let reply = asker().look(&at, http::HeaderMap::new(), Duration::from_secs(20)).await.unwrap();
            assert_eq!(reply.status, 404, "{stranger}");
        }
        let redirected = browser::visit(&url, &back).await.unwrap();
        let at = linetender_wire::http::Endpoint::new(&redirected).unwrap();
        let reply = asker().look(&at, http::HeaderMap::new(), Duration::from_secs(20)).await.unwrap();
        assert_eq!(reply.status, 200);
        assert!(String::from_utf8_lossy(&reply.body).contains("close this window"));
        drop(silent);
    };
    let (redirected, ()) = tokio::join!(loopback.wait(&pending, Duration::from_secs(60)), person);
    let done = pending.finish(&redirected.unwrap()).await.unwrap();
    assert!(done.stays && done.issuer == provider.at.issuer);

    // The next login presents the same client, on the same port.
    drop(loopback);
    let prepared = login().prepare(None).await.unwrap();
    let loopback = prepared.listen().await.unwrap();
    let pending = prepared.start(loopback.redirect_uri()).await.unwrap();
    let redirected = browser::visit(pending.url(), loopback.redirect_uri()).await.unwrap();
    pending.finish(&redirected).await.unwrap();
    assert_eq!(provider.counts().await.registered, 1);
}

#[tokio::test]
async fn an_answer_from_another_issuer_or_login_gets_no_token() {
    let Some(provider) = Provider::start("mixed-up") else { return };
    let start = async || {
        let login =
            Login::new(&provider.store(), &provider.at.mcp, Client::default()).unwrap().through(asker());
        login.prepare(None).await.unwrap().start(BACK).await.unwrap()
    };
    let pending = start().await;
    let back = browser::visit(pending.url(), BACK).await.unwrap();
    let other = start().await;
    assert_eq!(other.finish(&back).await.unwrap_err().kind(), ErrorKind::Foreign);
    let (before, _) = back.split_once("iss=").unwrap();
    let evil = format!("{before}iss=https%3A%2F%2Fevil.example.com");
    assert_eq!(pending.finish(&evil).await.unwrap_err().kind(), ErrorKind::Foreign);
    assert_eq!(provider.counts().await.token, 0);
}

#[tokio::test]
async fn more_scopes_are_asked_for_together_with_the_old_ones_and_at_most_twice() {
    let Some(provider) = Provider::start("step-up") else { return };
    let keys = LoginKeys::new(&provider.store(), &provider.at.mcp, Client::default(), "x").unwrap();
    let keys = Arc::new(keys.through(asker()).visited_by(Arc::new(Somebody)));
    let mut key = keys.clone().key(Some(refused(&provider, None).await)).await.unwrap();
    provider.set(json!({ "scope": "mcp:write" })).await;
    key = keys.clone().key(Some(refused(&provider, key).await)).await.unwrap();
    assert_eq!(call(&provider.at.mcp, &key.as_ref().unwrap().headers).await.status, 200);
    assert_eq!(list(&provider.store()).unwrap()[0].scopes, ["mcp:read", "offline_access", "mcp:write"]);
    // A server that is never content.
    provider.set(json!({ "scope": "mcp:write mcp:admin" })).await;
    let mut logins = 0;
    let no = loop {
        match keys.clone().key(Some(refused(&provider, key).await)).await {
            Ok(next) => key = next,
            Err(no) => break no,
        }
        logins += 1;
        assert!(logins < 5);
    };
    assert!(
        logins <= 1 && matches!(no, NoKey::Login { .. }) && words(&no).contains("mcp:admin"),
        "{logins} {no:?}"
    );
}

#[tokio::test]
async fn a_login_after_a_demand_for_scopes_asks_for_them() {
    let Some(provider) = Provider::start("wanted") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "scope": "mcp:write" })).await;
    let no = keys.clone().key(Some(refused(&provider, key).await)).await.unwrap_err();
    assert!(words(&no).contains("mcp:write") && words(&no).contains("linetender login test"), "{no:?}");
    let standing = list(&provider.store()).unwrap()[0].standing.clone();
    assert_eq!(standing, Standing::WantsScopes { scopes: vec!["mcp:write".to_owned()] });
    provider.login().await;
    let key = keys.clone().key(None).await.unwrap().unwrap();
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
}

#[tokio::test]
async fn another_issuer_never_sees_what_the_first_one_gave() {
    let (Some(first), Some(second)) = (Provider::start("issuer-1"), Provider::start("issuer-2")) else {
        return;
    };
    first.login().await;
    let before = first.credential()["client"]["id"].clone();
    first.set(json!({ "servers": [second.at.issuer] })).await;
    first.login().await;
    assert_eq!(second.counts().await.registered, 1);
    let accounts = list(&first.store()).unwrap();
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0].issuer, second.at.issuer);
    assert_ne!(before, accounts[0].client_id.as_str());
    // Back again: the client that is registered with the first one is still good there.
    first.set(json!({ "servers": null })).await;
    first.login().await;
    assert_eq!(
        (list(&first.store()).unwrap()[0].issuer.clone(), first.counts().await.registered),
        (first.at.issuer.clone(), 1)
    );
}

/// What is on the disk of refresh tokens.
fn refresh_tokens(provider: &Provider) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(provider.folder.join("credentials")).unwrap().flatten() {
        let text = std::fs::read(entry.path()).unwrap();
        let credential: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let grants = credential["grants"].as_object().unwrap();
        found.extend(grants.values().filter_map(|grant| grant["refresh"].as_str().map(str::to_owned)));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn logins_that_end_at_the_same_moment_all_succeed_and_one_logout_ends_them_all() {
    let Some(provider) = Provider::start("at-once") else { return };
    for round in 0..10 {
        let mut finishing = tokio::task::JoinSet::new();
        for port in 9..12 {
            let back = format!("http://127.0.0.1:{port}/callback");
            let login = Login::new(&provider.store(), &provider.at.mcp, Client::default()).unwrap();
            let prepared = login.through(asker()).registering_anew().prepare(None).await.unwrap();
            let pending = prepared.start(&back).await.unwrap();
            let redirected = browser::visit(pending.url(), &back).await.unwrap();
            finishing.spawn(async move { pending.finish(&redirected).await });
        }
        for done in finishing.join_all().await {
            assert!(done.is_ok(), "round {round}: {done:?}");
        }
        assert_eq!(list(&provider.store()).unwrap().len(), 1);
        assert!(provider.keys().key(None).await.unwrap().is_some());
        let out = logout_through(&provider.store(), &provider.at.mcp, &asker()).await.unwrap();
        assert!(matches!(out, LoggedOut::Revoked), "{out:?}");
        assert_eq!(refresh_tokens(&provider), Vec::<String>::new(), "round {round}");
    }
}

#[tokio::test]
async fn a_login_with_another_client_leaves_nothing_of_one_that_is_being_renewed() {
    let Some(provider) = Provider::start("leftover") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    let before = provider.set(json!({ "refuse_tokens": true, "delay": 5000 })).await;
    let renewing = tokio::spawn(keys.key(Some(refused(&provider, key).await)));
    while provider.counts().await.token == before.token {
        tokio::task::yield_now().await;
    }
    provider.set(json!({ "delay": 0 })).await;
    let login = Login::new(&provider.store(), &provider.at.mcp, Client::default()).unwrap();
    let prepared = login.through(asker()).registering_anew().prepare(None).await.unwrap();
    let pending = prepared.start(BACK).await.unwrap();
    let redirected = browser::visit(pending.url(), BACK).await.unwrap();
    pending.finish(&redirected).await.unwrap();
    let key = renewing.await.unwrap().unwrap().unwrap();
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
    assert_eq!(refresh_tokens(&provider).len(), 1);
    assert_eq!(provider.counts().await.revoked, 1);
    logout_through(&provider.store(), &provider.at.mcp, &asker()).await.unwrap();
    assert_eq!((refresh_tokens(&provider).len(), provider.counts().await.revoked), (0, 2));
}

#[tokio::test]
async fn a_browser_gets_through_however_many_connections_say_nothing() {
    let Some(provider) = Provider::start("flood") else { return };
    let login = Login::new(&provider.store(), &provider.at.mcp, Client::default()).unwrap().through(asker());
    let prepared = login.prepare(None).await.unwrap();
    let loopback = prepared.listen().await.unwrap();
    let pending = prepared.start(loopback.redirect_uri()).await.unwrap();
    let redirected = browser::visit(pending.url(), loopback.redirect_uri()).await.unwrap();
    let at = loopback.redirect_uri().strip_prefix("http://").unwrap().strip_suffix("/callback").unwrap();
    let person = async {
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(tokio::net::TcpStream::connect(at).await.unwrap());
        }
        let to = linetender_wire::http::Endpoint::new(&redirected).unwrap();
        let reply = asker().look(&to, http::HeaderMap::new(), Duration::from_secs(4)).await.unwrap();
        assert_eq!(reply.status, 200);
        drop(silent);
    };
    let (came, ()) = tokio::join!(loopback.wait(&pending, Duration::from_secs(60)), person);
    pending.finish(&came.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_token_that_a_server_calls_a_scope_is_neither_kept_nor_shown() {
    let Some(provider) = Provider::start("scope-token") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    let token = provider.grant()["access"].as_str().unwrap().to_owned();
    provider.set(json!({ "scope": format!("mcp:write {token}") })).await;
    let no = keys.key(Some(refused(&provider, key).await)).await.unwrap_err();
    assert!(words(&no).contains("mcp:write") && !words(&no).contains(&token), "{no:?}");
    assert_eq!(provider.grant()["wanted"], json!(["mcp:write"]));
}

//! Machines that log in by themselves.

use std::sync::Arc;

use linetender::{Keys as _, NoKey, Refused};
use linetender_auth::{Algorithm, Client, Grant, LoginKeys, PrivateKey, Secret};
use serde_json::json;

use crate::logins::{refused, words};
use crate::provider::{Provider, asker, call};
use crate::scripted::Scripted;

const SECRET: &str = "the-secret:of the+machine%2";

fn with_secret(provider: &Provider, secret: &str) -> Client {
    let (id, secret) = (Some("machine".to_owned()), Some(Secret::from(secret)));
    Client {
        id,
        secret,
        issuer: Some(provider.at.issuer.clone()),
        grant: Grant::Machine,
        ..Client::default()
    }
}

fn with_key(provider: &Provider, id: &str, pem: &str, algorithm: Algorithm) -> Client {
    let key = PrivateKey { pem: Secret::from(pem), algorithm, key_id: None };
    let issuer = Some(provider.at.issuer.clone());
    Client { id: Some(id.to_owned()), issuer, grant: Grant::MachineKey(key), ..Client::default() }
}

#[tokio::test]
async fn a_machine_gets_tokens_by_its_secret_or_its_key() {
    let Some(provider) = Provider::start("machine") else { return };
    for client in [
        with_secret(&provider, SECRET),
        with_key(&provider, "machine-es", &provider.at.es256, Algorithm::Es256),
        with_key(&provider, "machine-es", &provider.at.sec1, Algorithm::Es256),
        with_key(&provider, "machine-rs", &provider.at.rs256, Algorithm::Rs256),
    ] {
        let _ = std::fs::remove_dir_all(&provider.folder);
        let keys = [provider.keys_as(client.clone()), provider.keys_as(client.clone())];
        let before = provider.counts().await;
        let key = keys[0].clone().key(Some(refused(&provider, None).await)).await.unwrap();
        assert_eq!(call(&provider.at.mcp, &key.as_ref().unwrap().headers).await.status, 200);
        assert_eq!(keys[1].clone().key(None).await.unwrap().unwrap().headers, key.as_ref().unwrap().headers);
        // It is refused in two processes at once.
        provider.set(json!({ "refuse_tokens": true })).await;
        let refusal = refused(&provider, key).await;
        let (one, other) =
            tokio::join!(keys[0].clone().key(Some(refusal.clone())), keys[1].clone().key(Some(refusal)));
        assert_eq!(one.unwrap().unwrap().headers, other.unwrap().unwrap().headers);
        // It ends soon.
        provider.age(3500);
        keys[0].clone().key(None).await.unwrap();
        assert_eq!(provider.counts().await.token, before.token + 3, "{:?}", client.id);
    }
}

#[tokio::test]
async fn a_machine_that_lacks_a_scope_asks_for_it() {
    let Some(provider) = Provider::start("machine-scope") else { return };
    let keys = provider.keys_as(with_secret(&provider, SECRET));
    let key = keys.clone().key(Some(refused(&provider, None).await)).await.unwrap();
    provider.set(json!({ "scope": "mcp:read mcp:write" })).await;
    let key = keys.clone().key(Some(refused(&provider, key).await)).await.unwrap();
    assert_eq!(call(&provider.at.mcp, &key.as_ref().unwrap().headers).await.status, 200);
    // The next token has it too, although nobody names it then.
    provider.set(json!({ "refuse_tokens": true, "scope": "mcp:read" })).await;
    let key = keys.clone().key(Some(refused(&provider, key).await)).await.unwrap();
    provider.set(json!({ "scope": "mcp:read mcp:write" })).await;
    assert_eq!(call(&provider.at.mcp, &key.unwrap().headers).await.status, 200);
}

#[tokio::test]
async fn a_machine_with_a_wrong_secret_is_told_to_check_its_configuration() {
    let Some(provider) = Provider::start("machine-wrong") else { return };
    let keys = provider.keys_as(with_secret(&provider, "not-the-secret-at-all"));
    let no = keys.key(Some(refused(&provider, None).await)).await.unwrap_err();
    let said = words(&no);
    assert!(matches!(no, NoKey::Login { .. }) && said.contains("invalid_client"), "{said}");
    assert!(
        said.contains("client_id") && !said.contains("linetender login") && !said.contains("not-the-secret"),
        "{said}"
    );
    let bad =
        Arc::clone(&provider.keys_as(with_key(&provider, "machine-es", "no PEM at all", Algorithm::Es256)));
    let no = bad.key(Some(refused(&provider, None).await)).await.unwrap_err();
    assert!(words(&no).contains("private key"), "{no:?}");
}

#[tokio::test]
async fn processes_of_a_machine_that_start_together_share_one_token() {
    let Some(provider) = Provider::start("machine-start") else { return };
    let refusal = refused(&provider, None).await;
    let client = with_secret(&provider, SECRET);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..5 {
        asking.spawn(provider.keys_as(client.clone()).key(Some(refusal.clone())));
    }
    for key in asking.join_all().await {
        assert_eq!(call(&provider.at.mcp, &key.unwrap().unwrap().headers).await.status, 200);
    }
    assert_eq!(provider.counts().await.token, 1);
}

#[tokio::test]
async fn a_secret_goes_to_the_configured_issuer_whatever_the_server_names() {
    let (Some(own), Some(other)) = (Provider::start("secret-own"), Provider::start("secret-other")) else {
        return;
    };
    for client in [with_secret(&own, SECRET), with_key(&own, "machine-es", &own.at.es256, Algorithm::Es256)] {
        own.set(json!({ "servers": null })).await;
        let keys = own.keys_as(client.clone());
        let key = keys.clone().key(Some(refused(&own, None).await)).await.unwrap();
        own.set(json!({ "servers": [other.at.issuer], "refuse_tokens": true })).await;
        let no = keys.clone().key(Some(refused(&own, key).await)).await.unwrap_err();
        let said = words(&no);
        assert!(matches!(no, NoKey::Login { .. }) && !said.contains("linetender login"), "{no:?}");
        assert!(said.contains(&own.at.issuer) && said.contains(&other.at.issuer), "{said}");
        assert!(said.contains("change client_id and issuer"), "{said}");

        // Without one it goes nowhere: not to the one that gave it out, and not to another.
        for named in [&own, &other] {
            own.set(json!({ "servers": [named.at.issuer] })).await;
            let _ = std::fs::remove_dir_all(&own.folder);
            let before = (own.counts().await.token, other.counts().await.token);
            let keys = own.keys_as(Client { issuer: None, ..client.clone() });
            let no = keys.key(Some(refused(&own, None).await)).await.unwrap_err();
            let advice = format!("put issuer = \"{}\" beside client_id", named.at.issuer);
            assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains(&advice), "{no:?}");
            assert_eq!((own.counts().await.token, other.counts().await.token), before);
        }
    }
    assert_eq!(other.counts().await.token, 0);
}

#[tokio::test]
async fn a_secret_never_goes_to_a_server_that_names_no_authorization_server() {
    let Some(own) = Provider::start("secret-guess") else { return };
    let web = Scripted::start().await;
    web.put("POST /mcp", 401, "www-authenticate: Bearer\r\n", &json!({}));
    web.put(
        "POST /token",
        200,
        "",
        &json!({ "access_token": "a-token-of-the-server", "token_type": "bearer" }),
    );
    let with_issuer = with_secret(&own, SECRET);
    for client in [Client { issuer: None, ..with_issuer.clone() }, with_issuer] {
        let keys = LoginKeys::new(&own.store(), &format!("{}/mcp", web.origin), client, "x").unwrap();
        let refusal = Refused { key: None, status: 401, challenge: "Bearer".into() };
        let no = Arc::new(keys.through(asker())).key(Some(refusal)).await.unwrap_err();
        assert!(matches!(no, NoKey::Login { .. }), "{no:?}");
        assert!(!web.asked().contains(&"POST /token".to_owned()));
    }
}

#[tokio::test]
async fn another_issuer_in_the_config_gets_tokens_of_its_own() {
    let (Some(first), Some(second)) = (Provider::start("issuer-own"), Provider::start("issuer-next")) else {
        return;
    };
    first.keys_as(with_secret(&first, SECRET)).key(Some(refused(&first, None).await)).await.unwrap();
    first.set(json!({ "servers": [second.at.issuer] })).await;
    let keys = first.keys_as(with_secret(&second, SECRET));
    assert!(keys.clone().key(None).await.unwrap().is_none(), "a token of the first is of no use");
    assert!(keys.key(Some(refused(&first, None).await)).await.unwrap().is_some());
    assert_eq!(second.counts().await.token, 1);
}

#[tokio::test]
async fn a_machine_that_was_let_in_before_is_tried_again_before_anybody_is_called() {
    let Some(provider) = Provider::start("machine-again") else { return };
    let keys = provider.keys_as(with_secret(&provider, SECRET));
    let key = keys.clone().key(Some(refused(&provider, None).await)).await.unwrap();
    provider.set(json!({ "refuse_tokens": true, "token": "unknown-client" })).await;
    let refusal = refused(&provider, key).await;
    for _ in 0..2 {
        let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
        assert!(matches!(no, NoKey::Later { .. }) && words(&no).contains("invalid_client"), "{no:?}");
    }
    let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
    assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains("check the client_id"), "{no:?}");
    provider.set(json!({ "token": "ok" })).await;
    let key = keys.key(Some(refusal)).await.unwrap();
    assert_eq!(call(&provider.at.mcp, &key.unwrap().headers).await.status, 200);
}

//! Machines that log in by themselves.

use std::sync::Arc;

use linetender::{Keys as _, NoKey};
use linetender_auth::{Algorithm, Client, Grant, PrivateKey, Secret};
use serde_json::json;

use crate::logins::{refused, words};
use crate::provider::{Provider, call};

fn with_secret(secret: &str) -> Client {
    let (id, secret) = (Some("machine".to_owned()), Some(Secret::from(secret)));
    Client { id, secret, grant: Grant::Machine, ..Client::default() }
}

fn with_key(id: &str, pem: &str, algorithm: Algorithm) -> Client {
    let key = PrivateKey { pem: Secret::from(pem), algorithm, key_id: None };
    Client { id: Some(id.to_owned()), grant: Grant::MachineKey(key), ..Client::default() }
}

#[tokio::test]
async fn a_machine_gets_tokens_by_its_secret_or_its_key() {
    let Some(provider) = Provider::start("machine") else { return };
    for client in [
        with_secret("the-secret:of the+machine%2"),
        with_key("machine-es", &provider.at.es256, Algorithm::Es256),
        with_key("machine-es", &provider.at.sec1, Algorithm::Es256),
        with_key("machine-rs", &provider.at.rs256, Algorithm::Rs256),
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
    let keys = provider.keys_as(with_secret("the-secret:of the+machine%2"));
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
    let keys = provider.keys_as(with_secret("not-the-secret-at-all"));
    let no = keys.key(Some(refused(&provider, None).await)).await.unwrap_err();
    let said = words(&no);
    assert!(matches!(no, NoKey::Login { .. }) && said.contains("invalid_client"), "{said}");
    assert!(
        said.contains("client_id") && !said.contains("linetender login") && !said.contains("not-the-secret"),
        "{said}"
    );
    let bad = Arc::clone(&provider.keys_as(with_key("machine-es", "no PEM at all", Algorithm::Es256)));
    let no = bad.key(Some(refused(&provider, None).await)).await.unwrap_err();
    assert!(words(&no).contains("private key"), "{no:?}");
}

#[tokio::test]
async fn processes_of_a_machine_that_start_together_share_one_token() {
    let Some(provider) = Provider::start("machine-start") else { return };
    let refusal = refused(&provider, None).await;
    let client = with_secret("the-secret:of the+machine%2");
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..5 {
        asking.spawn(provider.keys_as(client.clone()).key(Some(refusal.clone())));
    }
    for key in asking.join_all().await {
        assert_eq!(call(&provider.at.mcp, &key.unwrap().unwrap().headers).await.status, 200);
    }
    assert_eq!(provider.counts().await.token, 1);
}

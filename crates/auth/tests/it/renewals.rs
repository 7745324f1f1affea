//! Tokens that end, and authorization servers that do not do what they should.

use std::time::{Duration, Instant};

use linetender::{Keys as _, NoKey};
use serde_json::json;

use crate::logins::{refused, words};
use crate::provider::{Provider, call};

#[tokio::test]
async fn fifty_refusals_are_one_token_request() {
    let Some(provider) = Provider::start("fifty") else { return };
    provider.login().await;
    let keys = [provider.keys(), provider.keys(), provider.keys()];
    let key = keys[0].clone().key(None).await.unwrap();
    let before = provider.set(json!({ "refuse_tokens": true })).await;
    let refusal = refused(&provider, key).await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..50 {
        asking.spawn(keys[number % 3].clone().key(Some(refusal.clone())));
    }
    for key in asking.join_all().await {
        assert_eq!(call(&provider.at.mcp, &key.unwrap().unwrap().headers).await.status, 200);
    }
    assert_eq!(provider.counts().await.token, before.token + 1);
}

#[tokio::test]
async fn a_token_that_ends_soon_is_renewed_before_and_once() {
    let Some(provider) = Provider::start("soon") else { return };
    provider.login().await;
    let before = provider.counts().await;
    let keys = [provider.keys(), provider.keys()];
    let first = keys[0].clone().key(None).await.unwrap().unwrap();
    // Of an hour the last two minutes: each process picks its own moment within the first of them.
    let left = first.renew_at.unwrap().duration_since(linetender_wire::wall::wall_clock()).unwrap();
    assert!((3400..=3540).contains(&left.as_secs()), "{left:?}");
    provider.age(3500);
    let (one, other) = tokio::join!(keys[0].clone().key(None), keys[1].clone().key(None));
    let (one, other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
    assert!(one.headers == other.headers && one.headers != first.headers);
    assert_eq!(call(&provider.at.mcp, &one.headers).await.status, 200);
    assert_eq!(provider.counts().await.token, before.token + 1);
    // Far from its end nobody asks.
    keys[0].clone().key(None).await.unwrap();
    assert_eq!(provider.counts().await.token, before.token + 1);
}

#[tokio::test]
async fn a_refusal_to_renew_is_asked_for_once_and_said() {
    let Some(provider) = Provider::start("refusal") else { return };
    provider.login().await;
    let keys = [provider.keys(), provider.keys()];
    let key = keys[0].clone().key(None).await.unwrap();
    let before = provider.set(json!({ "revoke_all": true })).await;
    let refusal = refused(&provider, key).await;
    for keys in &keys {
        let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
        assert!(matches!(no, NoKey::Login { .. }), "{no:?}");
        let said = words(&no);
        assert!(said.contains("invalid_grant") && said.contains("linetender login test"), "{said}");
    }
    assert_eq!(provider.counts().await.token, before.token + 1, "the second process knows");
    // A new login repairs it, in both.
    provider.login().await;
    for keys in keys {
        let key = keys.key(Some(refusal.clone())).await.unwrap().unwrap();
        assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
    }
}

#[tokio::test]
async fn an_authorization_server_in_trouble_costs_no_login() {
    let Some(provider) = Provider::start("trouble") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "refuse_tokens": true })).await;
    let refusal = refused(&provider, key).await;
    for (how, said) in [("fail", "500"), ("nonsense", "something else"), ("busy", "503")] {
        provider.set(json!({ "token": how })).await;
        let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
        let NoKey::Later { words, after } = &no else { panic!("{how}: {no:?}") };
        assert!(words.as_str().contains(said) && !words.as_str().contains("hotel"), "{how}: {words}");
        assert_eq!(*after, (how == "busy").then(|| Duration::from_secs(7)), "{how}");
        assert!(provider.grant()["refresh"].is_string(), "{how}");
    }
    provider.set(json!({ "token": "ok" })).await;
    let key = keys.key(Some(refusal)).await.unwrap().unwrap();
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
    assert!(provider.grant()["intent"].is_null());
}

#[tokio::test]
async fn a_valid_token_goes_on_without_the_authorization_server() {
    let Some(mut provider) = Provider::start("down") else { return };
    provider.login().await;
    provider.kill();
    let keys = provider.keys();
    let first = keys.clone().key(None).await.unwrap().unwrap();
    provider.age(3500);
    let key = keys.clone().key(None).await.unwrap().unwrap();
    assert_eq!(key.headers, first.headers);
    let again = key.renew_at.unwrap().duration_since(linetender_wire::wall::wall_clock()).unwrap();
    assert!(again <= Duration::from_secs(30), "it is tried again soon: {again:?}");
    provider.age(200);
    let no = keys.key(None).await.unwrap_err();
    assert!(matches!(no, NoKey::Later { .. }) && words(&no).contains("could not be asked"), "{no:?}");
    assert!(
        provider.grant()["refresh"].is_string() && provider.grant()["intent"].is_null(),
        "nothing was sent"
    );
}

#[tokio::test]
async fn a_lost_answer_is_said_when_the_old_token_is_refused() {
    let Some(provider) = Provider::start("lost") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "refuse_tokens": true, "token": "swallow" })).await;
    let refusal = refused(&provider, key).await;
    let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
    assert!(matches!(no, NoKey::Later { .. }), "it may have been a hiccup: {no:?}");
    assert_eq!(provider.grant()["intent"]["pid"], std::process::id());
    provider.set(json!({ "token": "ok" })).await;
    let no = keys.key(Some(refusal)).await.unwrap_err();
    let said = words(&no);
    assert!(matches!(no, NoKey::Login { .. }), "{no:?}");
    let pid = std::process::id().to_string();
    assert!(said.contains("before it could store the answer") && said.contains(&pid), "{said}");
}

#[tokio::test]
async fn a_refusal_never_touches_what_somebody_stored_meanwhile() {
    let Some(provider) = Provider::start("newer") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    let before = provider.set(json!({ "refuse_tokens": true, "token": "refuse", "delay": 1000 })).await;
    let refusal = refused(&provider, key).await;
    let asking = tokio::spawn(keys.key(Some(refusal)));
    while provider.counts().await.token == before.token {
        tokio::task::yield_now().await;
    }
    // A program that knows nothing of locks.
    provider.change(|grant| {
        grant["access"] = json!("access-of-somebody-else");
        grant["refresh"] = json!("refresh-of-somebody-else");
    });
    let key = asking.await.unwrap().unwrap().unwrap();
    assert_eq!(key.headers["authorization"], "Bearer access-of-somebody-else");
    let grant = provider.grant();
    assert!(grant["refresh"] == "refresh-of-somebody-else" && grant["ended"].is_null(), "{grant}");
}

#[tokio::test]
async fn a_login_that_has_ended_is_not_tried_again() {
    let Some(provider) = Provider::start("ended") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "revoke_all": true })).await;
    let refusal = refused(&provider, key).await;
    keys.clone().key(Some(refusal)).await.unwrap_err();
    let before = provider.counts().await;
    let no = keys.key(None).await.unwrap_err();
    assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains("invalid_grant"), "{no:?}");
    assert_eq!(provider.counts().await, before);
}

#[tokio::test]
async fn a_client_that_is_no_longer_known_is_registered_again() {
    let Some(provider) = Provider::start("client-gone") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "refuse_tokens": true, "token": "unknown-client" })).await;
    let no = keys.clone().key(Some(refused(&provider, key).await)).await.unwrap_err();
    assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains("registers it again"), "{no:?}");
    provider.set(json!({ "token": "ok" })).await;
    provider.login().await;
    let key = keys.key(None).await.unwrap().unwrap();
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
    assert_eq!(provider.counts().await.registered, 2);
}

#[tokio::test]
async fn a_server_with_another_issuer_says_so_before_a_token_is_renewed() {
    let (Some(first), Some(second)) = (Provider::start("moved-1"), Provider::start("moved-2")) else {
        return;
    };
    first.login().await;
    let keys = first.keys();
    let key = keys.clone().key(None).await.unwrap();
    first.set(json!({ "refuse_tokens": true, "servers": [second.at.issuer] })).await;
    let before = first.counts().await;
    let no = keys.key(Some(refused(&first, key).await)).await.unwrap_err();
    let said = words(&no);
    assert!(matches!(no, NoKey::Login { .. }), "{no:?}");
    assert!(said.contains(&second.at.issuer) && said.contains(&first.at.issuer), "{said}");
    assert_eq!((first.counts().await.token, second.counts().await.token), (before.token, 0));
    assert!(first.grant()["refresh"].is_string());
}

#[tokio::test]
async fn a_refusal_for_one_call_is_not_the_answer_to_another_question() {
    let Some(provider) = Provider::start("questions") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "scope": "mcp:write" })).await;
    let refusal = refused(&provider, key).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (one, other) = (keys.clone().key(Some(refusal.clone())), keys.clone().key(None));
        asking.spawn(async move { one.await.is_err() });
        asking.spawn(async move { other.await.is_ok_and(|key| key.is_some()) });
    }
    assert!(asking.join_all().await.into_iter().all(|is_as_expected| is_as_expected));
}

#[tokio::test]
async fn an_authorization_server_that_repeats_secrets_is_not_repeated() {
    let Some(provider) = Provider::start("echo") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "refuse_tokens": true, "token": "echo" })).await;
    let no = keys.clone().key(Some(refused(&provider, key).await)).await.unwrap_err();
    let shown = format!("{no:?} {keys:?} {:?}", provider.store());
    assert!(shown.contains("invalid_request"), "{shown}");
    for secret in ["access", "refresh"] {
        let secret = provider.grant()[secret].as_str().unwrap().to_owned();
        assert!(!shown.contains(&secret), "{shown}");
    }
    // It was a bad request, not a bad login.
    provider.set(json!({ "token": "ok" })).await;
    assert!(provider.grant()["ended"].is_null() && provider.grant()["intent"].is_null());
}

#[tokio::test]
async fn a_silent_authorization_server_holds_up_nobody_whose_token_is_good() {
    let Some(provider) = Provider::start("silent") else { return };
    provider.login().await;
    let keys = provider.keys();
    let first = keys.clone().key(None).await.unwrap().unwrap();
    provider.set(json!({ "token": "hang" })).await;
    provider.age(3500);
    let began = Instant::now();
    let key = keys.clone().key(None).await.unwrap().unwrap();
    assert!(
        key.headers == first.headers && began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    // Who needs another one waits for the end of that request, and hears of it.
    provider.set(json!({ "refuse_tokens": true })).await;
    let no = keys.key(Some(refused(&provider, Some(key)).await)).await.unwrap_err();
    assert!(matches!(no, NoKey::Later { .. }) && began.elapsed() < Duration::from_secs(60), "{no:?}");
    assert!(provider.grant()["refresh"].is_string());
}

#[tokio::test]
async fn an_answer_that_comes_after_everybody_stopped_waiting_is_stored() {
    let Some(provider) = Provider::start("late") else { return };
    provider.login().await;
    let (keys, other) = (provider.keys(), provider.keys());
    let key = keys.clone().key(None).await.unwrap();
    let before = provider.set(json!({ "refuse_tokens": true, "delay": 12_000 })).await;
    let refusal = refused(&provider, key).await;
    let began = Instant::now();
    let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
    assert!(matches!(no, NoKey::Later { .. }) && words(&no).contains("has not answered yet"), "{no:?}");
    assert!(began.elapsed() < Duration::from_secs(14), "{:?}", began.elapsed());
    // The tokens are made, the old one is taken back, and the answer is still on its way.
    let [one, another] = [keys.clone(), other].map(|keys| tokio::spawn(keys.key(Some(refusal.clone()))));
    for asked in [one, another] {
        let key = asked.await.unwrap().unwrap().unwrap();
        assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
    }
    assert_eq!(provider.counts().await.token, before.token + 1);
    assert!(provider.grant()["intent"].is_null() && provider.grant()["ended"].is_null());
}

#[tokio::test]
async fn a_refusal_with_status_200_is_a_refusal() {
    let Some(provider) = Provider::start("github") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    let before = provider.set(json!({ "refuse_tokens": true, "token": "github" })).await;
    let refusal = refused(&provider, key).await;
    for _ in 0..2 {
        let no = keys.clone().key(Some(refusal.clone())).await.unwrap_err();
        assert!(matches!(no, NoKey::Login { .. }) && words(&no).contains("bad_refresh_token"), "{no:?}");
    }
    assert_eq!(provider.counts().await.token, before.token + 1, "it is over, and not asked again");
}

#[tokio::test]
async fn a_bad_request_is_tried_again_before_anybody_is_called() {
    let Some(provider) = Provider::start("bad-request") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "refuse_tokens": true, "token": "bad-request" })).await;
    let refusal = refused(&provider, key).await;
    let mut later = 0;
    let no = loop {
        match keys.clone().key(Some(refusal.clone())).await.unwrap_err() {
            NoKey::Later { .. } => later += 1,
            no @ NoKey::Login { .. } => break no,
        }
        assert!(later < 5);
    };
    assert!(later == 2 && words(&no).contains("invalid_request"), "{later} {no:?}");
    provider.set(json!({ "token": "ok" })).await;
    let key = keys.key(Some(refusal)).await.unwrap().unwrap();
    assert_eq!(call(&provider.at.mcp, &key.headers).await.status, 200);
}

#[tokio::test]
async fn what_to_type_comes_before_the_words_of_an_authorization_server() {
    let Some(provider) = Provider::start("said") else { return };
    provider.login().await;
    let keys = provider.keys();
    let key = keys.clone().key(None).await.unwrap();
    provider.set(json!({ "refuse_tokens": true, "token": "refuse" })).await;
    let said = words(&keys.key(Some(refused(&provider, key).await)).await.unwrap_err());
    assert!(said.starts_with("To log in, run `linetender login test`: "), "{said}");
    assert!(said.ends_with("its words: \"invalid_grant: the grant was taken back\""), "{said}");
}

//! Tokens of a real issuer, checked as the gateway checks them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use linetender_auth::{Audience, BearerRules, Bearers, By, JwtRules, Refused};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::issuer::Issuer;
use crate::scripted::Scripted;

const BASE: &str = "https://gateway.example.com";
const LEEWAY: u64 = 30;

/// Longer than the pause between two fetches for keys that are missing, on any machine.
const PATIENCE: Duration = Duration::from_secs(40);

fn rules(issuer: &str) -> JwtRules {
    JwtRules {
        issuer: issuer.to_owned(),
        audience: Audience::Resource(BASE.to_owned()),
        algorithms: vec![],
        jwks: None,
        leeway: Duration::from_secs(LEEWAY),
        principal: "sub".to_owned(),
        groups: "groups".to_owned(),
        scopes: vec!["mcp:read".to_owned()],
    }
}

fn bearers(rules: JwtRules) -> Bearers {
    Bearers::new(BearerRules { tokens: None, jwt: Some(rules) }).unwrap()
}

/// As each request of a gateway does it.
async fn asked(bearers: &Bearers, token: &str) -> Result<(), Refused> {
    let known = match bearers.known(token, None) {
        Some(known) => known,
        None => bearers.check(token, None).await,
    };
    known.map(drop)
}

#[tokio::test]
async fn a_machine_of_a_real_issuer_is_known_by_its_token() {
    let Some(issuer) = Issuer::start("known") else { return };
    let token = issuer.token(&format!("{BASE}/mcp")).await;
    let narrow = issuer.token(&format!("{BASE}/mcp/git")).await;
    let foreign = issuer.token("https://other.example.com/mcp").await;
    let explicit = JwtRules { jwks: Some(format!("{}/jwks", issuer.url)), ..rules(&issuer.url) };
    for rules in [rules(&issuer.url), explicit] {
        let bearers = bearers(rules);
        let known = bearers.check(&token, None).await.unwrap();
        assert_eq!(
            (known.name.as_str(), known.groups.as_slice()),
            ("machine", ["staff".to_owned()].as_slice())
        );
        assert_eq!(known.by, By::Jwt { issuer: issuer.url.clone() });
        assert_eq!(bearers.known(&token, Some("git")), Some(Ok(known)));
        bearers.check(&narrow, Some("git")).await.unwrap();
        for refused in [bearers.check(&narrow, None).await, bearers.check(&foreign, None).await] {
            assert!(matches!(&refused, Err(Refused::Invalid(words)) if words.contains("aud")), "{refused:?}");
        }
    }
    assert_eq!(issuer.fetched().await, 2, "once for each");
}

/// How far a rotation has come, as the callers see it.
const BEFORE: u64 = 0;
/// The old key may have gone from the set that counts.
const LEAVING: u64 = 1;
/// It has gone.
const GONE: u64 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_rotated_under_load_and_nobody_is_taken_for_another() {
    let Some(issuer) = Issuer::start("rotated") else { return };
    let bearers = bearers(rules(&issuer.url));
    let resource = format!("{BASE}/mcp");
    let old: Arc<str> = issuer.token(&resource).await.into();
    asked(&bearers, &old).await.unwrap();
    let (stage, checks) = (Arc::new(AtomicU64::new(BEFORE)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    // Somebody who uses the old token all the time, and is refused no earlier and no later than its key goes.
    for _ in 0..8 {
        let (bearers, old, stage, checks) = (bearers.clone(), old.clone(), stage.clone(), checks.clone());
        callers.spawn(async move {
            let mut refused_after = 0;
            while refused_after < 50 {
                let before = stage.load(Ordering::SeqCst);
                let found = asked(&bearers, &old).await;
                let after = stage.load(Ordering::SeqCst);
                checks.fetch_add(1, Ordering::Relaxed);
                match found {
                    Ok(()) => assert_ne!(before, GONE, "the key has gone"),
                    Err(Refused::Invalid(_)) => assert_ne!(after, BEFORE, "the key is there"),
                    other => panic!("{other:?}"),
                }
                refused_after += usize::from(before == GONE);
                tokio::task::yield_now().await;
            }
        });
    }
    // Another key joins; its tokens count at once, for as many as come with them.
    issuer.set(json!({ "keys": ["rsa-1", "ec-2"], "sign": "ec-2" })).await;
    let new: Arc<str> = issuer.token(&resource).await.into();
    let fetched = issuer.fetched().await;
    for _ in 0..8 {
        let (bearers, new, stage, checks) = (bearers.clone(), new.clone(), stage.clone(), checks.clone());
        callers.spawn(async move {
            while stage.load(Ordering::SeqCst) != GONE {
                asked(&bearers, &new).await.unwrap();
                checks.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
            asked(&bearers, &new).await.unwrap();
        });
    }
    asked(&bearers, &new).await.unwrap();
    assert_eq!(issuer.fetched().await, fetched + 1, "one for all");
    // The first key goes, and a third comes. The keys are fetched when the pause after the last fetch is over.
    stage.store(LEAVING, Ordering::SeqCst);
    issuer.set(json!({ "keys": ["ec-2", "rsa-3"], "sign": "rsa-3" })).await;
    let newest = issuer.token(&resource).await;
    let until = Instant::now() + PATIENCE;
    while let Err(refused) = asked(&bearers, &newest).await {
        assert!(matches!(refused, Refused::Invalid(_)) && Instant::now() < until, "{refused:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stage.store(GONE, Ordering::SeqCst);
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    println!("{} checks", checks.load(Ordering::Relaxed));
    assert_eq!(issuer.fetched().await, fetched + 2);
}

#[tokio::test]
async fn while_the_issuer_is_down_known_keys_go_on_and_others_are_asked_to_wait() {
    let Some(mut issuer) = Issuer::start("down") else { return };
    let bearers = bearers(rules(&issuer.url));
    let resource = format!("{BASE}/mcp");
    let (used, unused) = (issuer.token(&resource).await, issuer.token(&resource).await);
    asked(&bearers, &used).await.unwrap();
    issuer.set(json!({ "keys": ["rsa-1", "ec-2"], "sign": "ec-2" })).await;
    let new = issuer.token(&resource).await;
    issuer.kill();
    asked(&bearers, &used).await.unwrap();
    asked(&bearers, &unused).await.unwrap();
    let refused = asked(&bearers, &new).await;
    let Err(Refused::Unavailable(words, wait)) = &refused else { panic!("{refused:?}") };
    assert!(
        words.contains("127.0.0.1") && !wait.is_zero() && *wait <= Duration::from_secs(10),
        "{refused:?}"
    );
    asked(&bearers, &used).await.unwrap();
    issuer.restart();
    issuer.set(json!({ "keys": ["rsa-1", "ec-2"], "sign": "ec-2" })).await;
    let until = Instant::now() + PATIENCE;
    while let Err(refused) = asked(&bearers, &new).await {
        let Refused::Unavailable(_, wait) = refused else { panic!("{refused:?}") };
        assert!(Instant::now() < until);
        tokio::time::sleep(wait).await;
    }
    assert_eq!(issuer.fetched().await, 1, "nobody asked before it was time");
    asked(&bearers, &used).await.unwrap();
}

#[tokio::test]
async fn clocks_may_differ_by_the_leeway() {
    let Some(issuer) = Issuer::start("skew") else { return };
    let bearers = bearers(rules(&issuer.url));
    for (skew, lifetime, wrong) in [
        (0, 60, None),
        (15, 60, None),
        (60, 600, Some("clocks")),
        // It has expired by the gateway's clock already.
        (-30, 15, None),
        (-120, 60, Some("expired")),
    ] {
        issuer.set(json!({ "skew": skew, "lifetime": lifetime })).await;
        let token = issuer.token(&format!("{BASE}/mcp")).await;
        match (asked(&bearers, &token).await, wrong) {
            (Ok(()), None) => {}
            (Err(Refused::Invalid(words)), Some(wrong)) if words.contains(wrong) => {}
            (other, _) => panic!("{skew}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_or_none_are_no_way_to_the_keys() {
    let metadata = "GET /.well-known/oauth-authorization-server";
    for (status, changes, word) in [
        (200, json!({ "issuer": "https://issuer.example.com" }), "another authorization server"),
        (200, json!({ "jwks_uri": null }), "jwks_uri"),
        (200, json!({ "jwks_uri": "http://issuer.example.com/jwks" }), "https"),
        (404, json!({}), "publishes no metadata"),
        (500, json!({}), "500"),
        (200, json!({}), "no key set"),
    ] {
        let server = Scripted::start().await;
        let mut body = json!({ "issuer": server.origin, "jwks_uri": format!("{}/jwks", server.origin) });
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        server.put(metadata, status, "", &body);
        // Not signed by anybody; the keys are asked for first.
        let token = unsigned(&server.origin);
        let refused = bearers(rules(&server.origin)).check(&token, None).await;
        let Err(Refused::Unavailable(words, _)) = &refused else { panic!("{refused:?}") };
        assert!(words.contains(word) && words.len() < 1000, "{words}");
    }
}

/// A token that looks good until its signature is verified.
fn unsigned(issuer: &str) -> String {
    use base64::Engine as _;
    let part =
        |value: serde_json::Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    let claims =
        json!({ "iss": issuer, "aud": format!("{BASE}/mcp"), "sub": "eve", "exp": 4_000_000_000_u64 });
    format!("{}.{}.AAAA", part(json!({ "alg": "ES256", "kid": "k" })), part(claims))
}

//! The key set of an issuer, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use super::kit::{START, Signer, claims, rules, with};
use crate::bearer::{BearerRules, Bearers, JwtRules, Refused};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A token that outlives the test.
fn lasting(key: &Signer, kid: &str) -> String {
    let mut claims = claims("ada");
    claims["exp"] = (START + 1_000_000).into();
    key.token(&json!({ "alg": "ES256", "kid": kid }), &claims)
}

async fn is_invalid(bearers: &Bearers, token: &str) -> bool {
    matches!(bearers.check(token, None).await, Err(Refused::Invalid(_)))
}

async fn unavailable(bearers: &Bearers, token: &str) -> Duration {
    match bearers.check(token, None).await {
        Err(Refused::Unavailable(words, wait)) if words.contains("connection refused") => wait,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_fetch_the_keys_once_even_if_the_first_hangs_up() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    let token: Arc<str> = lasting(&key, "k").into();
    *script.takes.lock().unwrap() = SECOND;
    {
        let first = bearers.check(&token, None);
        assert!(tokio::time::timeout(SECOND / 2, first).await.is_err());
    }
    let before = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (bearers, token) = (bearers.clone(), Arc::clone(&token));
        callers.spawn(async move { bearers.check(&token, None).await.is_ok() });
    }
    assert!(callers.join_all().await.into_iter().all(|is_good| is_good));
    assert_eq!((script.fetched(), before.elapsed()), (1, SECOND / 2));
}

#[tokio::test(start_paused = true)]
async fn old_keys_count_while_they_are_fetched_anew() {
    let (old, new) = (Signer::p256(), Signer::p256());
    let (bearers, script) = with(rules(), &[old.jwk("old")]);
    let token = lasting(&old, "old");
    bearers.check(&token, None).await.unwrap();
    advance(Duration::from_secs(599)).await;
    assert!(bearers.known(&token, None).is_some());
    script.publish(&[old.jwk("old"), new.jwk("new")]);
    advance(SECOND).await;
    assert_eq!(bearers.known(&token, None), None, "somebody has to start it");
    let before = Instant::now();
    bearers.check(&token, None).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO, "and does not wait for it");
    assert!(bearers.known(&token, None).is_some(), "nor does anybody else");
    tokio::time::sleep(SECOND).await;
    assert_eq!(script.fetched(), 2);
    bearers.check(&lasting(&new, "new"), None).await.unwrap();
    assert_eq!(script.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_withdrawn_counts_no_longer_also_for_tokens_that_are_remembered() {
    let (old, new) = (Signer::p256(), Signer::p256());
    let (bearers, script) = with(rules(), &[old.jwk("old"), new.jwk("new")]);
    let (gone, stays) = (lasting(&old, "old"), lasting(&new, "new"));
    bearers.check(&gone, None).await.unwrap();
    bearers.check(&stays, None).await.unwrap();
    script.publish(&[new.jwk("new")]);
    // A refresh that another token causes.
    assert!(is_invalid(&bearers, &lasting(&old, "unknown")).await);
    assert_eq!(bearers.known(&gone, None), None);
    assert!(is_invalid(&bearers, &gone).await);
    bearers.check(&stays, None).await.unwrap();
    assert!(bearers.known(&stays, None).unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let (old, new) = (Signer::p256(), Signer::p256());
    let (bearers, script) = with(rules(), &[old.jwk("old")]);
    bearers.check(&lasting(&old, "old"), None).await.unwrap();
    script.publish(&[old.jwk("old"), new.jwk("new")]);
    bearers.check(&lasting(&new, "new"), None).await.unwrap();
    assert_eq!(script.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_came_during_a_fetch_has_the_next_one_too() {
    let (old, new) = (Signer::p256(), Signer::p256());
    let (bearers, script) = with(rules(), &[old.jwk("old")]);
    let token = lasting(&old, "old");
    bearers.check(&token, None).await.unwrap();
    advance(10 * MINUTE).await;
    // The refresh has read the old set, and is on its way back.
    bearers.check(&token, None).await.unwrap();
    let late = lasting(&new, "new");
    let asking = bearers.check(&late, None);
    let publishing = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        script.publish(&[new.jwk("new")]);
    };
    let (checked, ()) = tokio::join!(asking, publishing);
    checked.unwrap();
    assert_eq!(script.fetched(), 3);
}

#[tokio::test(start_paused = true)]
async fn invented_keys_make_us_ask_the_issuer_once_in_ten_seconds() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    bearers.check(&lasting(&key, "k"), None).await.unwrap();
    for number in 0..600 {
        let before = Instant::now();
        assert!(is_invalid(&bearers, &lasting(&key, &format!("invented-{number}"))).await);
        tokio::time::sleep(Duration::from_millis(100).saturating_sub(before.elapsed())).await;
    }
    // A minute: one each ten seconds, after the first.
    assert!((6..=7).contains(&(script.fetched() - 1)), "{}", script.fetched());
}

#[tokio::test(start_paused = true)]
async fn while_the_issuer_is_down_the_keys_go_on_for_a_day() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    let token = lasting(&key, "k");
    bearers.check(&token, None).await.unwrap();
    script.down();
    for _ in 0..23 {
        advance(HOUR).await;
        bearers.check(&token, None).await.unwrap();
        // Others are not held up by each attempt, and a key that nobody knows is not refused for good.
        let wait = unavailable(&bearers, &lasting(&Signer::p256(), "new")).await;
        assert!(wait > Duration::ZERO && wait <= 10 * SECOND, "{wait:?}");
        assert!(bearers.known(&token, None).unwrap().is_ok());
    }
    advance(HOUR).await;
    assert_eq!(bearers.known(&token, None), None);
    unavailable(&bearers, &token).await;
    script.publish(&[key.jwk("k")]);
    advance(10 * SECOND).await;
    bearers.check(&token, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_down_at_the_start_is_asked_every_ten_seconds() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[]);
    script.down();
    let token = lasting(&key, "k");
    for _ in 0..100 {
        unavailable(&bearers, &token).await;
    }
    assert_eq!(script.fetched(), 1);
    script.publish(&[key.jwk("k")]);
    let wait = unavailable(&bearers, &token).await;
    advance(wait).await;
    bearers.check(&token, None).await.unwrap();
    assert_eq!(script.fetched(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_hangs_is_given_up() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    *script.takes.lock().unwrap() = HOUR;
    let before = Instant::now();
    let refused = bearers.check(&lasting(&key, "k"), None).await;
    assert!(
        matches!(refused, Err(Refused::Unavailable(..))) && before.elapsed() == 10 * SECOND,
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_set_without_a_key_that_can_be_used_does_not_replace_one_that_has_some() {
    let key = Signer::p256();
    let mut weak = Signer::rsa().jwk("k");
    weak["n"] = "A".repeat(171).into();
    let many: Vec<Value> = (0..65).map(|number| key.jwk(&number.to_string())).collect();
    for useless in
        [vec![], vec![json!({ "kty": "oct", "k": "AAAA", "kid": "k" })], vec![json!(7)], vec![weak], many]
    {
        let (bearers, script) = with(rules(), &[key.jwk("k")]);
        let token = lasting(&key, "k");
        bearers.check(&token, None).await.unwrap();
        script.publish(&useless);
        let refused = bearers.check(&lasting(&key, "other"), None).await;
        assert!(matches!(refused, Err(Refused::Unavailable(..))), "{refused:?}");
        assert!(bearers.known(&token, None).unwrap().is_ok());
    }
    let most: Vec<Value> = (0..64).map(|number| key.jwk(&number.to_string())).collect();
    let (bearers, _) = with(rules(), &most);
    bearers.check(&lasting(&key, "63"), None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_need_not_name_the_only_key() {
    let (key, next) = (Signer::p256(), Signer::p256());
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    let unnamed = |key: &Signer| key.token(&json!({ "alg": "ES256" }), &claims("ada"));
    bearers.check(&unnamed(&key), None).await.unwrap();
    script.publish(&[next.jwk("k")]);
    bearers.check(&unnamed(&next), None).await.unwrap();
    assert!(is_invalid(&bearers, &unnamed(&key)).await);
    script.publish(&[key.jwk("k"), next.jwk("n")]);
    advance(10 * SECOND).await;
    assert!(is_invalid(&bearers, &unnamed(&key)).await, "which of two it is cannot be told");
}

#[tokio::test(start_paused = true)]
async fn other_rules_count_at_once_and_the_same_keep_what_is_known() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    let token = lasting(&key, "k");
    bearers.check(&token, None).await.unwrap();
    let under = |rules: JwtRules| BearerRules { tokens: None, jwt: Some(rules) };
    script.down();
    bearers.change(under(rules())).unwrap();
    assert!(bearers.known(&token, None).unwrap().is_ok());
    // A mistake changes nothing.
    bearers.change(under(JwtRules { algorithms: vec!["HS256".to_owned()], ..rules() })).unwrap_err();
    assert!(bearers.known(&token, None).unwrap().is_ok());
    script.publish(&[key.jwk("k")]);
    bearers.change(under(JwtRules { principal: "email".to_owned(), ..rules() })).unwrap();
    assert_eq!(bearers.known(&token, None), None);
    assert!(is_invalid(&bearers, &token).await);
    // Also for somebody who is waiting for keys.
    *script.takes.lock().unwrap() = SECOND;
    bearers.change(under(JwtRules { leeway: SECOND, ..rules() })).unwrap();
    let strict = JwtRules { scopes: vec!["more".to_owned()], ..rules() };
    let changing = async {
        tokio::time::sleep(SECOND / 2).await;
        bearers.change(under(strict)).unwrap();
    };
    let (checked, ()) = tokio::join!(bearers.check(&token, None), changing);
    assert_eq!(checked, Err(Refused::Scope(vec!["more".to_owned()])));
    assert_eq!(bearers.scopes(), ["more"]);
    bearers.change(BearerRules::default()).unwrap();
    assert!(is_invalid(&bearers, &token).await && bearers.issuer().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_new_key_under_an_old_name_is_found_and_forgers_make_nobody_fetch_more_often() {
    let (old, new, forger) = (Signer::p256(), Signer::p256(), Signer::p256());
    let (bearers, script) = with(rules(), &[old.jwk("k")]);
    bearers.check(&lasting(&old, "k"), None).await.unwrap();
    script.publish(&[new.jwk("k")]);
    advance(11 * SECOND).await;
    bearers.check(&lasting(&new, "k"), None).await.unwrap();
    assert!(is_invalid(&bearers, &lasting(&old, "k")).await, "the old key is gone");
    advance(11 * SECOND).await;
    let before = script.fetched();
    for _ in 0..100 {
        assert!(is_invalid(&bearers, &lasting(&forger, "k")).await);
    }
    assert!(script.fetched() <= before + 1, "{}", script.fetched() - before);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_taken_out_is_trusted_no_more_whatever_is_wrong_with_the_tokens() {
    let key = Signer::p256();
    let (bearers, _) = with(rules(), &[key.jwk("k")]);
    let token = lasting(&key, "k");
    bearers.check(&token, None).await.unwrap();
    let nowhere = Some("/nowhere/tokens.toml".into());
    assert!(bearers.change(BearerRules { tokens: nowhere, jwt: None }).is_err());
    assert!(is_invalid(&bearers, &token).await);
}

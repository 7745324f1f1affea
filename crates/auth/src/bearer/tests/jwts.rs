//! Which tokens are accepted, and as whom.

use serde_json::{Value, json};

use super::kit::{BASE, ISSUER, LEEWAY, START, Signer, claims, rules, unsigned, with};
use crate::bearer::{Audience, BearerRules, Bearers, By, JwtRules, Known, Refused};
use crate::encode::base64url;

/// The good claims with these changes; null removes one.
fn changed(changes: Value) -> Value {
    let mut all = claims("ada");
    let Value::Object(changes) = changes else { panic!() };
    for (claim, value) in changes {
        match value {
            Value::Null => drop(all.as_object_mut().unwrap().remove(&claim)),
            value => all[claim] = value,
        }
    }
    all
}

fn head() -> Value {
    json!({ "alg": "ES256", "kid": "k" })
}

/// What the claims come to with these rules.
async fn judged(rules: JwtRules, changes: Value) -> Result<Known, Refused> {
    let key = Signer::p256();
    let (bearers, _) = with(rules, &[key.jwk("k")]);
    let token = key.token(&head(), &changed(changes));
    bearers.check(&token, None).await.map(|known| (*known).clone())
}

#[track_caller]
fn words(refused: Result<impl std::fmt::Debug, Refused>) -> String {
    match refused {
        Err(Refused::Invalid(words)) => words,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_each_kind_of_key_is_accepted_once_it_is_allowed() {
    for (algorithm, key) in [
        ("RS256", Signer::rsa()),
        ("PS256", Signer::rsa()),
        ("ES256", Signer::p256()),
        ("ES384", Signer::p384()),
        ("EdDSA", Signer::ed()),
    ] {
        let rules = JwtRules { algorithms: vec![algorithm.to_owned()], ..rules() };
        let (bearers, _) = with(rules, &[key.jwk("k")]);
        let token = key.token(&json!({ "alg": algorithm, "kid": "k", "typ": "at+jwt" }), &claims("ada"));
        assert_eq!(bearers.known(&token, None), None, "nobody has verified it");
        let known = bearers.check(&token, None).await.unwrap();
        assert_eq!((known.name.as_str(), known.groups.as_slice()), ("ada", ["staff".to_owned()].as_slice()));
        assert_eq!(known.by, By::Jwt { issuer: ISSUER.to_owned() });
        assert_eq!(bearers.known(&token, Some("git")), Some(Ok(known)), "it is remembered");
        // Another's signature, and none.
        let (text, signature) = token.rsplit_once('.').unwrap();
        let other = key.good("k", "eve");
        let (forged, _) = other.rsplit_once('.').unwrap();
        let mixed = format!("{forged}.{signature}");
        let bent = format!("{text}.{}", signature.chars().rev().collect::<String>());
        for token in [mixed, format!("{text}."), bent] {
            words(bearers.check(&token, None).await);
            assert_eq!(bearers.known(&token, None), None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_algorithm_has_to_be_allowed_and_to_fit_the_key() {
    let (rsa, ec) = (Signer::rsa(), Signer::p256());
    let (bearers, script) = with(rules(), &[rsa.jwk("rsa"), ec.jwk("ec")]);
    // The public key as the secret of an HMAC: the oldest trick.
    let text = unsigned(&json!({ "alg": "HS256", "kid": "rsa" }), &claims("eve"));
    let secret = rsa.jwk("rsa")["n"].as_str().unwrap().to_owned();
    let secret = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    let hmac = format!("{text}.{}", base64url(aws_lc_rs::hmac::sign(&secret, text.as_bytes()).as_ref()));
    assert!(words(bearers.check(&hmac, None).await).contains("algorithm"));
    for none in ["none", "None", "NONE", ""] {
        let text = unsigned(&json!({ "alg": none, "kid": "rsa" }), &claims("eve"));
        words(bearers.check(&format!("{text}."), None).await);
    }
    // Allowed in general, not here.
    for (key, algorithm) in [(&rsa, "PS256"), (&rsa, "RS512"), (&ec, "ES384")] {
        let token = key.token(&json!({ "alg": algorithm, "kid": "rsa" }), &claims("eve"));
        assert!(words(bearers.check(&token, None).await).contains("algorithm"), "{algorithm}");
    }
    assert_eq!(script.fetched(), 0, "all of this is seen without the keys");
    // A key that is for one algorithm verifies no other, although both are allowed.
    let mut own = rsa.jwk("k");
    own["alg"] = "RS256".into();
    let both = JwtRules { algorithms: vec!["RS256".to_owned(), "PS256".to_owned()], ..rules() };
    let (strict, _) = with(both, &[own]);
    let of = |algorithm: &str| rsa.token(&json!({ "alg": algorithm, "kid": "k" }), &claims("ada"));
    strict.check(&of("RS256"), None).await.unwrap();
    assert!(words(strict.check(&of("PS256"), None).await).contains("signature is wrong"));
    let crossed = ec.token(&json!({ "alg": "ES256", "kid": "rsa" }), &claims("eve"));
    assert!(words(bearers.check(&crossed, None).await).contains("signature is wrong"));
}

#[tokio::test(start_paused = true)]
async fn keys_for_other_purposes_verify_nothing() {
    let key = Signer::rsa();
    let with_change = |name: &str, value: Value| {
        let mut jwk = key.jwk("k");
        jwk[name] = value;
        jwk
    };
    let token = key.good("k", "ada");
    for (name, value, is_good) in [
        ("use", json!("sig"), true),
        ("use", json!("enc"), false),
        ("key_ops", json!(["verify"]), true),
        ("key_ops", json!(["encrypt", "wrapKey"]), false),
        ("alg", json!("RS256"), true),
        ("alg", json!("RS512"), false),
        ("alg", json!("HS256"), false),
        ("alg", json!("RSA-OAEP"), false),
        ("alg", json!("something new"), false),
        ("n", json!(base64url(&[255; 128])), false),
        ("kty", json!("oct"), false),
    ] {
        let other = Signer::p256();
        let (bearers, _) = with(rules(), &[with_change(name, value.clone()), other.jwk("other")]);
        assert_eq!(bearers.check(&token, None).await.is_ok(), is_good, "{name}: {value}");
        bearers.check(&other.good("other", "ada"), None).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn headers_that_demand_something_else_are_refused() {
    let key = Signer::p256();
    let (bearers, _) = with(rules(), &[key.jwk("k")]);
    let of = |more: Value| {
        let mut header = head();
        header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key.token(&header, &claims("ada"))
    };
    for typ in ["JWT", "jwt", "at+jwt", "application/at+jwt"] {
        bearers.check(&of(json!({ "typ": typ })), None).await.unwrap();
    }
    for bad in [
        json!({ "typ": "logout+jwt" }),
        json!({ "typ": "dpop+jwt" }),
        json!({ "typ": 7 }),
        json!({ "crit": ["exp"] }),
        json!({ "crit": [] }),
        json!({ "crit": ["b64"], "b64": false }),
        json!({ "kid": 7 }),
    ] {
        words(bearers.check(&of(bad.clone()), None).await);
    }
    // A key that the token brings along is nobody's.
    let own = Signer::p256();
    let token = own.token(&json!({ "alg": "ES256", "kid": "k", "jwk": own.jwk("k") }), &claims("eve"));
    assert!(words(bearers.check(&token, None).await).contains("signature is wrong"));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_token_is_refused_without_a_fetch() {
    let key = Signer::p256();
    let (bearers, script) = with(rules(), &[key.jwk("k")]);
    let good = key.good("k", "ada");
    let long = key.token(&head(), &changed(json!({ "more": "x".repeat(16 * 1024) })));
    let dotted = format!("{good}.{good}");
    for bad in ["", "x", "a.b", "a.b.c", "..", ".", "é.é.é", &good[1..], &dotted, &long] {
        assert!(words(bearers.check(bad, None).await).len() < 300, "{bad}");
    }
    assert_eq!(bearers.known(&long, None).map(words).unwrap(), "The token is longer than 16 KiB.");
    assert_eq!(script.fetched(), 0);
    assert_eq!(
        words(bearers.check("lt_x", None).await),
        "This gateway accepts no tokens of `linetender token`."
    );
    let nothing = Bearers::new(BearerRules::default()).unwrap();
    assert!(words(nothing.known(&good, None).unwrap()).contains("does not know"));
}

#[tokio::test(start_paused = true)]
async fn times_count_with_the_leeway_and_no_more() {
    for (changes, is_good) in [
        (json!({ "exp": START + 1 }), true),
        (json!({ "exp": START + 1 - LEEWAY }), true),
        (json!({ "exp": START - LEEWAY }), false),
        (json!({ "exp": null }), false),
        (json!({ "exp": "2050-01-01T00:00:00Z" }), false),
        (json!({ "exp": (START + 100).to_string() }), false),
        (json!({ "exp": -1 }), false),
        (json!({ "exp": u64::MAX }), false),
        (json!({ "exp": 1e300 }), false),
        #[expect(clippy::cast_precision_loss, reason = "a fraction is what is tried")]
        (json!({ "exp": START as f64 + 100.5 }), true),
        (json!({ "nbf": START + LEEWAY }), true),
        (json!({ "nbf": START + LEEWAY + 1 }), false),
        (json!({ "nbf": "soon" }), false),
        (json!({ "iat": START + LEEWAY }), true),
        (json!({ "iat": START + LEEWAY + 1 }), false),
        (json!({ "iat": true }), false),
        (json!({ "iat": null }), true),
    ] {
        assert_eq!(judged(rules(), changes.clone()).await.is_ok(), is_good, "{changes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_remembered_expires_all_the_same() {
    let key = Signer::p256();
    let (bearers, _) = with(rules(), &[key.jwk("k")]);
    let token = key.token(&head(), &changed(json!({ "exp": START + 60 })));
    let until = bearers.check(&token, None).await.unwrap().until.unwrap();
    assert_eq!(until.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), START + 60 + LEEWAY);
    tokio::time::advance(std::time::Duration::from_secs(59 + LEEWAY)).await;
    assert!(bearers.known(&token, None).unwrap().is_ok());
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(bearers.known(&token, None), None);
    assert!(words(bearers.check(&token, None).await).contains("expired"));
}

#[tokio::test(start_paused = true)]
async fn only_the_very_issuer_counts() {
    for iss in [
        json!(null),
        json!("https://issuer.example.com"),
        json!(format!("{ISSUER}/")),
        json!(ISSUER.to_uppercase()),
        json!([ISSUER]),
    ] {
        assert!(words(judged(rules(), json!({ "iss": iss })).await).contains(ISSUER), "{iss}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_counts_where_it_is_meant_for() {
    let key = Signer::p256();
    let at = |path: &str| format!("{BASE}{path}");
    for (aud, all, git, other) in [
        (json!(at("/mcp")), true, true, true),
        (json!(at("/mcp/")), true, true, true),
        (json!(["x", at("/mcp")]), true, true, true),
        (json!(at("/mcp/git")), false, true, false),
        (json!([at("/mcp/git"), at("/mcp/other")]), false, true, true),
        (json!(at("/mcp/gi")), false, false, false),
        (json!(at("/mcpx")), false, false, false),
        (json!(at("/mcp/git/x")), false, false, false),
        (json!(BASE), false, false, false),
        (json!("https://gateway.example.com.evil.example/mcp"), false, false, false),
        (json!("some-client"), false, false, false),
        (json!([]), false, false, false),
        (json!([7, at("/mcp")]), false, false, false),
        (json!({ "a": at("/mcp") }), false, false, false),
        (json!(null), false, false, false),
    ] {
        let (bearers, _) = with(rules(), &[key.jwk("k")]);
        let token = key.token(&head(), &changed(json!({ "aud": aud })));
        // Twice: what is remembered is asked the same.
        for _ in 0..2 {
            for (server, is_good) in [(None, all), (Some("git"), git), (Some("other"), other)] {
                let checked = bearers.check(&token, server).await;
                assert_eq!(checked.is_ok(), is_good, "{aud} at {server:?}: {checked:?}");
                assert!(bearers.known(&token, server).is_none_or(|known| known.is_ok() == is_good));
            }
        }
    }
    let listed = |aud: &[&str]| Audience::Listed(aud.iter().map(|&one| one.to_owned()).collect());
    for (aud, is_good) in
        [(json!("b"), true), (json!(["x", "a"]), true), (json!("ab"), false), (json!(null), false)]
    {
        let rules = JwtRules { audience: listed(&["a", "b"]), ..rules() };
        assert_eq!(judged(rules, json!({ "aud": aud })).await.is_ok(), is_good, "{aud}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_name_is_where_the_rules_say() {
    let by = |claim: &str| JwtRules { principal: claim.to_owned(), ..rules() };
    let deep = json!({ "user": { "name": "bob" }, "https://example.com/name": "eve" });
    assert_eq!(judged(by("user.name"), deep.clone()).await.unwrap().name, "bob");
    assert_eq!(judged(by("https://example.com/name"), deep.clone()).await.unwrap().name, "eve");
    for (claim, changes) in [
        ("sub", json!({ "sub": null })),
        ("sub", json!({ "sub": "" })),
        ("sub", json!({ "sub": 7 })),
        ("sub", json!({ "sub": "*" })),
        ("sub", json!({ "sub": "group:admins" })),
        ("sub", json!({ "sub": "a b" })),
        ("sub", json!({ "sub": "x".repeat(129) })),
        ("email", json!({})),
        ("user.nick", deep.clone()),
        ("user", deep),
        ("sub.x", json!({})),
    ] {
        assert!(words(judged(by(claim), changes.clone()).await).contains(claim), "{changes}");
    }
}

#[tokio::test(start_paused = true)]
async fn groups_are_read_whole_or_the_token_is_refused() {
    let by = |claim: &str| JwtRules { groups: claim.to_owned(), ..rules() };
    let many = |count: usize| (0..count).map(|number| format!("g{number}")).collect::<Vec<_>>();
    for (claim, changes, groups) in [
        ("groups", json!({ "groups": "a  b" }), vec!["a", "b"]),
        ("groups", json!({ "groups": ["Domain Users"] }), vec!["Domain Users"]),
        ("groups", json!({ "groups": null }), vec![]),
        ("groups", json!({ "groups": [] }), vec![]),
        ("realm_access.roles", json!({ "realm_access": { "roles": ["r"] } }), vec!["r"]),
        ("realm_access.roles", json!({ "realm_access": 7 }), vec![]),
    ] {
        assert_eq!(judged(by(claim), changes).await.unwrap().groups, groups);
    }
    assert_eq!(judged(by("groups"), json!({ "groups": many(256) })).await.unwrap().groups.len(), 256);
    for bad in [
        json!(many(257)),
        json!(many(257).join(" ")),
        json!(["a", 7]),
        json!({ "a": true }),
        json!(7),
        json!(["x".repeat(257)]),
        json!(["a\u{0}"]),
    ] {
        assert!(words(judged(by("groups"), json!({ "groups": bad })).await).contains("groups"));
    }
}

#[tokio::test(start_paused = true)]
async fn all_scopes_are_needed() {
    let need = || JwtRules { scopes: vec!["mcp:read".to_owned(), "mcp:write".to_owned()], ..rules() };
    for good in [
        json!({}),
        json!({ "scope": null, "scp": ["mcp:write", "mcp:read"] }),
        json!({ "scope": null, "scp": "mcp:read mcp:write" }),
    ] {
        judged(need(), good).await.unwrap();
    }
    for bad in
        [json!({ "scope": "mcp:read" }), json!({ "scope": null }), json!({ "scope": "mcp:reader mcp:write" })]
    {
        assert_eq!(judged(need(), bad).await, Err(Refused::Scope(need().scopes)));
    }
    // Who forges a token is not told what it lacks.
    let (bearers, _) = with(need(), &[Signer::p256().jwk("k")]);
    let forged = Signer::p256().token(&head(), &changed(json!({ "scope": "" })));
    assert!(words(bearers.check(&forged, None).await).contains("signature"));
}

#[tokio::test(start_paused = true)]
async fn an_id_token_opens_nothing() {
    for kind in [
        json!({ "at_hash": "x" }),
        json!({ "c_hash": "x" }),
        json!({ "typ": "ID" }),
        json!({ "typ": "Refresh" }),
        json!({ "token_use": "id" }),
    ] {
        assert!(words(judged(rules(), kind).await).contains("no access token"));
    }
    judged(rules(), json!({ "typ": "Bearer", "token_use": "access" })).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rules_that_make_no_sense_are_refused_when_they_are_made() {
    let algorithms = |name: &str| JwtRules { algorithms: vec![name.to_owned()], ..rules() };
    for (bad, word) in [
        (algorithms("HS256"), "HS256"),
        (algorithms("none"), "none"),
        (algorithms("rs256"), "rs256"),
        (JwtRules { audience: Audience::Listed(vec![]), ..rules() }, "audience"),
        (JwtRules { audience: Audience::Listed(vec![String::new()]), ..rules() }, "audience"),
        (JwtRules { audience: Audience::Resource(String::new()), ..rules() }, "address"),
        (JwtRules { principal: String::new(), ..rules() }, "claim"),
        (JwtRules { issuer: "http://issuer.example.com".to_owned(), ..rules() }, "https"),
        (JwtRules { jwks: Some("http://issuer.example.com/jwks".to_owned()), ..rules() }, "https"),
    ] {
        let words = Bearers::new(BearerRules { tokens: None, jwt: Some(bad) }).unwrap_err();
        assert!(words.contains(word), "{words}");
    }
}

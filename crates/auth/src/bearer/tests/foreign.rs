//! Bytes that anybody can send: whatever they are, nobody gets in by them, and nothing breaks.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{Signer, claims, rules, with};
use crate::encode::base64url;

/// Any JSON, not too deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

fn checked(token: &str, key: &Signer) -> bool {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (bearers, _) = with(rules(), &[key.jwk("k")]);
        bearers.known(token, None).is_some_and(|known| known.is_ok())
            || bearers.check(token, Some("a")).await.is_ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_is_a_token(text in "\\PC{0,200}") {
        prop_assert!(!checked(&text, &Signer::p256()));
    }

    #[test]
    fn no_three_parts_are_a_token(header in any_json(), body in any_json(), signature in prop::collection::vec(any::<u8>(), 0..80)) {
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        let token = [part(&header), part(&body), base64url(&signature)].join(".");
        prop_assert!(!checked(&token, &Signer::p256()));
    }

    /// The key signs whatever it is given: then the claims alone decide, and a claim of the wrong kind is refused.
    #[test]
    fn a_signature_does_not_make_up_for_claims(
        claim in prop::sample::select(vec!["iss", "aud", "exp", "sub"]), value in any_json(),
    ) {
        let key = Signer::p256();
        let mut wrong = claims("ada");
        prop_assume!(wrong[claim] != value && !(claim == "exp" && value.as_i64().is_some()) && !(claim == "exp" && value.is_f64()));
        prop_assume!(!(claim == "sub" && value.is_string()));
        wrong[claim] = value;
        prop_assert!(!checked(&key.token(&json!({ "alg": "ES256", "kid": "k" }), &wrong), &key), "{wrong}");
    }
}

//! An issuer without a network: keys, tokens, and a key set that is fetched in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bearer::fetch::Way;
use crate::bearer::jwks::Document;
use crate::bearer::{Audience, BearerRules, Bearers, Clock, JwtRules};
use crate::encode::base64url;

pub(crate) const ISSUER: &str = "https://issuer.example.com/tenant";
pub(crate) const BASE: &str = "https://gateway.example.com";
/// When every test begins: in the year 2100, when all files of today have settled.
pub(crate) const START: u64 = 4_102_444_800;
pub(crate) const LEEWAY: u64 = 30;

/// A private key.
pub(crate) enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    pub(crate) fn p256() -> Self {
        Self::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub(crate) fn p384() -> Self {
        Self::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap())
    }

    pub(crate) fn ed() -> Self {
        Self::Ed(Ed25519KeyPair::generate().unwrap())
    }

    /// As the issuer publishes it.
    pub(crate) fn jwk(&self, kid: &str) -> Value {
        match self {
            Self::Rsa(pair) => {
                let part =
                    |number: aws_lc_rs::io::Positive<'_>| base64url(number.big_endian_without_leading_zero());
                let public = pair.public_key();
                json!({ "kty": "RSA", "kid": kid, "n": part(public.modulus()), "e": part(public.exponent()) })
            }
            Self::P256(pair) | Self::P384(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({ "kty": "EC", "kid": kid, "crv": curve, "x": base64url(x), "y": base64url(y) })
            }
            Self::Ed(pair) => {
                let x = base64url(pair.public_key().as_ref());
                json!({ "kty": "OKP", "kid": kid, "crv": "Ed25519", "x": x })
            }
        }
    }

    fn sign(&self, algorithm: &str, text: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut made = vec![0; pair.public_modulus_len()];
                let how = if algorithm.starts_with("PS") { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                pair.sign(how, &random, text.as_bytes(), &mut made).unwrap();
                made
            }
            Self::P256(pair) | Self::P384(pair) => {
                pair.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec()
            }
            Self::Ed(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        }
    }

    /// A token with this header and these claims, signed whatever they say.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let text = unsigned(header, claims);
        let signature = self.sign(header["alg"].as_str().unwrap_or_default(), &text);
        format!("{text}.{}", base64url(&signature))
    }

    /// A good one.
    pub(crate) fn good(&self, kid: &str, name: &str) -> String {
        let algorithm = match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Ed(_) => "EdDSA",
        };
        self.token(&json!({ "alg": algorithm, "kid": kid }), &claims(name))
    }
}

pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.to_string().as_bytes()))
}

/// Claims with which a token is accepted, for an hour.
pub(crate) fn claims(name: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": format!("{BASE}/mcp"), "sub": name, "groups": ["staff"],
        "iat": START, "exp": START + 3600, "scope": "mcp:read mcp:write",
    })
}

pub(crate) fn rules() -> JwtRules {
    JwtRules {
        issuer: ISSUER.to_owned(),
        audience: Audience::Resource(BASE.to_owned()),
        algorithms: vec![],
        jwks: None,
        leeway: Duration::from_secs(LEEWAY),
        principal: "sub".to_owned(),
        groups: "groups".to_owned(),
        scopes: vec![],
    }
}

/// What an issuer answers.
pub(crate) struct Script {
    pub(crate) answer: Mutex<Result<Value, String>>,
    pub(crate) takes: Mutex<Duration>,
    pub(crate) fetches: AtomicUsize,
}

impl Script {
    pub(crate) async fn fetch(&self) -> Result<Document, String> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let (answer, takes) = (self.answer.lock().unwrap().clone(), *self.takes.lock().unwrap());
        tokio::time::sleep(takes).await;
        serde_json::from_value(answer?).map_err(|error| error.to_string())
    }

    pub(crate) fn publish(&self, keys: &[Value]) {
        *self.answer.lock().unwrap() = Ok(json!({ "keys": keys }));
    }

    pub(crate) fn down(&self) {
        *self.answer.lock().unwrap() = Err("connection refused".to_owned());
    }

    pub(crate) fn fetched(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

/// A gateway's bearers by these rules, and its issuer. The wall's clock goes with the test's.
pub(crate) fn with(rules: JwtRules, keys: &[Value]) -> (Bearers, Arc<Script>) {
    let script = Arc::new(Script {
        answer: Mutex::new(Ok(json!({ "keys": keys }))),
        takes: Mutex::new(Duration::from_millis(20)),
        fetches: AtomicUsize::new(0),
    });
    let rules = BearerRules { tokens: None, jwt: Some(rules) };
    let bearers = Bearers::with(rules, clock(), Way::Scripted(Arc::clone(&script))).unwrap();
    (bearers, script)
}

pub(crate) fn clock() -> Clock {
    let start = Instant::now();
    Clock(Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(START) + start.elapsed()))
}

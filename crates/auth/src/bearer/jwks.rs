//! A key set (RFC 7517), and the verification of a signature with one of its keys.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::Value;

/// The most keys of a set.
const MOST: usize = 64;

/// The most keys of one name that are tried.
const MOST_TRIED: usize = 4;

/// The least characters of an RSA modulus in base64url: 2048 bits. What is shorter can be broken.
const LEAST_MODULUS: usize = 2048 / 6;

/// A document with keys. What is not understood in it is passed over: issuers publish keys for other purposes too.
#[derive(Deserialize)]
pub(super) struct Document {
    keys: Vec<Value>,
}

/// Keys that can be used.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
    /// Grows whenever the keys change.
    pub(super) version: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    jwk: Jwk,
    algorithms: Vec<Algorithm>,
    public: DecodingKey,
}

/// A token's signature, and what it says how it was made.
pub(super) struct Signed<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<&'a str>,
    pub(super) message: &'a str,
    pub(super) signature: &'a str,
}

/// What a key set says of a signature.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Genuine,
    Forged,
    /// The key is not in this set. It may be in a newer one.
    NoKey,
}

impl Document {
    /// The keys that can be used with these algorithms.
    pub(super) fn usable(self, accepted: &[Algorithm]) -> Result<Vec<Key>, String> {
        if self.keys.len() > MOST {
            return Err(format!("it has {} keys, and at most {MOST} are read", self.keys.len()));
        }
        let keys: Vec<Key> = self.keys.into_iter().filter_map(|key| Key::read(key, accepted)).collect();
        if keys.is_empty() {
            return Err(format!("it has no key for signatures with {accepted:?}"));
        }
        Ok(keys)
    }
}

impl Key {
    fn read(value: Value, accepted: &[Algorithm]) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let is_for_signatures = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature))
            && jwk.common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        let mut algorithms = fitting(&jwk.algorithm)?.to_vec();
        algorithms.retain(|algorithm| accepted.contains(algorithm));
        // A key that names an algorithm is for that one alone.
        if let Some(own) = jwk.common.key_algorithm {
            let own = Algorithm::try_from(own).ok()?;
            algorithms.retain(|algorithm| *algorithm == own);
        }
        if !is_for_signatures || algorithms.is_empty() {
            return None;
        }
        let public = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { jwk, algorithms, public })
    }
}

/// What a key can verify. Never HS256 and its like, whatever the set says: their key is a secret, and what is published is none.
fn fitting(key: &AlgorithmParameters) -> Option<&'static [Algorithm]> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match key {
        AlgorithmParameters::RSA(key) if key.n.len() >= LEAST_MODULUS => {
            Some(&[RS256, RS384, RS512, PS256, PS384, PS512])
        }
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => Some(&[ES256]),
            EllipticCurve::P384 => Some(&[ES384]),
            _ => None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Some(&[EdDSA]),
        _ => None,
    }
}

impl KeySet {
    pub(super) const fn new(keys: Vec<Key>, version: u64) -> Self {
        Self { keys, version }
    }

    /// Whether these are the same keys.
    pub(super) fn has_just(&self, keys: &[Key]) -> bool {
        self.keys.len() == keys.len()
            && self.keys.iter().zip(keys).all(|(ours, theirs)| ours.jwk == theirs.jwk)
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Verdict {
        let fits = |key: &&Key| key.algorithms.contains(&signed.algorithm);
        let is_genuine = |key: &Key| {
            let done =
                crypto::verify(signed.signature, signed.message.as_bytes(), &key.public, signed.algorithm);
            done.unwrap_or(false)
        };
        let Some(key_id) = signed.key_id else {
            // Issuers with one key need not name it. To try several would let any token cost that much.
            let mut fitting = self.keys.iter().filter(fits);
            return match (fitting.next(), fitting.next()) {
                (Some(key), None) if is_genuine(key) => Verdict::Genuine,
                _ => Verdict::NoKey,
            };
        };
        let mut named = self.keys.iter().filter(|key| key.jwk.common.key_id.as_deref() == Some(key_id));
        if named.clone().next().is_none() {
            return Verdict::NoKey;
        }
        let is_one = named.by_ref().filter(fits).take(MOST_TRIED).any(is_genuine);
        if is_one { Verdict::Genuine } else { Verdict::Forged }
    }
}

//! `private_key_jwt`: a client proves who it is by a signature. RFC 7523.

use std::time::{Duration, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;

use crate::client::{Algorithm, PrivateKey};
use crate::encode::{PemKind, base64url, pem};
use crate::error::{Error, ErrorKind};
use crate::secret::Secret;

/// How long an assertion is good for. It is used at once, but clocks differ.
const LIFETIME: Duration = Duration::from_secs(120);

/// An assertion that this client is who it says, for this issuer.
pub(crate) fn signed(key: &PrivateKey, client: &str, issuer: &str, now: SystemTime) -> Result<Secret, Error> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let unique = Secret::random().map_err(Error::no_randomness)?;
    let name = match key.algorithm {
        Algorithm::Es256 => "ES256",
        Algorithm::Rs256 => "RS256",
    };
    let mut head = json!({ "alg": name, "typ": "JWT" });
    if let Some(id) = &key.key_id {
        head["kid"] = id.as_str().into();
    }
    let claims = json!({
        "iss": client, "sub": client, "aud": issuer, "jti": unique.expose(),
        "iat": now, "exp": now + LIFETIME.as_secs(),
    });
    let signed =
        format!("{}.{}", base64url(head.to_string().as_bytes()), base64url(claims.to_string().as_bytes()));
    let signature = signature(key, signed.as_bytes())?;
    Ok(Secret::new(format!("{signed}.{}", base64url(&signature))))
}

fn signature(key: &PrivateKey, text: &[u8]) -> Result<Vec<u8>, Error> {
    let bad = || {
        Error::new(
            ErrorKind::Config,
            "the private key cannot be used: it has to be a PEM of a P-256 key for ES256, or of an RSA key for RS256",
        )
    };
    let (kind, der) = pem(key.pem.expose()).ok_or_else(bad)?;
    let random = SystemRandom::new();
    match key.algorithm {
        Algorithm::Es256 => {
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let pair = match kind {
                PemKind::Pkcs8 => EcdsaKeyPair::from_pkcs8(algorithm, &der),
                _ => EcdsaKeyPair::from_private_key_der(algorithm, &der),
            };
            let made = pair.map_err(|_| bad())?.sign(&random, text).map_err(|_| bad())?;
            Ok(made.as_ref().to_vec())
        }
        Algorithm::Rs256 => {
            let pair = match kind {
                PemKind::Pkcs8 => RsaKeyPair::from_pkcs8(&der),
                _ => RsaKeyPair::from_der(&der),
            };
            let pair = pair.map_err(|_| bad())?;
            let mut made = vec![0; pair.public_modulus_len()];
            pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut made).map_err(|_| bad())?;
            Ok(made)
        }
    }
}

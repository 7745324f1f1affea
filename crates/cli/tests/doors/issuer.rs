//! An issuer of tokens whose keys the test has, so that it can issue wrong ones too. Its key set is at a real address.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use aws_lc_rs::{hmac, io};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The gateway, as tokens call it.
pub(crate) const GATEWAY: &str = "https://gateway.example.com";

/// It. Its address is gone with it.
pub(crate) struct Issuer {
    pub(crate) url: String,
    key: RsaKeyPair,
    _serves: JoinSet<()>,
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let part = |number: io::Positive<'_>| base64url(number.big_endian_without_leading_zero());
        let public = key.public_key();
        let set = json!({ "keys": [
            { "kty": "RSA", "kid": "one", "use": "sig", "n": part(public.modulus()), "e": part(public.exponent()) },
        ]});
        let set = Arc::new(Mutex::new(set));
        let mut serves = JoinSet::new();
        serves.spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let body = set.lock().unwrap().to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
                let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await;
            }
        });
        Self { url, key, _serves: serves }
    }

    /// What the config says of it.
    pub(crate) fn config(&self) -> String {
        format!(
            "[gateway]\npublic_url = '{GATEWAY}'\n[gateway.auth.jwt]\nissuer = '{0}'\njwks = '{0}/jwks'\nscopes = ['mcp']\n",
            self.url
        )
    }

    /// Claims that are accepted, for an hour.
    pub(crate) fn claims(&self, name: &str, groups: &[&str]) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        json!({
            "iss": self.url, "aud": format!("{GATEWAY}/mcp"), "sub": name, "groups": groups,
            "scope": "mcp", "iat": now, "exp": now + 3600,
        })
    }

    /// A token for somebody.
    pub(crate) fn token(&self, name: &str, groups: &[&str]) -> String {
        self.of(&self.claims(name, groups))
    }

    /// One with these claims.
    pub(crate) fn of(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "RS256", "kid": "one" }), claims)
    }

    /// One with some other claims than are accepted.
    pub(crate) fn but(&self, other: &Value) -> String {
        let mut claims = self.claims("alice", &[]);
        for (name, value) in other.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.of(&claims)
    }

    /// One with this header, signed by the issuer's key whatever it says.
    pub(crate) fn signed(&self, header: &Value, claims: &Value) -> String {
        let text = unsigned(header, claims);
        let mut signature = vec![0; self.key.public_modulus_len()];
        self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
        format!("{text}.{}", base64url(&signature))
    }

    /// One that is signed with the public key as if that were a secret.
    pub(crate) fn signed_with_public_key(&self, claims: &Value) -> String {
        let text = unsigned(&json!({ "alg": "HS256", "kid": "one" }), claims);
        let secret = hmac::Key::new(hmac::HMAC_SHA256, self.key.public_key().as_ref());
        format!("{text}.{}", base64url(hmac::sign(&secret, text.as_bytes()).as_ref()))
    }
}

/// A token without a signature.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.to_string().as_bytes()))
}

fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

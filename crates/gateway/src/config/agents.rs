//! How agents show who they are.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::time;

/// How agents show who they are. With it, every request needs a token (`Authorization: Bearer`), at the address and at the socket.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct AgentAuth {
    /// File with the hashes of tokens, as `linetender token` writes it. A relative path begins at the folder of the config file.
    pub tokens: Option<PathBuf>,
    /// Tokens (JWT) of an authorization server.
    pub jwt: Option<Jwt>,
}

/// Which tokens (JWT) of an authorization server are accepted.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Jwt {
    /// Issuer: the `iss` claim, exactly. Its metadata names its keys.
    pub issuer: String,
    /// Accepted values of the `aud` claim. Without it: `gateway.public_url` followed by `/mcp`, and by `/mcp/NAME` for one server.
    pub audience: Vec<String>,
    /// Accepted signature algorithms. Without it: RS256 and ES256.
    pub algorithms: Vec<String>,
    /// URL of the issuer's keys (JWKS), if its metadata does not name it.
    pub jwks: Option<String>,
    /// How far clocks may differ.
    #[schemars(schema_with = "time")]
    pub leeway: u64,
    /// Claim that names the principal.
    pub principal: String,
    /// Claim that names its groups: a list, or words in one string. Dots go into objects: `realm_access.roles`.
    pub groups: String,
    /// Scopes that a token must have.
    pub scopes: Vec<String>,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            audience: Vec::new(),
            algorithms: Vec::new(),
            jwks: None,
            leeway: 30_000,
            principal: "sub".to_owned(),
            groups: "groups".to_owned(),
            scopes: Vec::new(),
        }
    }
}

impl AgentAuth {
    /// Whether agents have to show who they are.
    pub fn is_on(&self) -> bool {
        self.tokens.is_some() || self.jwt.is_some()
    }

    /// What is wrong with it, if anything is. `public_url` is the gateway's.
    pub(super) fn wrong(&self, public_url: Option<&str>) -> Option<&'static str> {
        let jwt = self.jwt.as_ref()?;
        match () {
            () if jwt.issuer.is_empty() => Some("auth.jwt needs an issuer"),
            () if jwt.audience.is_empty() && public_url.is_none() => Some(
                "auth.jwt needs an audience, or gateway.public_url: a token for somebody else must not open this gateway",
            ),
            () if jwt.principal.is_empty() => Some("auth.jwt.principal must name a claim"),
            () => None,
        }
    }
}

/// What is wrong with an address that others know the gateway by, if anything is.
pub(super) fn wrong_url(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let plain = |rest: &str| {
        !rest.is_empty() && !rest.contains(['?', '#', '@', ' ', '"', '\\']) && !rest.ends_with('/')
    };
    match rest {
        Some(rest) if plain(rest) && !rest.starts_with('/') => None,
        _ => Some(
            "public_url must be like https://mcp.example.com, without /mcp and without a slash at its end",
        ),
    }
}

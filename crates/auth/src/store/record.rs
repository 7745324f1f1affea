//! What is stored of a login.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::scopes;
use crate::secret::Secret;
use crate::token::Tokens;

/// One client of one issuer, and what it was granted for which server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Credential {
    pub(crate) version: u32,
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) client: ClientRecord,
    /// By the server's address.
    pub(crate) grants: BTreeMap<String, Granted>,
}

/// As whom linetender presents itself there. The secret of a client that registered itself is known to nobody else: without
/// it no token can be renewed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ClientRecord {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
    /// In seconds since 1970; `None` if never.
    pub(crate) secret_expires_at: Option<u64>,
    pub(crate) method: Method,
    pub(crate) origin: Origin,
    /// Where the browser is sent back to, if that was registered.
    pub(crate) redirect_uri: Option<String>,
    /// The authorization server does not know it any more: the next login registers another.
    #[serde(default)]
    pub(crate) is_gone: bool,
}

/// How a client proves at the token endpoint who it is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Method {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

/// Where a client comes from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    Configured,
    Document,
    Registered,
}

/// What was granted for one server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Granted {
    pub(crate) resource: String,
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// In seconds since 1970.
    pub(crate) got_at: u64,
    pub(crate) expires_at: Option<u64>,
    /// What was asked for and what was granted, together: a step-up must not lose any of it.
    pub(crate) scopes: Vec<String>,
    /// What the server demanded since: the next login asks for it too.
    #[serde(default)]
    pub(crate) wanted: Vec<String>,
    #[serde(default)]
    pub(crate) step_ups: StepUps,
    /// A token was asked for, and its answer is not stored yet.
    pub(crate) intent: Option<Intent>,
    /// How often in a row the authorization server refused for a reason that may pass.
    #[serde(default)]
    pub(crate) refusals: u32,
    /// Nothing renews it any more.
    pub(crate) ended: Option<Ended>,
}

/// Written before a token is asked for, so that whoever comes after a crash knows.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Intent {
    pub(crate) at: u64,
    pub(crate) pid: u32,
}

/// The authorization server refused to renew this token.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Ended {
    pub(crate) at: u64,
    /// For the person who has to log in. Redacted before it is stored.
    pub(crate) reason: String,
    /// The MCP server had refused the access token before: it is of no use either.
    #[serde(default)]
    pub(crate) access_refused: bool,
}

/// How often more scopes were asked for lately.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct StepUps {
    pub(crate) count: u32,
    pub(crate) last: u64,
}

impl StepUps {
    /// The most in one go: a server that is content with none of them does not get another.
    pub(crate) const MOST: u32 = 2;
    /// After this time without one, they are counted anew.
    const LATELY: u64 = 600;

    pub(crate) const fn may(&self, now: u64) -> bool {
        self.count < Self::MOST || now > self.last.saturating_add(Self::LATELY)
    }

    pub(crate) const fn another(&self, now: u64) -> Self {
        let count = if now > self.last.saturating_add(Self::LATELY) { 0 } else { self.count };
        Self { count: count.saturating_add(1), last: now }
    }
}

impl Granted {
    pub(crate) fn new(resource: String, tokens: Tokens, asked: Vec<String>, now: u64) -> Self {
        Self {
            resource,
            access: tokens.access,
            refresh: tokens.refresh,
            got_at: now,
            expires_at: tokens.expires_in.map(|seconds| now.saturating_add(seconds)),
            scopes: scopes::union(asked, tokens.scopes.unwrap_or_default()),
            wanted: Vec::new(),
            step_ups: StepUps::default(),
            intent: None,
            refusals: 0,
            ended: None,
        }
    }

    /// The same with newer tokens. A refresh token that was not replaced is kept.
    pub(crate) fn renewed(&self, tokens: Tokens, now: u64) -> Self {
        let refresh = tokens.refresh.clone().or_else(|| self.refresh.clone());
        let renewed = Self::new(self.resource.clone(), tokens, self.scopes.clone(), now);
        Self { refresh, wanted: self.wanted.clone(), step_ups: self.step_ups.clone(), ..renewed }
    }

    /// Whether the token can still be good, by this machine's clock.
    pub(crate) fn is_valid(&self, now: u64) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// Why nobody gets anywhere with it any more, if that is so.
    pub(crate) fn over(&self, now: u64) -> Option<&str> {
        let ended = self.ended.as_ref().filter(|ended| ended.access_refused || !self.is_valid(now))?;
        Some(&ended.reason)
    }

    /// When it should be renewed: between these two. Each process picks its own moment, so that not all of them ask at once.
    pub(crate) fn renewal(&self) -> Option<(u64, u64)> {
        let end = self.expires_at?;
        let margin = (end.saturating_sub(self.got_at) / 10).min(60);
        Some((end.saturating_sub(2 * margin), end.saturating_sub(margin)))
    }
}

/// Seconds since 1970, as files have them.
pub(crate) fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The other way.
pub(crate) fn moment(seconds: u64) -> SystemTime {
    // A server may name any lifetime; a century is as good as for ever.
    let most = 100 * 365 * 86_400 + 1_700_000_000;
    UNIX_EPOCH + Duration::from_secs(seconds.min(most))
}

/// Now.
pub(crate) fn now() -> u64 {
    seconds(linetender_wire::wall::wall_clock())
}

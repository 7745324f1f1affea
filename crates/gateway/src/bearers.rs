//! Who verifies the tokens that agents show. The gateway asks; whoever runs it has the keys, the files and the network.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

/// Somebody whose token was verified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Known {
    /// What access rules call it. Names of different realms never mean the same somebody.
    pub name: String,
    /// The groups it is in.
    pub groups: Vec<String>,
    /// Who says so: the issuer, or the file of tokens.
    pub realm: String,
    /// When the token expires. Streams that only listen end then; calls under way do not.
    pub until: Option<SystemTime>,
    /// Which of its tokens it showed, if that can be taken back.
    pub stamp: u64,
}

/// Why a token is not accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    /// It is not valid, or not for this gateway (status 401).
    Invalid(String),
    /// It is valid and lacks these scopes (status 403).
    Scope(Vec<String>),
    /// Nobody can tell now; after this time it can be tried again (status 503).
    Unavailable(String, Duration),
}

/// What comes of verifying a token.
pub type Verdict = Result<Known, Refused>;

/// Verifies bearer tokens.
pub trait Bearers: fmt::Debug + Send + Sync {
    /// The verdict, if it is known without waiting. `server` is the NAME of `/mcp/NAME`; none at `/mcp`.
    fn known(&self, token: &str, server: Option<&str>) -> Option<Verdict>;

    /// The verdict, whatever it takes, within a few seconds.
    fn check<'a>(
        &'a self,
        token: &'a str,
        server: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

    /// Whether somebody who was verified is still one of those it knows: a token may have been taken back. Asked now and then for
    /// streams that stay open.
    fn stands<'a>(
        &'a self,
        realm: &'a str,
        name: &'a str,
        stamp: u64,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

    /// The authorization server that issues tokens for this gateway, if there is one.
    fn issuer(&self) -> Option<String>;

    /// The scopes that a token must have.
    fn scopes(&self) -> Vec<String>;
}

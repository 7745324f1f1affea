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
    /// When the token expires. Streams that only listen end then; calls under way do not, unless it does not
    /// [stand](Bearers::stands) any more either.
    pub until: Option<SystemTime>,
    /// Which of its tokens it showed, if that can be taken back.
    pub stamp: u64,
}

/// What is asked again of a principal that was verified.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Who verified it.
    pub realm: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its groups, in their order, none twice.
    pub groups: &'a [Box<str>],
    /// Which of its tokens it showed.
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

    /// Looks whether tokens were taken back. Returns a number that is another one after they may have been. Asked several times a
    /// second: it has to take less than half of one.
    fn look(&self) -> Pin<Box<dyn Future<Output = u64> + Send + '_>>;

    /// True if a principal that was verified is still known with the same rights, as of the last look. Whether a token has expired
    /// that can be renewed is not asked.
    fn stands(&self, shown: &Shown<'_>) -> bool;

    /// The authorization server that issues tokens for this gateway, if there is one.
    fn issuer(&self) -> Option<String>;

    /// The scopes that a token must have.
    fn scopes(&self) -> Vec<String>;
}

//! Who an agent is: checks the bearer tokens that agents present to the gateway.
//!
//! There are two kinds. A static token was made by `linetender token`, begins with `lt_`, and stands with its hash in a file.
//! A JWT was signed by an issuer, whose keys are fetched and kept. Each request asks [`Bearers::known`] first, which never
//! waits; only a token that is new, or a look at a file or a key set that is due, needs [`Bearers::check`].

mod cache;
mod claims;
mod fetch;
mod file;
mod jwks;
mod jwt;
mod name;
mod tokens;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use fetch::Way;
pub use file::{NewToken, TokenEntry, TokenFile};
use jwt::Jwt;
pub use name::check_name;
use tokens::Tokens;

/// How every static token begins. No JWT does: its first byte is that of a JSON object in base64url, `e`.
const STATIC: &str = "lt_";

/// Whom a bearer token may belong to. Cheap to clone.
#[derive(Clone)]
pub struct Bearers(Arc<Inner>);

/// What tokens are accepted by. Without either part none is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BearerRules {
    /// The file of static tokens.
    pub tokens: Option<PathBuf>,
    /// Tokens that an issuer signs.
    pub jwt: Option<JwtRules>,
}

/// What a JWT is accepted by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JwtRules {
    /// The issuer, exactly as it stands in the claim `iss`.
    pub issuer: String,
    /// Whom the token has to be for.
    pub audience: Audience,
    /// The accepted algorithms, asymmetric ones alone; RS256 and ES256 if there are none here.
    pub algorithms: Vec<String>,
    /// Address of the key set. Without one, the issuer's metadata names it.
    pub jwks: Option<String>,
    /// By how much the clocks of issuer and gateway may differ.
    pub leeway: Duration,
    /// The claim that holds the agent's name, such as `sub`.
    pub principal: String,
    /// The claim that holds its groups, such as `groups` or `realm_access.roles`: an array, or one string with spaces.
    pub groups: String,
    /// Scopes, each of which the token has to have.
    pub scopes: Vec<String>,
}

/// Whom a JWT has to be for: the claim `aud`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Audience {
    /// Any of these, at every address.
    Listed(Vec<String>),
    /// The gateway's own addresses: `BASE/mcp` everywhere, `BASE/mcp/NAME` at that server alone. This is BASE, without a
    /// slash at its end.
    Resource(String),
}

/// Somebody whose token was accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Known {
    /// The name, unique only together with [`by`](Self::by).
    pub name: String,
    /// The groups, in the order of the token.
    pub groups: Vec<String>,
    /// Until when the token is accepted.
    pub until: Option<SystemTime>,
    /// Who says so.
    pub by: By,
    /// Which static token it was, of all that ever had this name; nothing of a JWT.
    pub stamp: u64,
}

/// Who says what a caller's name is: a static token's name is never that of a JWT.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum By {
    /// The file of static tokens.
    Token,
    /// An issuer.
    Jwt {
        /// Which one.
        issuer: String,
    },
}

/// Why a token was not accepted. The words are for the agent's user, and hold nothing of the token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    /// 401 `invalid_token`.
    Invalid(String),
    /// 403 `insufficient_scope`: all scopes that are needed.
    Scope(Vec<String>),
    /// 503: the issuer's keys cannot be fetched now; and after how long to try again.
    Unavailable(String, Duration),
}

struct Inner {
    standing: RwLock<Arc<Standing>>,
    clock: Clock,
    way: Way,
    /// Counts changes of rules and of the file of tokens.
    changes: Arc<AtomicU64>,
}

/// The rules in force, and what was learnt under them.
struct Standing {
    rules: BearerRules,
    tokens: Option<Arc<Tokens>>,
    jwt: Option<Arc<Jwt>>,
}

/// The time that expiry is compared with: the wall's, or a test's own.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Bearers {
    /// Reads the token file. The key set is fetched when it is first needed.
    ///
    /// # Errors
    /// If the file cannot be read, or the rules make no sense: a sentence for whoever starts the gateway.
    pub fn new(rules: BearerRules) -> Result<Self, String> {
        Self::with(rules, Clock(Arc::new(linetender_wire::wall::wall_clock)), Way::Web)
    }

    fn with(rules: BearerRules, clock: Clock, way: Way) -> Result<Self, String> {
        let changes = Arc::default();
        let standing = RwLock::new(Arc::new(Standing::new(rules, None, &clock, &way, &changes)?));
        Ok(Self(Arc::new(Inner { standing, clock, way, changes })))
    }

    /// Goes by other rules from now on, and reads the token file again. What was learnt under rules that are others now is
    /// forgotten; an issuer whose rules are the same keeps its keys, for it may be out of reach.
    ///
    /// # Errors
    /// As with [`new`](Self::new). If the rules for an issuer make no sense, those before stay in force; if the file of tokens cannot be
    /// read, the tokens before do, and the issuer's rules change.
    pub fn change(&self, rules: BearerRules) -> Result<(), String> {
        let before = self.standing();
        let Inner { clock, way, changes, .. } = &*self.0;
        let made = |rules| Standing::new(rules, Some(&before), clock, way, changes);
        // An issuer that is to be trusted no more is not, whatever is wrong with the file of tokens: that stays as it was.
        let (standing, unread) = match made(rules.clone()) {
            Ok(standing) => (standing, None),
            Err(words) => {
                let issuer = made(BearerRules { tokens: None, ..rules }).map_err(|_| words.clone())?;
                let rules = BearerRules { tokens: before.rules.tokens.clone(), ..issuer.rules };
                (Standing { rules, tokens: before.tokens.clone(), jwt: issuer.jwt }, Some(words))
            }
        };
        *self.0.standing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(standing);
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        unread.map_or(Ok(()), Err)
    }

    /// What is known of a token without waiting: a static one, or one that was verified before and still counts. `None`: ask
    /// [`check`](Self::check). `server` is the NAME of `/mcp/NAME`.
    pub fn known(&self, token: &str, server: Option<&str>) -> Option<Result<Arc<Known>, Refused>> {
        let standing = self.standing();
        let now = self.0.clock.now();
        match standing.whose(token) {
            Whose::File(tokens) if tokens.is_due() => None,
            Whose::File(tokens) => Some(tokens.find(token, now)),
            Whose::Issuer(jwt) => jwt.known(token, server, now),
            Whose::Nobody(words) => Some(Err(Refused::Invalid(words.to_owned()))),
        }
    }

    /// Checks a token. `server` is the NAME of `/mcp/NAME`, and `None` at `/mcp`. Has to be called within a tokio runtime.
    ///
    /// # Errors
    /// If it is not accepted, or the issuer's keys are needed and cannot be fetched.
    pub async fn check(&self, token: &str, server: Option<&str>) -> Result<Arc<Known>, Refused> {
        loop {
            let standing = self.standing();
            let checked = match standing.whose(token) {
                Whose::File(tokens) => {
                    tokens.look_if_due().await;
                    tokens.find(token, self.0.clock.now())
                }
                Whose::Issuer(jwt) => jwt.check(token, server, &self.0.clock).await,
                Whose::Nobody(words) => Err(Refused::Invalid(words.to_owned())),
            };
            // Rules that changed meanwhile count.
            if Arc::ptr_eq(&standing, &self.standing()) {
                return checked;
            }
        }
    }

    /// Looks at the file of tokens, if that is due. Returns a number that is another one after rules or tokens have changed.
    pub async fn look(&self) -> u64 {
        if let Some(tokens) = &self.standing().tokens {
            tokens.look_if_due().await;
        }
        self.0.changes.load(Ordering::Acquire)
    }

    /// True if the static token of this name and [stamp](Known::stamp) was in the file at the last look, with these groups, and has
    /// not expired.
    pub fn has_token(&self, name: &str, stamp: u64, groups: &[impl AsRef<str>]) -> bool {
        let standing = self.standing();
        standing.tokens.as_ref().is_some_and(|tokens| tokens.has(name, stamp, groups, self.0.clock.now()))
    }

    /// The issuer, for the metadata of the protected resource.
    pub fn issuer(&self) -> Option<String> {
        self.standing().rules.jwt.as_ref().map(|jwt| jwt.issuer.clone())
    }

    /// The scopes that every JWT has to have.
    pub fn scopes(&self) -> Vec<String> {
        self.standing().rules.jwt.as_ref().map(|jwt| jwt.scopes.clone()).unwrap_or_default()
    }

    fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.0.standing.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Who can say whose a token is.
enum Whose<'a> {
    File(&'a Arc<Tokens>),
    Issuer(&'a Arc<Jwt>),
    Nobody(&'static str),
}

impl Standing {
    fn new(
        rules: BearerRules,
        before: Option<&Self>,
        clock: &Clock,
        way: &Way,
        changes: &Arc<AtomicU64>,
    ) -> Result<Self, String> {
        let kept =
            before.filter(|before| before.rules.jwt == rules.jwt).and_then(|before| before.jwt.clone());
        let jwt = match (&rules.jwt, kept) {
            (None, _) => None,
            (Some(_), Some(kept)) => Some(kept),
            (Some(jwt), None) => Some(Arc::new(Jwt::new(jwt.clone(), way.clone())?)),
        };
        let read = |path| Tokens::read(path, clock.clone(), Arc::clone(changes));
        let tokens = rules.tokens.as_deref().map(read).transpose()?.map(Arc::new);
        Ok(Self { rules, tokens, jwt })
    }

    fn whose(&self, token: &str) -> Whose<'_> {
        let is_static = token.starts_with(STATIC);
        match (&self.tokens, &self.jwt) {
            (Some(tokens), _) if is_static => Whose::File(tokens),
            (None, _) if is_static => Whose::Nobody("This gateway accepts no tokens of `linetender token`."),
            (_, Some(jwt)) => Whose::Issuer(jwt),
            (_, None) => Whose::Nobody("The gateway does not know this token."),
        }
    }
}

impl fmt::Debug for Bearers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bearers").field(&self.standing().rules).finish()
    }
}

#[cfg(test)]
mod tests;

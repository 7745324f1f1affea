//! Tokens that an issuer signed.

use std::collections::BTreeSet;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, AlgorithmFamily, decode_header};

use super::cache::{Cache, Verified};
use super::claims::{self, Claims, invalid};
use super::fetch::{Fetched, Keys, Way};
use super::jwks::{Signed, Verdict};
use super::{Audience, Clock, JwtRules, Known, Refused};
use crate::encode::sha256;

/// The longest token that is looked at.
const LONGEST: usize = 16 * 1024;

/// What can be configured. Symmetric algorithms are not among them: the gateway would need the key that makes tokens.
const ACCEPTED: &str = "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";

/// The rules for the tokens of an issuer, its keys, and what was verified with them.
pub(super) struct Jwt {
    rules: JwtRules,
    algorithms: Vec<Algorithm>,
    keys: Arc<Keys>,
    verified: Cache,
}

impl Jwt {
    pub(super) fn new(mut rules: JwtRules, way: Way) -> Result<Self, String> {
        let algorithms = algorithms(&rules.algorithms)?;
        match &mut rules.audience {
            Audience::Listed(listed) if listed.iter().all(String::is_empty) => {
                return Err("no audience is configured: tokens for anybody would be accepted".to_owned());
            }
            Audience::Resource(base) if base.is_empty() => {
                return Err("the gateway's own address, for which tokens have to be, is not known".to_owned());
            }
            Audience::Listed(listed) => listed.retain(|one| !one.is_empty()),
            Audience::Resource(base) => base.truncate(base.trim_end_matches('/').len()),
        }
        if rules.principal.is_empty() {
            return Err("no claim is configured that holds the name of an agent".to_owned());
        }
        let keys = Keys::new(&rules.issuer, rules.jwks.as_deref(), algorithms.clone(), way)?;
        Ok(Self { rules, algorithms, keys: Arc::new(keys), verified: Cache::default() })
    }

    /// If it was verified before, and nothing is due that has to be waited for or started.
    pub(super) fn known(
        &self,
        token: &str,
        server: Option<&str>,
        now: SystemTime,
    ) -> Option<Result<Arc<Known>, Refused>> {
        if token.len() > LONGEST {
            return Some(Err(too_long()));
        }
        let keys = self.keys.version()?;
        let verified = self.verified.get(&sha256(token), keys, now)?;
        Some(verified.is_for.check(server).map(|()| Arc::clone(&verified.known)))
    }

    pub(super) async fn check(
        &self,
        token: &str,
        server: Option<&str>,
        clock: &Clock,
    ) -> Result<Arc<Known>, Refused> {
        self.keys.refresh_if_due();
        if let Some(known) = self.known(token, server, clock.now()) {
            return known;
        }
        let (read, claims) = self.read(token)?;
        let until = claims::check_times(&claims, &self.rules, clock.now())?;
        let keys = self.verify(&read.signed()).await?;
        let (known, is_for) = claims::principal(&claims, &self.rules, until)?;
        is_for.check(server)?;
        let verified = Verified { known: Arc::clone(&known), is_for, until, keys };
        self.verified.put(sha256(token), Arc::new(verified));
        Ok(known)
    }

    /// With which version of the key set the signature is genuine.
    async fn verify(&self, signed: &Signed<'_>) -> Result<u64, Refused> {
        let forged = || invalid("The token's signature is wrong.");
        let (mut waited, mut wrong): (_, fn() -> Refused) = (0, no_key);
        loop {
            if let Some(set) = self.keys.held() {
                match set.verify(signed) {
                    Verdict::Genuine => return Ok(set.version),
                    // Some issuers put a new key under an old name.
                    Verdict::Forged if waited == 2 => return Err(forged()),
                    Verdict::Forged => wrong = forged,
                    // A fetch that was under way when the token came may have missed a key; the next one has not.
                    Verdict::NoKey if waited == 2 => return Err(no_key()),
                    Verdict::NoKey => wrong = no_key,
                }
            }
            match self.keys.fetched().await {
                Fetched::Now => waited = 2,
                Fetched::WithOthers => waited += 1,
                Fetched::JustBefore => return Err(wrong()),
                Fetched::Not(words, wait) => {
                    return Err(Refused::Unavailable(
                        format!("The issuer's keys cannot be fetched now: {words}"),
                        wait,
                    ));
                }
            }
        }
    }

    /// The parts of a token. Nothing in it is believed yet.
    fn read<'a>(&self, token: &'a str) -> Result<(Read<'a>, Claims), Refused> {
        let unreadable = || invalid("This is no token that the gateway can read.");
        if token.len() > LONGEST {
            return Err(too_long());
        }
        let (message, signature) = token.rsplit_once('.').ok_or_else(unreadable)?;
        let (_, claims) = message.split_once('.').ok_or_else(unreadable)?;
        // `alg: none` and whatever else is no algorithm of a signature is an error here.
        let header = decode_header(token).map_err(|_| unreadable())?;
        if !self.algorithms.contains(&header.alg) {
            return Err(invalid("The token was signed with an algorithm that this gateway does not accept."));
        }
        // RFC 7515, 4.1.11: who does not understand what is critical has to refuse the token. We understand none.
        if header.crit.is_some() {
            return Err(invalid("The token demands an extension (crit) that this gateway does not have."));
        }
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err(invalid("This is no access token, but one of another type (typ)."));
        }
        // A second dot in there is no base64.
        let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| unreadable())?;
        let claims = serde_json::from_slice(&claims).map_err(|_| unreadable())?;
        Ok((Read { algorithm: header.alg, key_id: header.kid, message, signature }, claims))
    }
}

/// A token in its parts.
struct Read<'a> {
    algorithm: Algorithm,
    key_id: Option<String>,
    message: &'a str,
    signature: &'a str,
}

impl Read<'_> {
    fn signed(&self) -> Signed<'_> {
        Signed {
            algorithm: self.algorithm,
            key_id: self.key_id.as_deref(),
            message: self.message,
            signature: self.signature,
        }
    }
}

fn no_key() -> Refused {
    invalid(
        "The token was signed with a key that its issuer does not publish, or names no key where there are several.",
    )
}

/// RFC 9068, 2.1; most issuers write `JWT`.
fn is_access_token(kind: &str) -> bool {
    ["JWT", "at+jwt", "application/at+jwt"].iter().any(|good| kind.eq_ignore_ascii_case(good))
}

fn too_long() -> Refused {
    invalid("The token is longer than 16 KiB.")
}

fn algorithms(named: &[String]) -> Result<Vec<Algorithm>, String> {
    if named.is_empty() {
        return Ok(vec![Algorithm::RS256, Algorithm::ES256]);
    }
    let read = |name: &String| {
        let found = Algorithm::from_str(name).ok();
        let found = found.filter(|algorithm| algorithm.family() != AlgorithmFamily::Hmac);
        found.ok_or_else(|| {
            format!("`{name}` is no algorithm that tokens are accepted with; those are {ACCEPTED}")
        })
    };
    let mut seen = BTreeSet::new();
    named.iter().filter(|name| seen.insert(*name)).map(read).collect()
}

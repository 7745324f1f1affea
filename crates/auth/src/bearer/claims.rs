//! What a JWT says, compared with the rules.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use super::name::{MOST_GROUPS, check_groups, check_name};
use super::{Audience, By, JwtRules, Known, Refused};

/// The claims of a token.
pub(super) type Claims = Map<String, Value>;

/// Where a token counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum For {
    Everywhere,
    /// At these servers alone.
    Servers(Vec<String>),
}

impl For {
    #[cfg(test)]
    pub(super) const fn everybody() -> Self {
        Self::Everywhere
    }

    /// Whether it counts at `/mcp/NAME`, or at `/mcp` if there is no name.
    pub(super) fn check(&self, server: Option<&str>) -> Result<(), Refused> {
        match (self, server) {
            (Self::Everywhere, _) => Ok(()),
            (Self::Servers(names), Some(server)) if names.iter().any(|name| name == server) => Ok(()),
            _ => Err(invalid("The token is for another address of this gateway (claim aud).")),
        }
    }
}

pub(super) fn invalid(words: impl Into<String>) -> Refused {
    Refused::Invalid(words.into())
}

/// Who issued it and when it counts. This is looked at before the signature too, so that an old token, or one of another
/// issuer, costs nobody a fetch of keys. Returns until when it is accepted.
pub(super) fn check_times(claims: &Claims, rules: &JwtRules, now: SystemTime) -> Result<SystemTime, Refused> {
    if claims.get("iss").and_then(Value::as_str) != Some(rules.issuer.as_str()) {
        return Err(invalid(format!(
            "The token was not issued by {} (claim iss), the only issuer that this gateway accepts.",
            rules.issuer
        )));
    }
    let expires = time(claims, "exp")?.ok_or_else(|| invalid("The token never expires (no claim exp)."))?;
    let until = expires.checked_add(rules.leeway).ok_or_else(|| malformed("exp"))?;
    if now >= until {
        return Err(invalid("The token has expired. Get a new one."));
    }
    let latest = now.checked_add(rules.leeway).unwrap_or(now);
    for claim in ["nbf", "iat"] {
        if time(claims, claim)?.is_some_and(|from| from > latest) {
            return Err(invalid(format!(
                "The token counts from a later time on (claim {claim}). Compare the clocks of the gateway and of the issuer."
            )));
        }
    }
    Ok(until)
}

/// RFC 7519, 2: seconds since 1970, fractions allowed.
fn time(claims: &Claims, claim: &str) -> Result<Option<SystemTime>, Refused> {
    let Some(value) = claims.get(claim) else { return Ok(None) };
    let since = value.as_u64().map(Duration::from_secs);
    let since = since.or_else(|| Duration::try_from_secs_f64(value.as_f64()?).ok());
    let at = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    at.map(Some).ok_or_else(|| malformed(claim))
}

fn malformed(claim: &str) -> Refused {
    invalid(format!("The token's claim {claim} cannot be read."))
}

/// Whose a token is. Its signature and times have been checked.
pub(super) fn principal(
    claims: &Claims,
    rules: &JwtRules,
    until: SystemTime,
) -> Result<(Arc<Known>, For), Refused> {
    if is_another_kind(claims) {
        return Err(invalid("This is no access token, but one for another purpose, such as an ID token."));
    }
    let is_for = audience(claims, &rules.audience)?;
    let name = found(claims, &rules.principal).and_then(Value::as_str).ok_or_else(|| {
        invalid(format!("The token has no text in the claim {}, which holds the name.", rules.principal))
    })?;
    check_name(name)
        .map_err(|why| invalid(format!("The name in the token's claim {} {why}.", rules.principal)))?;
    let groups = groups(claims, &rules.groups)?;
    let has = scopes(claims);
    if !rules.scopes.iter().all(|scope| has.contains(&scope.as_str())) {
        return Err(Refused::Scope(rules.scopes.clone()));
    }
    let by = By::Jwt { issuer: rules.issuer.clone() };
    Ok((Arc::new(Known { name: name.to_owned(), groups, until: Some(until), by, stamp: 0 }), is_for))
}

/// Issuers sign ID tokens, refresh tokens and access tokens with the same keys; an ID token is for the client to read, and was
/// never meant to open anything. `OpenID` Connect Core, 3.1.3.6: the hashes stand in ID tokens. `typ` is Keycloak's claim,
/// `token_use` is Cognito's.
fn is_another_kind(claims: &Claims) -> bool {
    let is = |claim: &str, kinds: &[&str]| {
        claims.get(claim).and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
    };
    claims.contains_key("at_hash")
        || claims.contains_key("c_hash")
        || is("typ", &["ID", "Refresh", "Offline", "Logout"])
        || is("token_use", &["id", "refresh"])
}

fn audience(claims: &Claims, rule: &Audience) -> Result<For, Refused> {
    let stated: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => {
            several.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(|| malformed("aud"))?
        }
        Some(_) => return Err(malformed("aud")),
        None => vec![],
    };
    let servers = match rule {
        Audience::Listed(listed) => {
            if stated.iter().any(|one| listed.iter().any(|good| good == one)) {
                return Ok(For::Everywhere);
            }
            vec![]
        }
        Audience::Resource(base) => {
            let ours = stated.iter().filter_map(|one| one.strip_prefix(base.as_str())?.strip_prefix("/mcp"));
            let ours: Vec<&str> = ours.map(|rest| rest.strip_suffix('/').unwrap_or(rest)).collect();
            if ours.contains(&"") {
                return Ok(For::Everywhere);
            }
            let names = ours.into_iter().filter_map(|rest| rest.strip_prefix('/'));
            names.map(str::to_owned).collect()
        }
    };
    if servers.is_empty() {
        return Err(invalid(
            "The token is for somebody else (claim aud). Get one that is for this gateway, by its address.",
        ));
    }
    Ok(For::Servers(servers))
}

/// A claim of this name, or at this path. The name goes first: some contain dots, such as `https://example.com/groups`.
fn found<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let mut steps = path.split('.');
    let first = claims.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.as_object()?.get(step))
}

fn groups(claims: &Claims, path: &str) -> Result<Vec<String>, Refused> {
    let unreadable = || invalid(format!("The token's claim {path} does not hold groups."));
    let groups: Vec<String> = match found(claims, path) {
        None | Some(Value::Null) => vec![],
        // Too many are refused, not cut: a rule may be about the one that is missing.
        Some(Value::String(text)) => {
            text.split_whitespace().take(MOST_GROUPS + 1).map(str::to_owned).collect()
        }
        Some(Value::Array(several)) => several
            .iter()
            .take(MOST_GROUPS + 1)
            .map(|group| group.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(unreadable)?,
        Some(_) => return Err(unreadable()),
    };
    check_groups(&groups).map_err(|why| invalid(format!("The groups in the token's claim {path} {why}.")))?;
    Ok(groups)
}

/// RFC 8693, 4.2: `scope`, with spaces. Others write `scp`, as a list or likewise.
fn scopes(claims: &Claims) -> Vec<&str> {
    let mut all = Vec::new();
    for claim in ["scope", "scp"] {
        match claims.get(claim) {
            Some(Value::String(text)) => all.extend(text.split_whitespace()),
            Some(Value::Array(several)) if claim == "scp" => {
                all.extend(several.iter().filter_map(Value::as_str));
            }
            _ => {}
        }
    }
    all
}

//! Who verifies the tokens of the gateway's agents: what the config says, as rules, and what comes of a token, as a principal.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use linetender_auth::{Audience, BearerRules, By, JwtRules};
use linetender_gateway::config::{Jwt, Settings};
use linetender_gateway::{Bearers, Known, Refused, Shown, Verdict};

/// The realm of static tokens. No issuer is called so: those are addresses.
const TOKENS: &str = "tokens";

/// How names of a kind begin. An issuer that calls somebody so must not make it somebody else.
const TOKEN: &str = "token:";
const RESERVED: [&str; 4] = [TOKEN, "uid:", "ip:", "group:"];

/// Verifies the tokens of agents. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AgentTokens {
    bearers: linetender_auth::Bearers,
    /// The folder of the config file, where relative paths begin.
    folder: PathBuf,
}

impl AgentTokens {
    /// By these settings; none if agents need no tokens. `config` is the file that they stand in.
    pub(crate) fn of(settings: &Settings, config: &Path) -> Result<Option<Self>, String> {
        if !settings.auth.is_on() {
            return Ok(None);
        }
        let folder = config.parent().unwrap_or(Path::new("")).to_owned();
        let bearers = linetender_auth::Bearers::new(rules(settings, &folder))?;
        Ok(Some(Self { bearers, folder }))
    }

    /// By these settings from now on; if that is not possible, by those before.
    pub(crate) fn change(&self, settings: &Settings) -> Result<(), String> {
        self.bearers.change(rules(settings, &self.folder))
    }
}

fn rules(settings: &Settings, folder: &Path) -> BearerRules {
    let tokens = settings.auth.tokens.as_ref().map(|file| folder.join(file));
    BearerRules { tokens, jwt: settings.auth.jwt.as_ref().map(|jwt| of_issuer(jwt, settings)) }
}

fn of_issuer(jwt: &Jwt, settings: &Settings) -> JwtRules {
    let audience = match &settings.public_url {
        Some(url) if jwt.audience.is_empty() => Audience::Resource(url.clone()),
        _ => Audience::Listed(jwt.audience.clone()),
    };
    JwtRules {
        issuer: jwt.issuer.clone(),
        audience,
        algorithms: jwt.algorithms.clone(),
        jwks: jwt.jwks.clone(),
        leeway: Duration::from_millis(jwt.leeway),
        principal: jwt.principal.clone(),
        groups: jwt.groups.clone(),
        scopes: jwt.scopes.clone(),
    }
}

impl Bearers for AgentTokens {
    fn known(&self, token: &str, server: Option<&str>) -> Option<Verdict> {
        self.bearers.known(token, server).map(verdict)
    }

    fn check<'a>(
        &'a self,
        token: &'a str,
        server: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move { verdict(self.bearers.check(token, server).await) })
    }

    fn look(&self) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(self.bearers.look())
    }

    fn stands(&self, shown: &Shown<'_>) -> bool {
        match shown.name.strip_prefix(TOKEN).filter(|_| shown.realm == TOKENS) {
            Some(name) => self.bearers.has_token(name, shown.stamp, shown.groups),
            None => self.bearers.issuer().as_deref() == Some(shown.realm),
        }
    }

    fn issuer(&self) -> Option<String> {
        self.bearers.issuer()
    }

    fn scopes(&self) -> Vec<String> {
        self.bearers.scopes()
    }
}

fn verdict(checked: Result<Arc<linetender_auth::Known>, linetender_auth::Refused>) -> Verdict {
    use linetender_auth::Refused as Not;
    let known = checked.map_err(|refused| match refused {
        Not::Invalid(words) => Refused::Invalid(words),
        Not::Scope(needed) => Refused::Scope(needed),
        Not::Unavailable(words, after) => Refused::Unavailable(words, after),
    })?;
    let (name, realm) = match &known.by {
        By::Token => (format!("{TOKEN}{}", known.name), TOKENS.to_owned()),
        By::Jwt { .. } if RESERVED.iter().any(|begin| known.name.starts_with(begin)) => {
            return Err(Refused::Invalid("Its principal has a name that only linetender gives.".to_owned()));
        }
        By::Jwt { issuer } => (known.name.clone(), issuer.clone()),
    };
    Ok(Known { name, groups: known.groups.clone(), realm, until: known.until, stamp: known.stamp })
}

#[cfg(test)]
mod tests {
    use super::verdict;
    use linetender_auth::{By, Known};
    use std::sync::Arc;

    #[test]
    fn an_issuer_cannot_name_somebody_whom_only_the_gateway_names() {
        let of = |name: &str, by| {
            let known = Known { name: name.to_owned(), groups: Vec::new(), until: None, by, stamp: 0 };
            verdict(Ok(Arc::new(known))).map(|known| (known.name, known.realm))
        };
        let issuer = || By::Jwt { issuer: "https://issuer".to_owned() };
        assert_eq!(of("ci", By::Token).unwrap(), ("token:ci".into(), "tokens".into()));
        assert_eq!(of("alice", issuer()).unwrap(), ("alice".into(), "https://issuer".into()));
        for name in ["token:ci", "uid:0", "ip:127.0.0.1", "group:ops"] {
            assert!(of(name, issuer()).is_err(), "{name}");
        }
    }
}

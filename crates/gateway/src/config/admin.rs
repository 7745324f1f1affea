//! The admin address: where it is, and which token opens it. It stays data here: whoever runs the gateway opens it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::expand::FILE;

/// Address for administrators: status, events, orders and metrics over HTTP. Off without `listen`.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Admin {
    /// Address and port. Any address but loopback needs TLS (`tls_certificate` and `tls_key` of the gateway, which this address then uses
    /// too), or `insecure = true`.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// Token that every request has to show (`Authorization: Bearer`), at least 16 characters: `"${file:PATH}"`, `"${VARIABLE}"`, or the token
    /// itself. A relative path begins at the folder of the config file; a changed file is used within a second.
    #[schemars(with = "Option<String>")]
    pub token: Option<AdminToken>,
    /// Listen on an address other than loopback without TLS: everybody on the way can read the token.
    pub insecure: bool,
    /// Additional host names allowed in the Host header; localhost and IP addresses always are.
    pub allowed_hosts: Vec<String>,
}

/// Where the token comes from.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "String", into = "String")]
pub enum AdminToken {
    /// This is the token.
    Text(String),
    /// It stands in this file.
    File(PathBuf),
}

impl From<String> for AdminToken {
    fn from(text: String) -> Self {
        match text.strip_prefix(FILE).and_then(|rest| rest.strip_suffix('}')) {
            Some(path) => Self::File(path.into()),
            None => Self::Text(text),
        }
    }
}

impl From<AdminToken> for String {
    fn from(token: AdminToken) -> Self {
        match token {
            AdminToken::Text(text) => text,
            AdminToken::File(path) => format!("{FILE}{}}}", path.display()),
        }
    }
}

/// The token stays secret.
impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl Admin {
    /// What is wrong with it, if anything is, and what to do. `has_tls`: the gateway has a certificate.
    pub(super) fn wrong(&self, has_tls: bool) -> Option<(String, &'static str)> {
        let token =
            "add token = \"${file:/path/to/token}\" to [gateway.admin]; openssl rand -hex 32 makes one";
        match (self.listen, &self.token) {
            (None, None) if self.insecure || !self.allowed_hosts.is_empty() => {
                Some(("[gateway.admin] has no listen".to_owned(), "add listen = \"127.0.0.1:7332\""))
            }
            (None, None) => None,
            (None, Some(_)) => Some((
                "[gateway.admin] has a token and no listen".to_owned(),
                "add listen = \"127.0.0.1:7332\"",
            )),
            (Some(_), None) => Some(("gateway.admin.listen needs a token".to_owned(), token)),
            (Some(_), Some(AdminToken::Text(text))) if text.contains(FILE) => Some((
                "gateway.admin.token is not a file and nothing else".to_owned(),
                "write token = \"${file:/path/to/token}\"",
            )),
            (Some(address), Some(_))
                if !address.ip().to_canonical().is_loopback() && !has_tls && !self.insecure =>
            {
                Some((
                    format!("refusing the admin address {address}: its token would travel unencrypted"),
                    "set tls_certificate and tls_key in [gateway], listen on 127.0.0.1 or [::1], or accept that with insecure = true in \
                     [gateway.admin]",
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admin, AdminToken};

    #[test]
    fn an_admin_address_needs_a_token_and_other_addresses_than_loopback_tls() {
        let of = |listen: &str, token: Option<&str>, insecure, tls| {
            let listen =
                Some(listen).filter(|listen| !listen.is_empty()).map(|listen| listen.parse().unwrap());
            let token = token.map(|token| AdminToken::from(token.to_owned()));
            Admin { listen, token, insecure, ..Admin::default() }.wrong(tls).is_none()
        };
        let token = Some("${file:/run/token}");
        assert!(of("", None, false, false), "it is off");
        assert!(of("127.0.0.1:1", token, false, false) && of("[::1]:1", token, false, false));
        assert!(!of("127.0.0.1:1", None, false, false) && !of("", token, false, false));
        assert!(!of("127.0.0.1:1", Some("a${file:/run/token}"), false, false));
        assert!(!of("0.0.0.0:1", token, false, false) && !of("192.168.1.5:1", token, false, false));
        assert!(of("0.0.0.0:1", token, true, false) && of("0.0.0.0:1", token, false, true));
    }

    #[test]
    fn a_token_is_written_as_it_is_read_and_never_shown() {
        for text in ["${file:/run/a b}", "secret-secret-secret"] {
            let token = AdminToken::from(text.to_owned());
            assert!(!format!("{token:?}").contains("secret"));
            assert_eq!(String::from(token), text);
        }
    }
}

//! Where the credentials of a server come from, if they change while it is held. It stays data here: whoever runs the
//! gateway makes [`Keys`](linetender::Keys) of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::expand::FILE;

/// Where the credentials of a server come from, beside the headers that never change.
#[derive(Clone, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Auth {
    /// From nowhere else.
    #[default]
    Fixed,
    /// From files: names and values of headers, in which `${file:PATH}` stands for what the file holds whenever it is read.
    Files(Vec<(String, String)>),
    /// From a program and its arguments.
    Command(Vec<String>),
    /// From a login, if the server wants one.
    Login(Box<OAuth>),
}

/// As whom linetender logs in (OAuth). Where nothing is said, it registers itself, and a person logs in.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct OAuth {
    /// The server's address.
    pub url: String,
    /// The client that was registered by hand.
    pub client_id: Option<String>,
    /// Its secret, in which `${file:PATH}` stands for what a file holds.
    pub client_secret: Option<String>,
    /// The https address of a client ID metadata document.
    pub client_metadata_url: Option<String>,
    /// The scopes to ask for.
    pub scopes: Vec<String>,
    /// The authorization server for which the client was registered.
    pub issuer: Option<String>,
    /// Who logs in.
    pub grant: Grant,
    /// A file with the private key that a machine signs with, as PEM.
    pub private_key: Option<PathBuf>,
    /// How it signs.
    pub algorithm: Algorithm,
    /// Which of the client's keys it is.
    pub key_id: Option<String>,
}

/// Who logs in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// A machine, with the client's secret or private key.
    ClientCredentials,
}

/// Signature algorithm of a machine's private key.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
pub enum Algorithm {
    /// ECDSA on P-256.
    #[default]
    #[serde(rename = "ES256")]
    Es256,
    /// RSA.
    #[serde(rename = "RS256")]
    Rs256,
}

/// How to get credentials: from a program, or by a login (OAuth). Without any of it, linetender registers itself with the
/// authorization server that the server names, and `linetender login NAME` logs in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct AuthTable {
    /// Program and arguments that print the credentials: a token, or a JSON object of headers. It runs before each connection, and
    /// when the server refuses the last ones.
    pub(super) command: Option<Vec<String>>,
    /// OAuth client that was registered by hand.
    client_id: Option<String>,
    /// Secret of that client. `${file:PATH}` stands for what the file holds.
    client_secret: Option<String>,
    /// https URL of a client ID metadata document.
    client_metadata_url: Option<String>,
    /// Scopes to ask for, instead of those that the server names.
    scopes: Vec<String>,
    /// Authorization server for which the client was registered. No other one gets to see the client. Needed with a secret or a
    /// private key.
    issuer: Option<String>,
    /// Who logs in: a person in a browser, or this machine with the client's secret or private key.
    grant: Grant,
    /// File with the private key (PEM) that this machine signs with, instead of a secret.
    private_key: Option<PathBuf>,
    /// Signature algorithm of the private key.
    algorithm: Algorithm,
    /// ID of the private key, if the client has several.
    key_id: Option<String>,
}

impl Auth {
    /// What the table of a server says; headers that name files are taken out of the others.
    pub(super) fn of(
        table: Option<AuthTable>,
        url: Option<&str>,
        headers: &mut BTreeMap<String, String>,
    ) -> Result<Self, &'static str> {
        let named: Vec<String> =
            headers.iter().filter(|(_, value)| value.contains(FILE)).map(|(name, _)| name.clone()).collect();
        let files: Vec<(String, String)> =
            named.into_iter().filter_map(|name| headers.remove_entry(&name)).collect();
        let is_fixed = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let Some(url) = url else { return Ok(Self::Fixed) };
        let Some(mut table) = table else {
            return Ok(match files.is_empty() {
                false => Self::Files(files),
                // A socket is on this machine, and says itself whom it lets in.
                true if is_fixed || url.starts_with("unix:") => Self::Fixed,
                true => Self::Login(Box::new(OAuth { url: url.to_owned(), ..OAuth::default() })),
            });
        };
        let command = table.command.take();
        let oauth = table.oauth(url);
        let is_login = oauth != OAuth { url: url.to_owned(), ..OAuth::default() };
        match (command, files.is_empty()) {
            (Some(_), _) if is_login => Err("auth.command and the other keys of auth are mutually exclusive"),
            (Some(command), _) if command.first().is_none_or(String::is_empty) => {
                Err("auth.command is empty: it needs the program that prints the credentials")
            }
            (Some(command), true) => Ok(Self::Command(command)),
            (Some(_), false) => Err("auth.command and ${file:…} in headers are mutually exclusive"),
            (None, false) => Err("auth and ${file:…} in headers are mutually exclusive"),
            (None, true) if is_fixed => Err("auth and an Authorization header are mutually exclusive"),
            (None, true) if url.starts_with("unix:") => Err("auth is for servers with an https URL"),
            (None, true) => oauth.checked().map(|oauth| Self::Login(Box::new(oauth))),
        }
    }
}

impl AuthTable {
    fn oauth(self, url: &str) -> OAuth {
        OAuth {
            url: url.to_owned(),
            client_id: self.client_id,
            client_secret: self.client_secret,
            client_metadata_url: self.client_metadata_url,
            scopes: self.scopes,
            issuer: self.issuer,
            grant: self.grant,
            private_key: self.private_key,
            algorithm: self.algorithm,
            key_id: self.key_id,
        }
    }
}

impl OAuth {
    fn checked(self) -> Result<Self, &'static str> {
        let is_machine = self.grant == Grant::ClientCredentials;
        let proofs = usize::from(self.client_secret.is_some()) + usize::from(self.private_key.is_some());
        match (&self.client_id, is_machine) {
            (None, _) if proofs > 0 => Err("client_secret and private_key need a client_id"),
            (None, true) => Err("grant = \"client_credentials\" needs a client_id"),
            // Whoever holds the server names its authorization server, and could name one of its own.
            _ if proofs > 0 && self.issuer.is_none() => Err(
                "client_secret and private_key need an issuer: the authorization server that may see them",
            ),
            (_, true) if proofs != 1 => {
                Err("grant = \"client_credentials\" needs a client_secret or a private_key, and not both")
            }
            (_, false) if self.private_key.is_some() => {
                Err("private_key needs grant = \"client_credentials\"")
            }
            _ => Ok(self),
        }
    }
}

/// What is secret of it stays so.
impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("client_id", &self.client_id)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// A value may hold a secret besides the file, and so may an argument.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => f.write_str("Fixed"),
            Self::Files(headers) => {
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                f.debug_tuple("Files").field(&names).finish()
            }
            Self::Command(argv) => f.debug_tuple("Command").field(&argv.first()).finish(),
            Self::Login(oauth) => f.debug_tuple("Login").field(oauth).finish(),
        }
    }
}

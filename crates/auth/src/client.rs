//! What the user configured for one server: as whom linetender presents itself.

use crate::secret::Secret;

/// As whom linetender presents itself to the authorization server of one server. The default is what works for most: nothing
/// is configured, and linetender registers itself.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The client that was registered by hand.
    pub id: Option<String>,
    /// Its secret, if it has one.
    pub secret: Option<Secret>,
    /// The authorization server for which that client was registered. Another one never gets to see it, and a secret or key
    /// goes nowhere without it: who named the authorization server would be the MCP server, not the user.
    pub issuer: Option<String>,
    /// The https address of a client ID metadata document.
    pub metadata_url: Option<String>,
    /// The scopes to ask for, in place of those that the server names.
    pub scopes: Vec<String>,
    /// Who logs in.
    pub grant: Grant,
}

/// Who logs in.
#[derive(Clone, Debug, Default)]
pub enum Grant {
    /// A person, in a browser.
    #[default]
    Person,
    /// A machine, with the client's secret.
    Machine,
    /// A machine, with a private key.
    MachineKey(PrivateKey),
}

/// A private key that signs assertions (`private_key_jwt`).
#[derive(Clone, Debug)]
pub struct PrivateKey {
    /// PKCS#8, SEC1 or PKCS#1, as PEM.
    pub pem: Secret,
    /// How it signs.
    pub algorithm: Algorithm,
    /// Which of the client's keys it is, if it has several.
    pub key_id: Option<String>,
}

/// How an assertion is signed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSA (PKCS#1 v1.5) with SHA-256.
    Rs256,
}

impl Client {
    /// Whether it has something that only its own authorization server may see.
    pub(crate) const fn has_secret(&self) -> bool {
        self.secret.is_some() || matches!(self.grant, Grant::MachineKey(_))
    }

    /// Whether what this issuer gave out was given to this client.
    pub(crate) fn is_of(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_none_or(|own| own == issuer)
    }
}

impl Grant {
    pub(crate) const fn is_machine(&self) -> bool {
        !matches!(self, Self::Person)
    }
}

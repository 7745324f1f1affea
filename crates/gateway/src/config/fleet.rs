//! Whether this gateway is one of several that share their servers, and how they find each other. It stays data here: whoever runs
//! the gateway joins.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::time;

/// The shortest lease: several round trips to NATS fit into each of its parts.
const SHORTEST: u64 = 4_000;

/// The longest lease: nobody waits longer for a gateway that is gone.
const LONGEST: u64 = 10 * 60 * 1000;

/// Several gateways that share their servers, and NATS between them. Off without `nats`.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Fleet {
    /// Addresses of the NATS servers: `nats://host:4222` or `tls://host:4222`. They need `JetStream`.
    pub nats: Vec<String>,
    /// Name of the fleet: gateways with the same name share their servers. Letters, digits, `-` and `_`.
    pub name: String,
    /// Name of this gateway, which no other gateway of the fleet has. Without it: the host name.
    pub node: Option<String>,
    /// How many NATS servers keep the directory. Without it: as many as `nats` has, three at most.
    pub replicas: Option<usize>,
    /// File with the seed of the nkey that this gateway shows to NATS (absolute path), which other users cannot read.
    pub nkey_file: Option<PathBuf>,
    /// Certificates of authorities that NATS is verified by, in addition to those of the system: a PEM file (absolute path).
    pub tls_ca: Option<PathBuf>,
    /// Certificate that this gateway shows to NATS: a PEM file (absolute path). Needs `tls_key`.
    pub tls_certificate: Option<PathBuf>,
    /// Private key of `tls_certificate`: a PEM file (absolute path) that other users cannot read.
    pub tls_key: Option<PathBuf>,
    /// How long a gateway owns a server without hearing from NATS. Another one starts the server of a gateway that is gone after a tenth
    /// more than that. The same in all gateways.
    #[schemars(schema_with = "time")]
    pub lease: u64,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            nats: Vec::new(),
            name: "linetender".to_owned(),
            node: None,
            replicas: None,
            nkey_file: None,
            tls_ca: None,
            tls_certificate: None,
            tls_key: None,
            lease: 20_000,
        }
    }
}

impl Fleet {
    /// Whether this gateway is one of several.
    pub fn is_on(&self) -> bool {
        !self.nats.is_empty()
    }

    /// Which setting is wrong, if any is, and what is wrong with it.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        let is_word = |word: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=64).contains(&word.len()) && word.bytes().all(fits)
        };
        let is_address = |address: &String| {
            let rest = address.strip_prefix("nats://").or_else(|| address.strip_prefix("tls://"));
            rest.is_some_and(|rest| !rest.is_empty())
        };
        if !self.is_on() {
            let differs = *self != Self::default();
            return differs.then(|| {
                ("nats", "[gateway.fleet] has no nats: add nats = [\"nats://host:4222\"]".to_owned())
            });
        }
        if let Some(address) = self.nats.iter().find(|address| !is_address(address)) {
            return Some(("nats", format!("`{address}` is no address of NATS, such as nats://host:4222")));
        }
        if !is_word(&self.name) {
            return Some(("name", "name must be letters, digits, `-` and `_`, at most 64".to_owned()));
        }
        if self.node.as_ref().is_some_and(|node| node.is_empty() || node.len() > 200) {
            return Some(("node", "node must not be empty, nor longer than 200 bytes".to_owned()));
        }
        if self.replicas.is_some_and(|replicas| !matches!(replicas, 1 | 3 | 5)) {
            return Some(("replicas", "replicas must be 1, 3 or 5".to_owned()));
        }
        if !(SHORTEST..=LONGEST).contains(&self.lease) {
            return Some(("lease", "lease must be between 4 seconds and 10 minutes".to_owned()));
        }
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            return Some(("tls_key", "tls_certificate and tls_key need each other".to_owned()));
        }
        let paths = [
            ("nkey_file", &self.nkey_file),
            ("tls_ca", &self.tls_ca),
            ("tls_certificate", &self.tls_certificate),
            ("tls_key", &self.tls_key),
        ];
        paths.into_iter().find_map(|(name, path)| {
            path.as_ref()
                .is_some_and(|path| !path.is_absolute())
                .then(|| (name, format!("{name} must be an absolute path")))
        })
    }
}

/// Where a server with a command runs in a fleet.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Placed {
    /// In one gateway at a time.
    #[default]
    One,
    /// In each gateway: for servers without a memory.
    Each,
}

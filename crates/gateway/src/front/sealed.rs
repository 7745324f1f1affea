//! Session ids that any gateway of a fleet can read: what a session is made of, sealed with a key that all of them have.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::kin::Kin;
use crate::listing::Endpoint;
use crate::principal::{Principal, Spelt};

/// What sealed ids begin with. Another form gets another beginning.
const FORM: &str = "lt1";

/// The longest greeting that is sealed: agents send it with each request.
const HELLO: usize = 3 * 1024;

/// The longest text that may be a seal.
const LONGEST: usize = 16 * 1024;

const DAY: u64 = 24 * 60 * 60;
const NONCE: usize = 12;

/// What a session is made of.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Made {
    /// The gateway where it began.
    pub(super) node: u64,
    /// No two have the same.
    chance: u64,
    /// The server, if it is one server's.
    server: Option<String>,
    /// Whose it is: who says so, and the name.
    realm: Option<String>,
    name: String,
    /// The agent's `initialize`, if it is short enough.
    pub(super) hello: Option<String>,
    /// When it began, in seconds since 1970.
    issued: u64,
}

impl Made {
    pub(super) fn new(node: u64, endpoint: &Endpoint, principal: &Principal, hello: &[u8]) -> Option<Self> {
        let mut chance = [0; 8];
        getrandom::fill(&mut chance).ok()?;
        let Spelt { realm, name, .. } = principal.spelt();
        let hello = (hello.len() <= HELLO).then(|| String::from_utf8(hello.to_vec()).ok()).flatten();
        let (chance, issued) = (u64::from_le_bytes(chance), seconds());
        Some(Self { node, chance, server: endpoint.server().map(str::to_owned), realm, name, hello, issued })
    }

    /// Whether it is this principal's, at this address.
    pub(super) fn is_of(&self, endpoint: &Endpoint, principal: &Principal) -> bool {
        let Spelt { realm, name, .. } = principal.spelt();
        self.server.as_deref() == endpoint.server() && self.realm == realm && self.name == name
    }
}

/// Something sealed with the key of this day, as text; `None` if there is no key now.
pub(super) async fn seal(kin: &dyn Kin, what: &impl Serialize) -> Option<String> {
    let day = seconds() / DAY;
    let key = RandomizedNonceKey::new(&AES_256_GCM, &kin.key(day).await?).ok()?;
    let mut text = serde_json::to_vec(what).ok()?;
    let nonce = key.seal_in_place_append_tag(Aad::from(FORM), &mut text).ok()?;
    let whole = [nonce.as_ref().as_slice(), &text].concat();
    Some(format!("{FORM}.{day}.{}", BASE64.encode(whole)))
}

/// Why something was not opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Closed {
    /// None of us sealed it, or too long ago.
    Foreign,
    /// It may be ours: this gateway has no key of that day now.
    NoKey,
}

/// What was sealed, if it was by one of us, and not too long ago.
pub(super) async fn open<T: DeserializeOwned>(kin: &dyn Kin, text: &str) -> Result<T, Closed> {
    let (day, sealed) = parts(text).ok_or(Closed::Foreign)?;
    let known = kin.known_keys(day, false).await;
    if let Some(opened) = known.iter().find_map(|key| opened(key, sealed.clone())) {
        return Ok(opened);
    }
    // The key that all had may be lost, and another one made by somebody who did not know it.
    let now = kin.known_keys(day, true).await;
    let opened = now.iter().filter(|key| !known.contains(key)).find_map(|key| opened(key, sealed.clone()));
    opened.ok_or(if now.is_empty() { Closed::NoKey } else { Closed::Foreign })
}

/// The day of a seal, and what is sealed.
fn parts(text: &str) -> Option<(u64, Vec<u8>)> {
    if text.len() > LONGEST {
        return None;
    }
    let (day, sealed) = text.strip_prefix(FORM)?.strip_prefix('.')?.split_once('.')?;
    let day: u64 = day.parse().ok()?;
    // Keys of other days are not asked for: anybody could name any number of them.
    let near = seconds().div_euclid(DAY).abs_diff(day) <= 1;
    Some((day, BASE64.decode(sealed).ok().filter(|_| near)?))
}

fn opened<T: DeserializeOwned>(key: &[u8; 32], mut sealed: Vec<u8>) -> Option<T> {
    let key = RandomizedNonceKey::new(&AES_256_GCM, key).ok()?;
    let (nonce, text) = sealed.split_at_mut_checked(NONCE)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let opened = key.open_in_place(nonce, Aad::from(FORM), text).ok()?;
    serde_json::from_slice(opened).ok()
}

#[expect(clippy::disallowed_methods, reason = "keys are made by the day")]
fn seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

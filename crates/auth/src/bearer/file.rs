//! The file of static tokens, and its changes.
//!
//! It holds hashes, so that who reads it cannot use what stands there. Plain SHA-256 is enough for that: a token has 256 random
//! bits, so there is nothing to guess that a slow hash or a salt would make dearer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use humantime::{format_rfc3339_seconds, parse_rfc3339};
use linetender_holder::trusted;
use linetender_wire::wall::wall_clock;
use serde::Deserialize;

use super::STATIC;
use super::cache::Hash;
use super::name::{check_groups, check_name};
use crate::encode::sha256;
use crate::error::{Error, ErrorKind};
use crate::secret::Secret;
use crate::store::{Lock, Taken, lock_file, replace_file};

/// The largest file that is read.
const LARGEST: u64 = 16 << 20;

/// How long to wait for another process that changes the file.
const LOCK_WAIT: Duration = Duration::from_secs(10);

const HEAD: &str = "# Tokens of agents: hashes, not the tokens themselves. `linetender token` writes this file, and keeps no comments.\n";

/// A file of static tokens, as `linetender token` changes it.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

/// What stands in the file about a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenEntry {
    /// Whose it is.
    pub name: String,
    /// The groups of whoever presents it.
    pub groups: Vec<String>,
    /// When it was made.
    pub created: Option<SystemTime>,
    /// Until when it is accepted; for ever, if it does not say.
    pub expires: Option<SystemTime>,
}

/// A token that was just made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The token itself, which is stored nowhere.
    pub token: Secret,
    /// Until when it is accepted.
    pub expires: Option<SystemTime>,
}

/// A token of the file.
pub(super) struct Entry {
    pub(super) hash: Hash,
    pub(super) about: TokenEntry,
}

/// Why there are no tokens.
pub(super) enum Unread {
    Missing,
    Bad(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    tokens: BTreeMap<String, Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    hash: String,
    #[serde(default)]
    groups: Vec<String>,
    created: Option<String>,
    expires: Option<String>,
}

/// The tokens in a file, sorted by name. Whoever can write it can be anybody, so nobody else may.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, Unread> {
    let bad = |why: String| Unread::Bad(format!("the token file {} cannot be used: {why}", path.display()));
    let (file, _) = trusted::read_named(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unread::Missing,
        _ if error.raw_os_error().is_some() => bad(error.to_string()),
        _ => bad(format!("it {error}")),
    })?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| bad(error.to_string()))?;
    if text.len() as u64 > LARGEST {
        return Err(bad(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    parse(&text).map_err(bad)
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let document: Document = toml::from_str(text).map_err(|error| {
        // Only the place: somebody may have put a token there.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {} is not what `linetender token` writes", before.matches('\n').count() + 1)
    })?;
    let entries: Vec<Entry> =
        document.tokens.into_iter().map(|(name, written)| entry(name, written)).collect::<Result<_, _>>()?;
    let different: BTreeSet<&Hash> = entries.iter().map(|entry| &entry.hash).collect();
    if different.len() < entries.len() {
        return Err("two names have the same hash".to_owned());
    }
    Ok(entries)
}

fn entry(name: String, written: Written) -> Result<Entry, String> {
    check_name(&name).map_err(|why| format!("a name in it {why}"))?;
    let of = |what: &str| format!("the {what} of {name} cannot be read");
    check_groups(&written.groups).map_err(|why| format!("the groups of {name} {why}"))?;
    let time = |what: &str, text: Option<&String>| {
        text.map(|text| parse_rfc3339(text)).transpose().map_err(|_| of(what))
    };
    let hash = written.hash.strip_prefix("sha256:").and_then(unhex).ok_or_else(|| of("hash"))?;
    let created = time("creation time", written.created.as_ref())?;
    let expires = time("expiry time", written.expires.as_ref())?;
    Ok(Entry { hash, about: TokenEntry { name, groups: written.groups, created, expires } })
}

fn unhex(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

fn render(entries: &[Entry]) -> String {
    let mut text = HEAD.to_owned();
    for Entry { hash, about } in entries {
        let (high, low) = hash.split_at(16);
        let half = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().unwrap_or_default());
        let hash = format!("{:032x}{:032x}", half(high), half(low));
        let groups: Vec<String> = about.groups.iter().map(|group| quoted(group)).collect();
        // Writing to a string does not fail.
        let _ = write!(text, "\n[tokens.{}]\nhash = \"sha256:{hash}\"\n", quoted(&about.name));
        if !groups.is_empty() {
            let _ = writeln!(text, "groups = [{}]", groups.join(", "));
        }
        for (key, at) in [("created", about.created), ("expires", about.expires)] {
            if let Some(at) = at {
                let _ = writeln!(text, "{key} = \"{}\"", format_rfc3339_seconds(at));
            }
        }
    }
    text
}

/// A TOML string. Names and groups have no control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The year 10000: RFC 3339 has four digits for it.
fn latest() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800)
}

impl TokenEntry {
    /// Whether it is accepted no longer.
    pub fn is_expired(&self) -> bool {
        self.expires.is_some_and(|until| wall_clock() >= until)
    }
}

impl TokenFile {
    /// The file at this place. It need not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// All tokens, sorted by name. None if there is no file.
    ///
    /// # Errors
    /// If it cannot be read, or others than this user could have written it.
    pub fn list(&self) -> Result<Vec<TokenEntry>, Error> {
        Ok(self.entries()?.into_iter().map(|entry| entry.about).collect())
    }

    /// Makes a token. Only its hash is stored: what is returned cannot be shown again.
    ///
    /// # Errors
    /// If there is one of this name, the name or a group cannot be used, or the file cannot be read or written.
    pub async fn add(
        &self,
        name: &str,
        groups: &[String],
        lasts: Option<Duration>,
    ) -> Result<NewToken, Error> {
        let expires = lasts.map(|lasts| {
            let until = wall_clock().checked_add(lasts).filter(|until| *until < latest());
            until.ok_or_else(|| Error::new(ErrorKind::Config, "the token would be valid for too long"))
        });
        let expires = expires.transpose()?;
        Ok(NewToken { token: self.add_until(name, groups, expires).await?, expires })
    }

    pub(super) async fn add_until(
        &self,
        name: &str,
        groups: &[String],
        expires: Option<SystemTime>,
    ) -> Result<Secret, Error> {
        let config = |words: String| Error::new(ErrorKind::Config, words);
        check_name(name).map_err(|why| config(format!("the name of a token {why}")))?;
        check_groups(groups).map_err(|why| config(format!("the groups of a token {why}")))?;
        if let Some(folder) =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        {
            let doing = format_args!("make the folder {}", folder.display());
            trusted::folder(folder).map_err(|error| Error::store(doing, &error))?;
        }
        let _lock = self.lock().await?;
        let mut entries = self.entries()?;
        if entries.iter().any(|entry| entry.about.name == name) {
            return Err(config(format!(
                "there is a token of {name} in {}; remove it first: linetender token remove {name}",
                self.path.display()
            )));
        }
        let random = Secret::random().map_err(Error::no_randomness)?;
        let token = Secret::new(format!("{STATIC}{}", random.expose()));
        let about = TokenEntry {
            name: name.to_owned(),
            groups: groups.to_owned(),
            created: Some(wall_clock()),
            expires,
        };
        entries.push(Entry { hash: sha256(token.expose()), about });
        entries.sort_by(|one, other| one.about.name.cmp(&other.about.name));
        self.write(&entries)?;
        Ok(token)
    }

    /// Removes a token. Gateways that use the file refuse it within a second. `false` if there was none of this name.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub async fn remove(&self, name: &str) -> Result<bool, Error> {
        if self.entries()?.iter().all(|entry| entry.about.name != name) {
            return Ok(false);
        }
        let _lock = self.lock().await?;
        let mut entries = self.entries()?;
        let before = entries.len();
        entries.retain(|entry| entry.about.name != name);
        if entries.len() == before {
            return Ok(false);
        }
        self.write(&entries)?;
        Ok(true)
    }

    fn entries(&self) -> Result<Vec<Entry>, Error> {
        match read(&self.path) {
            Ok(entries) => Ok(entries),
            Err(Unread::Missing) => Ok(vec![]),
            Err(Unread::Bad(words)) => Err(Error::new(ErrorKind::Store, words)),
        }
    }

    /// Two that change the file at once must not lose what one of them wrote.
    async fn lock(&self) -> Result<Lock, Error> {
        let mut path = self.real().into_os_string();
        path.push(".lock");
        match lock_file(Path::new(&path), LOCK_WAIT).await? {
            Taken::Ours(lock) => Ok(lock),
            Taken::Theirs(pid) => {
                let who = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                let words =
                    format!("{who} is changing the token file {} and does not finish", self.path.display());
                Err(Error::new(ErrorKind::Busy, words))
            }
        }
    }

    fn write(&self, entries: &[Entry]) -> Result<(), Error> {
        let doing = format_args!("write the token file {}", self.path.display());
        replace_file(&self.real(), render(entries).as_bytes()).map_err(|error| Error::store(doing, &error))
    }

    /// Where the file really is: a link to it stays one.
    fn real(&self) -> PathBuf {
        self.path
            .canonicalize()
            .unwrap_or_else(|_| std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()))
    }
}

//! Credentials that another program keeps: headers out of files, or printed by a command. They are read again whenever the
//! line asks, which is at every dial and after every refusal.

mod command;
mod watch;

use std::borrow::Cow;
use std::future::Future;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use linetender::{Key, Keys, NoKey, Redacted, Refused};
use linetender_holder::trusted;
use linetender_wire::aside;
use tokio::sync::watch as channel;

use crate::encode::{base64url, sha256};
use crate::secret::Secret;

/// The longest value of a header, and the longest file that one is read from.
const LONGEST: usize = 32 * 1024;

/// After how many failures in a row somebody is called.
const FAILURES: u32 = 3;

/// The most headers.
const MOST: usize = 32;

/// Where headers come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Names and values; in a value `${file:PATH}` stands for what the file holds, without the line break at its end.
    Headers(Vec<(String, Secret)>),
    /// A program and its arguments. It prints a token, or a JSON object of headers, within 10 s and 64 KiB.
    Command(Vec<String>),
}

/// Headers that are read again whenever they are needed.
pub struct HeaderKeys {
    source: Source,
    changes: Arc<channel::Sender<u64>>,
    is_followed: AtomicBool,
    /// How often in a row they could not be read.
    failures: AtomicU32,
    /// Values that were handed out last.
    recent: Mutex<Vec<Secret>>,
}

impl HeaderKeys {
    /// Out of this source.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            changes: Arc::new(channel::channel(0).0),
            is_followed: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            recent: Mutex::default(),
        }
    }

    async fn read(&self) -> Result<HeaderMap, String> {
        let values = match &self.source {
            Source::Command(argv) => command::headers(argv).await?,
            Source::Headers(templates) => {
                let templates = templates.clone();
                let filled = aside(move || {
                    templates.iter().map(|(name, value)| Ok((name.clone(), filled(value)?))).collect()
                });
                filled
                    .await
                    .unwrap_or_else(|| Err("linetender failed while it read a file (a bug)".to_owned()))?
            }
        };
        let headers = headers(&values)?;
        *self.recent.lock().unwrap_or_else(PoisonError::into_inner) =
            values.into_iter().map(|(_, value)| value).collect();
        Ok(headers)
    }

    /// A file that is just being replaced, or a command that could not reach its service, is tried again before anybody is
    /// called.
    fn failed(&self, words: &str) -> NoKey {
        let words = Redacted::head(words, 900);
        match self.failures.fetch_add(1, Ordering::AcqRel) {
            before if before + 1 < FAILURES => NoKey::Later { words, after: None },
            _ => NoKey::Login { words },
        }
    }

    fn whence(&self) -> String {
        match &self.source {
            Source::Headers(_) => "the configured headers and files".to_owned(),
            Source::Command(argv) => format!("the command {}", argv.first().map_or("", String::as_str)),
        }
    }
}

impl Keys for HeaderKeys {
    fn key(
        self: Arc<Self>,
        refused: Option<Refused>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Key>, NoKey>> + Send>> {
        Box::pin(async move {
            let headers = self.read().await.map_err(|words| self.failed(&words))?;
            self.failures.store(0, Ordering::Release);
            let sent = refused.as_ref().and_then(|refused| refused.key.as_ref());
            if sent.is_some_and(|sent| *sent.headers == headers) {
                let status = refused.map_or(401, |refused| refused.status);
                let words = format!(
                    "the server refused the credentials (status {status}); linetender has read them again from {}, and they are the same. Renew them there",
                    self.whence()
                );
                return Err(NoKey::Login { words: Redacted::head(&words, 900) });
            }
            Ok(Some(Key { headers: Arc::new(headers), renew_at: None }))
        })
    }

    fn changes(&self) -> channel::Receiver<u64> {
        if let Source::Headers(headers) = &self.source
            && !self.is_followed.swap(true, Ordering::AcqRel)
        {
            let files: Vec<_> =
                headers.iter().flat_map(|(_, value)| files_in(value)).map(PathBuf::from).collect();
            if !files.is_empty() {
                watch::follow(files, &self.changes);
            }
        }
        self.changes.subscribe()
    }

    /// Where they come from: names and files with a hash of whole values, a program with one of its arguments. Values and arguments
    /// may be secrets.
    fn identity(&self) -> Cow<'_, str> {
        match &self.source {
            Source::Command(argv) => {
                let hash = base64url(&sha256(&argv.join("\0")));
                format!("command {} {hash}", argv.first().map_or("", String::as_str)).into()
            }
            Source::Headers(headers) => {
                let shown = headers.iter().map(|(name, value)| {
                    format!("{name}: {}", files_in(value).collect::<Vec<_>>().join(" "))
                });
                // What stands around a file is sent too.
                let values: Vec<_> =
                    headers.iter().map(|(name, value)| format!("{name:?} {:?}", value.expose())).collect();
                let hash = base64url(&sha256(&values.join("\0")));
                format!("headers {} {hash}", shown.collect::<Vec<_>>().join(", ")).into()
            }
        }
    }
}

impl std::fmt::Debug for HeaderKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HeaderKeys")
    }
}

/// The files that a value names.
fn files_in(value: &Secret) -> impl Iterator<Item = &str> {
    let files = value.expose().split("${file:").skip(1);
    files.filter_map(|rest| rest.split_once('}')).map(|(path, _)| path)
}

fn headers(values: &[(String, Secret)]) -> Result<HeaderMap, String> {
    if values.len() > MOST {
        return Err(format!("more than {MOST} headers"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        // What stands in place of a name may be a value, so it is not repeated.
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| "the name of a header is invalid".to_owned())?;
        let text = value.expose();
        let made = HeaderValue::from_str(text).ok().filter(|_| text.len() <= LONGEST);
        let mut made = made.ok_or_else(|| {
            format!("the value of header {name} cannot be sent: it has control characters, or is longer than {LONGEST} bytes")
        })?;
        made.set_sensitive(true);
        headers.append(name, made);
    }
    Ok(headers)
}

/// A value with the files that it names.
pub(crate) fn filled(template: &Secret) -> Result<Secret, String> {
    let mut rest = template.expose();
    let mut text = String::new();
    while let Some(at) = rest.find("${file:") {
        text.push_str(&rest[..at]);
        let (path, behind) =
            rest[at + "${file:".len()..].split_once('}').ok_or("a header has ${file: without }")?;
        text.push_str(&content(Path::new(path))?);
        rest = behind;
    }
    text.push_str(rest);
    Ok(Secret::new(text))
}

fn content(path: &Path) -> Result<String, String> {
    let bad = |why: &dyn std::fmt::Display| format!("the file {} cannot be read: {why}", path.display());
    let (file, _) = trusted::read_named(path).map_err(|error| bad(&error))?;
    let mut text = String::new();
    let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
    file.take(most + 1).read_to_string(&mut text).map_err(|error| bad(&error))?;
    if text.len() > LONGEST {
        return Err(bad(&format_args!("more than {LONGEST} bytes")));
    }
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(bad(&"the file is empty"));
    }
    Ok(text.to_owned())
}

/// What a command printed: an object of headers, or a token.
fn printed(text: &str) -> Result<Vec<(String, Secret)>, &'static str> {
    let text = text.trim();
    if text.starts_with('{') {
        let read: std::collections::BTreeMap<String, Secret> = serde_json::from_str(text)
            .map_err(|_| "it printed JSON that is not an object of header names and texts")?;
        return Ok(read.into_iter().collect());
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has to print a token, or a JSON object of headers, and nothing else");
    }
    Ok(vec![(AUTHORIZATION.as_str().to_owned(), Secret::new(format!("Bearer {text}")))])
}

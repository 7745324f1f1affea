//! Which of the values in a configuration are secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Secrets;

/// A name that contains one of these has a value nobody should read.
const NAMES: [&str; 10] = [
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
    "credential",
    "cookie",
];

/// So has a name of which one of these is a word.
const WORDS: [&str; 18] = [
    "key",
    "pass",
    "pwd",
    "pw",
    "auth",
    "pat",
    "passphrase",
    "session",
    "sessionid",
    "sid",
    "private",
    "dsn",
    "signature",
    "sig",
    "pin",
    "otp",
    "jwt",
    "bearer",
];

/// Headers whose values say nothing that others may not know.
const OPEN_HEADERS: [&str; 10] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-type",
    "host",
    "origin",
    "referer",
    "user-agent",
];

/// How long a run of letters and digits is that nobody has made up.
const RANDOM: usize = 16;

impl Secrets {
    /// A header that is sent along.
    pub fn keep_header(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        if OPEN_HEADERS.contains(&&*name) || name.starts_with("mcp-") {
            return;
        }
        let value = value.trim();
        if is_word(value) && !names_a_secret(&name) {
            return;
        }
        // "Bearer x": what is printed elsewhere is the second word.
        let (scheme, credential) = match value.split_once(' ') {
            Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => (scheme, rest),
            _ => ("", value),
        };
        self.keep(credential);
        if scheme.eq_ignore_ascii_case("basic")
            && let Some(pair) =
                STANDARD.decode(credential.trim()).ok().and_then(|pair| String::from_utf8(pair).ok())
        {
            self.keep(&pair);
            self.keep(pair.split_once(':').map_or("", |(_, password)| password));
        }
        self.keep_pairs(value, ';');
    }

    /// An address: who logs in, the values of its query, and what is random in its path.
    pub fn keep_url(&mut self, url: &str) {
        let Some((_, rest)) = url.split_once("://") else { return };
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if let Some((user, _)) = authority.rsplit_once('@') {
            for part in user.splitn(2, ':') {
                self.keep_encoded(part);
            }
        }
        let (path, query) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
        path.split('/').filter(|part| looks_random(part)).for_each(|part| self.keep_encoded(part));
        for pair in query.split(['&', '#', '?', ';']) {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            if !is_word(value) || names_a_secret(name) {
                self.keep_encoded(value);
            }
        }
    }

    /// A variable of a server's environment.
    pub fn keep_variable(&mut self, name: &str, value: &str) {
        if value.contains("://") {
            self.keep_url(value);
        } else if names_a_secret(name) {
            self.keep(value);
        } else {
            self.keep_random(value);
        }
        // "Server=db;Pwd=x"
        self.keep_pairs(value, ';');
    }

    /// A variable that a server was given together with all others: only its name can make it a secret.
    pub fn keep_inherited(&mut self, name: &str, value: &str) {
        if names_a_secret(name) || value.contains("://") {
            self.keep_variable(name, value);
        }
    }

    /// A command: `--token x`, `--token=x`, `TOKEN=x`, `-u user:x`, addresses, and what is random.
    pub fn keep_arguments<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        let mut before = "";
        for word in words.into_iter().skip(1) {
            // A sentence or a script is not the value of its first words.
            let pair = word.split_once('=').filter(|(name, _)| !name.contains(char::is_whitespace));
            let (name, value) = pair.unwrap_or(("", word));
            let is_named = |flag: &str| flag.starts_with('-') && names_a_secret(flag);
            if matches!(before, "-H" | "--header") {
                let (name, value) = word.split_once(':').unwrap_or(("", word));
                self.keep_header(name, value);
            } else if word.contains("://") {
                self.keep_url(word);
            } else if names_a_secret(name) || is_named(before) && !word.starts_with('-') {
                self.keep(value);
                self.keep(value.split_whitespace().next().unwrap_or_default());
            } else if matches!(before, "-u" | "--user") {
                self.keep(word.split_once(':').map_or(word, |(_, password)| password));
            }
            self.keep_random(value);
            before = word;
        }
    }

    /// The words of a text that look random.
    fn keep_random(&mut self, text: &str) {
        let words =
            text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | ';' | '='));
        words.filter(|word| looks_random(word)).for_each(|word| self.keep(word));
    }

    /// The values of `name=value` pairs that are secret by their names.
    fn keep_pairs(&mut self, text: &str, between: char) {
        for (name, value) in text.split(between).filter_map(|pair| pair.split_once('=')) {
            if names_a_secret(name) || looks_random(value) {
                self.keep(value.trim());
            }
        }
    }

    /// As it is spelt, and as it is meant.
    fn keep_encoded(&mut self, part: &str) {
        self.keep(part);
        if part.contains(['%', '+']) {
            self.keep(&decoded(part));
        }
    }
}

/// Whether a name says that its value is a secret, where it is given one (`DB_PASS=x`, `--key x`).
pub(crate) fn names_a_secret(name: &str) -> bool {
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    has_secret_in_name(name)
        || words().any(|word| WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret)))
}

/// Whether a name says so wherever it stands, also in a sentence ("password: x").
pub(crate) fn has_secret_in_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|secret| name.contains(secret))
}

/// Whether nobody would make this up: a long run of letters and digits in turn, or a UUID.
pub(crate) fn looks_random(text: &str) -> bool {
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    runs.into_iter().any(is_random) || is_uuid(text)
}

fn is_random(run: &str) -> bool {
    if run.len() < RANDOM {
        return false;
    }
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    let turns = run.as_bytes().windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit());
    (2..=run.len() - 2).contains(&digits) && turns.count() >= 3
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A path, a number or a truth value: whatever it is called, it is no secret.
pub(super) fn is_ordinary(value: &str) -> bool {
    let is_path = ["/", "~/", "./", "../", "unix:"].iter().any(|start| value.starts_with(start))
        && value.matches('/').count() >= 2
        && value
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~' | ' ' | ':' | '@'));
    is_path || value.parse::<f64>().is_ok() || ["disabled", "required", "optional"].contains(&value)
}

/// `production`, `readonly`: without a name that says otherwise, a word is no secret, and our own texts may need it.
fn is_word(value: &str) -> bool {
    value.len() < RANDOM && value.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Without percent signs, where they mean something.
fn decoded(part: &str) -> String {
    let (bytes, mut meant, mut at) = (part.as_bytes(), Vec::with_capacity(part.len()), 0);
    while at < bytes.len() {
        let hex = part.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                meant.push(byte);
                at += 2;
            }
            None => meant.push(if bytes[at] == b'+' { b' ' } else { bytes[at] }),
        }
        at += 1;
    }
    String::from_utf8_lossy(&meant).into_owned()
}

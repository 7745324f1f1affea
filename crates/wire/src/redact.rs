//! The one type that foreign text passes before a person, a model or a log sees it.
//!
//! Stderr tails, argv, headers and bodies hold tokens more often than not, and escape sequences sometimes. What went
//! through here is bounded, on printable characters, and without what looks like a credential.

use std::fmt;

/// Text that may be shown.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Redacted(Box<str>);

/// What stands in place of a secret.
const MASK: &str = "[redacted]";

/// Beginnings by which the common services mark their tokens.
const TOKENS: [&str; 16] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "eyJ",
    "hf_",
    "npm_",
];

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

/// A name that ends with one of these words does too, where it is given a value (`--key x`, `DB_PASS=x`, `?key=x`). In a
/// sentence they mean something else: "unknown key: name".
const LAST_WORDS: [&str; 6] = ["key", "pass", "pwd", "auth", "pat", "passphrase"];

impl Redacted {
    /// At most `most` characters of `text`, from its beginning.
    pub fn head(text: &str, most: usize) -> Self {
        let cut = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
        let mut shown = redact(&text[..cut]);
        if cut < text.len() {
            shown.push('…');
        }
        Self(shown.into())
    }

    /// At most `most` characters of `text`, from its end.
    pub fn tail(text: &str, most: usize) -> Self {
        let count = text.chars().count();
        if count <= most {
            return Self(redact(text).into());
        }
        let cut = text.char_indices().nth(count - most).map_or(0, |(at, _)| at);
        // Half a word at the cut could be the half of a token that gives no sign of being one.
        let rest = &text[cut..];
        let whole = rest.find(char::is_whitespace).map_or("", |at| &rest[at..]);
        Self(format!("…{}", redact(whole)).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Masks credentials and drops control characters; line breaks and tabs stay.
fn redact(text: &str) -> String {
    let clean: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let mut shown = String::with_capacity(clean.len());
    let mut hide_next = false;
    for (word, gap) in words(&clean) {
        let masked = if hide_next && !is_scheme(word) { Some(MASK.to_owned()) } else { mask(word) };
        // "Authorization: Bearer x": the name hides the scheme's successor too.
        hide_next = is_scheme(word) || (hide_next && word.is_empty()) || names_a_secret(word);
        shown.push_str(masked.as_deref().unwrap_or(word));
        shown.push_str(gap);
    }
    shown
}

/// Words and the white space behind each.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let gap = behind.find(|c: char| !c.is_whitespace()).unwrap_or(behind.len());
        let (gap, next) = behind.split_at(gap);
        rest = next;
        Some((word, gap))
    })
}

/// `Bearer` and `Basic` announce a credential.
fn is_scheme(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// `token:` or `--api-key`: the value is the next word.
fn names_a_secret(word: &str) -> bool {
    let open = word.ends_with([':', '=']) || word.starts_with("--") && !word.contains('=');
    open && is_secret_name(word, word.starts_with('-') || word.ends_with('='))
}

fn is_secret_name(name: &str, is_set: bool) -> bool {
    let name = name.to_ascii_lowercase();
    let bare = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let last = bare.rsplit(['_', '-']).next().unwrap_or(bare);
    NAMES.iter().any(|secret| name.contains(secret)) || is_set && LAST_WORDS.contains(&last)
}

/// The word without what it hides, if it hides something.
fn mask(word: &str) -> Option<String> {
    let named = mask_values(word);
    let word = named.as_deref().unwrap_or(word);
    // scheme://user:password@host
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((user, host)) = rest.split_once('@')
        && user.contains(':')
    {
        return Some(format!("{scheme}://{MASK}@{host}"));
    }
    let Some(at) = TOKENS.iter().filter_map(|token| starts_inside(word, token)).min() else { return named };
    let end = word[at..].find(|c: char| !is_token_char(c)).map_or(word.len(), |end| at + end);
    // Too short to be a token: `sk-` in a sentence about tokens.
    if end - at >= 12 { Some(format!("{}{MASK}{}", &word[..at], &word[end..])) } else { named }
}

/// Masks each `name=value` and `"name":"value"` of a word whose name is a secret's.
fn mask_values(word: &str) -> Option<String> {
    let (mut shown, mut rest, mut hidden) = (String::new(), word, false);
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at + 1);
        shown.push_str(before);
        let name = before[..at].trim_end_matches('"');
        let name =
            name.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').next().unwrap_or(name);
        let end = match after.strip_prefix('"') {
            Some(quoted) => quoted.find('"').map_or(after.len(), |end| end + 2),
            None => after.find(['&', ',', ';', '}', ')', '"', '\'']).unwrap_or(after.len()),
        };
        let (value, behind) = after.split_at(end);
        if is_secret_name(name, before.ends_with('=')) && value.chars().any(char::is_alphanumeric) {
            shown.push_str(MASK);
            hidden = true;
            rest = behind;
        } else {
            rest = after;
        }
    }
    shown.push_str(rest);
    hidden.then_some(shown)
}

/// Where `token` begins a run of token characters in `word`.
fn starts_inside(word: &str, token: &str) -> Option<usize> {
    word.match_indices(token).map(|(at, _)| at).find(|&at| !word[..at].ends_with(is_token_char))
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::Redacted;

    fn shown(text: &str) -> String {
        Redacted::head(text, 10_000).to_string()
    }

    #[test]
    fn credentials_are_masked_wherever_they_stand() {
        for (text, expected) in [
            ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
            ("authorization: Basic Zm9vOmJhcg==", "authorization: Basic [redacted]"),
            ("using key sk-1234567890abcdef now", "using key [redacted] now"),
            ("(ghp_0123456789abcdefghij)", "([redacted])"),
            ("GITHUB_TOKEN=abc npm start", "GITHUB_TOKEN=[redacted] npm start"),
            ("--api-key hunter2 --port 3", "--api-key [redacted] --port 3"),
            ("--api-key=hunter2", "--api-key=[redacted]"),
            (r#"{"password":"hunter2"}"#, r#"{"password":[redacted]}"#),
            (
                r#"{"level":"error","api_key":"hunter2","x":1}"#,
                r#"{"level":"error","api_key":[redacted],"x":1}"#,
            ),
            ("https://h/p?a=1&token=hunter2&b=2", "https://h/p?a=1&token=[redacted]&b=2"),
            ("password: hunter2", "password: [redacted]"),
            ("postgres://me:pw@db/x", "postgres://[redacted]@db/x"),
            ("jwt eyJhbGciOi.eyJzdWIi.c2ln", "jwt [redacted]"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "Error: cannot find module './index.js'\n    at line 3",
            "https://example.test/path?x=1",
            "sk-8 is a road, tokens are coins",
            "exit status 1",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn terminal_escapes_do_not_get_through() {
        assert_eq!(shown("\u{1b}[31mred\u{1b}[0m\r\n\u{7}bell\u{0}"), "[31mred[0m\nbell");
    }

    #[test]
    fn head_and_tail_are_bounded_and_say_so() {
        assert_eq!(Redacted::head("abcdef", 3).as_str(), "abc…");
        assert_eq!(Redacted::head("äöü", 3).as_str(), "äöü");
        assert_eq!(Redacted::tail("one two three", 9).as_str(), "… three");
        assert_eq!(Redacted::tail("short", 9).as_str(), "short");
        assert_eq!(Redacted::tail("token sk-1234567890abcdef", 10).as_str(), "…");
        assert!(Redacted::default().is_empty());
    }
}

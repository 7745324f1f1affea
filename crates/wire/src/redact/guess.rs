//! What looks like a credential, by its name, by what stands around it, or by its own look.

use crate::secrets::{MASK, has_secret_in_name, looks_random, names_a_secret};

/// Beginnings by which the common services mark their tokens.
const TOKENS: [&str; 36] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "glsa_",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxe.",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
    "SG.",
    "gsk_",
    "shpat_",
    "dop_v1_",
    "lin_api_",
    "figd_",
    "ntn_",
    "AGE-SECRET-KEY-",
];

/// How many words behind one that speaks of a secret a value may stand: "the passphrase for this key is x".
const NEAR: usize = 5;

/// How long a word is at least that is taken for a value there.
const VALUE: usize = 10;

/// Behind this word, what is hidden.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Hides {
    Nothing,
    /// The next word.
    Next,
    /// Everything up to this quotation mark.
    Quoted(char),
    /// The rest of the line.
    Line,
}

/// The text without what looks like a credential.
pub(super) fn mask(text: &str) -> String {
    let text = without_keys(text);
    let mut shown = String::with_capacity(text.len());
    let mut hides = Hides::Nothing;
    // How many words a value may still be away from the word that spoke of it.
    let (mut near, mut before) = (0_usize, "");
    for (word, gap) in words(&text) {
        let (masked, next) = look_at(word, before, hides, near > 0);
        shown.push_str(masked.as_deref().unwrap_or(word));
        shown.push_str(gap);
        let breaks = gap.contains('\n');
        hides = match next {
            Hides::Line | Hides::Quoted(_) if breaks => Hides::Nothing,
            next => next,
        };
        near = if breaks {
            0
        } else if speaks_of_a_secret(word) {
            NEAR
        } else {
            near.saturating_sub(1)
        };
        before = word;
    }
    shown
}

/// A word: what to show instead of it, if something, and what is hidden behind it.
fn look_at(word: &str, before: &str, hides: Hides, near: bool) -> (Option<String>, Hides) {
    let mask_all = || Some(MASK.to_owned());
    match hides {
        Hides::Line => return (Some(String::new()), Hides::Line),
        Hides::Quoted(quote) => {
            return match word.split_once(quote) {
                Some((_, rest)) => (Some(rest.to_owned()), Hides::Nothing),
                None => (Some(String::new()), hides),
            };
        }
        // "Authorization: Bearer x": the name hides the scheme's successor too.
        Hides::Next if is_scheme(word) || word.is_empty() => return (None, Hides::Next),
        Hides::Next if is_sign(word) => return (None, Hides::Next),
        Hides::Next => {
            let open = word.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'));
            let open = open.filter(|quote| !word[1..].contains(*quote));
            return (mask_all(), open.map_or(Hides::Nothing, Hides::Quoted));
        }
        Hides::Nothing => {}
    }
    if matches!(before, "-u" | "--user") && word.contains(':') {
        return (mask_all(), Hides::Nothing);
    }
    // "api_key = x"
    if is_sign(word) && names_a_secret(before) && !is_sentence(before) {
        return (None, Hides::Next);
    }
    let (masked, open) = mask_values(word);
    let shown = masked.as_deref().unwrap_or(word);
    if let Some(quote) = open {
        return (masked, Hides::Quoted(quote));
    }
    if let Some(masked) = mask_itself(shown) {
        return (Some(masked), Hides::Nothing);
    }
    if masked.is_none() && near && is_value(word) {
        return (mask_all(), Hides::Nothing);
    }
    let next = if is_scheme(word) {
        Hides::Next
    } else if is_cookie(word) {
        return (Some(format!("{shown} {MASK}")), Hides::Line);
    } else if opens_a_secret(word) {
        Hides::Next
    } else {
        Hides::Nothing
    };
    (masked, next)
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

/// Without what stands between the fences of private keys. One whose beginning was cut off begins with the text.
fn without_keys(text: &str) -> String {
    const END: &str = "PRIVATE KEY-----";
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(fence) = rest.find(END) {
        let line = rest[..fence].rfind("-----").unwrap_or(0);
        let behind = fence + END.len();
        if rest[line..fence].contains("BEGIN") {
            shown.push_str(&rest[..behind]);
            shown.push_str(MASK);
            let end = rest[behind..].find("-----END").map_or(rest.len(), |end| behind + end);
            rest = &rest[end..];
            // The fence at its end is not one whose beginning is missing.
            let past = rest.find(END).map_or(rest.len(), |at| at + END.len());
            shown.push_str(&rest[..past]);
            rest = &rest[past..];
        } else {
            shown.push_str(MASK);
            shown.push_str(&rest[line..behind]);
            rest = &rest[behind..];
        }
    }
    shown.push_str(rest);
    shown
}

/// `Bearer` and `Basic` announce a credential.
fn is_scheme(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// What stands between a name and its value.
fn is_sign(word: &str) -> bool {
    matches!(word, "=" | ":" | "=>" | ":=" | "->" | "==")
}

/// Cookies are many values on one line.
fn is_cookie(word: &str) -> bool {
    let name = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    word.ends_with(':') && (name.eq_ignore_ascii_case("cookie") || name.eq_ignore_ascii_case("set-cookie"))
}

/// `token:` or `--api-key`: the value is the next word.
fn opens_a_secret(word: &str) -> bool {
    let is_flag = word.starts_with("--") && !word.contains('=');
    let is_set = is_flag || word.ends_with('=');
    (is_flag || word.ends_with([':', '='])) && is_secret_name(word, is_set)
}

/// In a sentence some words mean something else: "unknown key: name".
fn is_secret_name(name: &str, is_set: bool) -> bool {
    if is_set { names_a_secret(name) } else { has_secret_in_name(name) }
}

/// Whether a word ends one: then the sign behind it is not a value's.
fn is_sentence(word: &str) -> bool {
    word.ends_with(['.', ',', '!', '?'])
}

/// Whether the next words may be about the value of a secret.
fn speaks_of_a_secret(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    !word.is_empty() && word.len() < 64 && names_a_secret(word)
}

/// Whether a word among others may be a value: letters and digits, and not a path, a file, a time or a version.
fn is_value(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_file = word.rsplit_once('.').is_some_and(|(_, end)| (1..=5).contains(&end.len()));
    let count = |is: fn(&u8) -> bool| word.bytes().filter(is).count();
    word.len() >= VALUE
        && !is_file
        && count(u8::is_ascii_digit) >= 2
        && count(u8::is_ascii_alphabetic) >= 2
        && word.chars().all(|c| is_token_char(c) || matches!(c, '+' | '/' | '=' | '~'))
        && !word.contains("//")
}

/// Masks what shows by itself that it is a secret: addresses with somebody's name, tokens of the common services.
fn mask_itself(word: &str) -> Option<String> {
    let address = mask_address(word);
    let tokens = mask_tokens(address.as_deref().unwrap_or(word));
    let masked = tokens.or(address);
    if masked.is_none() && is_key_material(word) { Some(MASK.to_owned()) } else { masked }
}

/// Whether this is a line of a key in base64, without anything around it that says so. Hashes in hex are not.
fn is_key_material(word: &str) -> bool {
    const SHORTEST: usize = 40;
    let has = |is: fn(&u8) -> bool| word.bytes().filter(is).count() >= 2;
    word.len() >= SHORTEST
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        // A path has more of these.
        && word.matches('/').count() * 8 <= word.len()
}

/// `scheme://user:password@host/path`: who logs in, and what is random in the path.
fn mask_address(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map(|(_, host)| format!("{MASK}@{host}"));
    let hides_path = path.split('/').any(looks_random);
    if host.is_none() && !hides_path {
        return None;
    }
    let parts: Vec<&str> = path.split('/').map(|part| if looks_random(part) { MASK } else { part }).collect();
    Some(format!("{scheme}://{}{}{query}", host.as_deref().unwrap_or(authority), parts.join("/")))
}

/// Each run of token characters that begins as the tokens of a service do.
fn mask_tokens(word: &str) -> Option<String> {
    // Too short to be a token: `sk-` in a sentence about tokens.
    const SHORTEST: usize = 12;
    let (mut shown, mut rest, mut hidden) = (String::new(), word, false);
    while let Some(start) = rest.find(is_token_char) {
        let (before, run) = rest.split_at(start);
        let (run, behind) = run.split_at(run.find(|c: char| !is_token_char(c)).unwrap_or(run.len()));
        let is_token = run.len() >= SHORTEST && TOKENS.iter().any(|token| run.starts_with(token));
        shown.push_str(before);
        shown.push_str(if is_token { MASK } else { run });
        hidden |= is_token;
        rest = behind;
    }
    shown.push_str(rest);
    hidden.then_some(shown)
}

/// Masks each `name=value` and `"name":"value"` of a word whose name is a secret's. If the last value is in quotation
/// marks and goes on behind the word, says which.
fn mask_values(word: &str) -> (Option<String>, Option<char>) {
    let (mut shown, mut rest, mut hidden, mut open) = (String::new(), word, false, None);
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at + 1);
        shown.push_str(before);
        let name = before[..at].trim_end_matches(['"', '\'', '\\']);
        let name =
            name.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').next().unwrap_or(name);
        // Only behind a secret's name: else each name would have the whole rest looked through.
        let value = is_secret_name(name, before.ends_with('=')).then(|| value_of(after));
        match value.filter(|(value, _)| value.chars().any(char::is_alphanumeric)) {
            Some((value, quote)) => {
                shown.push_str(MASK);
                hidden = true;
                rest = &after[value.len()..];
                open = quote;
            }
            None => rest = after,
        }
    }
    shown.push_str(rest);
    (hidden.then_some(shown), open)
}

/// What a text begins with that is somebody's value; and its quotation mark, if that is never closed.
fn value_of(text: &str) -> (&str, Option<char>) {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'' | '`')) else {
        let end = text.find(['&', ',', ';', '}', ')', '"', '\'']).unwrap_or(text.len());
        return (&text[..end], None);
    };
    match text[1..].find(quote) {
        Some(end) => (&text[..end + 2], None),
        None => (text, Some(quote)),
    }
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

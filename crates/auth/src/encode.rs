//! How values travel: in forms, queries, Basic credentials and tokens.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// The most pairs that are read from a query.
const MOST_PAIRS: usize = 64;

/// `application/x-www-form-urlencoded`, of one value.
pub(crate) fn form_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            // `%20` is understood in forms and in queries alike; `+` is not.
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    out
}

/// A form or a query of these pairs.
pub(crate) fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().map(|(name, value)| format!("{}={}", form_value(name), form_value(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The pairs of a query. `None` if one of them cannot be read, or there are too many.
pub(crate) fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == MOST_PAIRS {
            return None;
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decoded(name)?, decoded(value)?));
    }
    Some(pairs)
}

fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? * 16 + hex(bytes.next()?)?,
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Base64 as PKCE and JWT want it.
pub(crate) fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The value of an `Authorization` header. RFC 6749, 2.3.1: both parts are encoded as in a form first.
pub(crate) fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", form_value(id), form_value(secret))))
}

/// The bytes within a PEM text, if that holds a private key, and which kind it is.
pub(crate) fn pem(text: &str) -> Option<(PemKind, Vec<u8>)> {
    let begin = text.find("-----BEGIN ")?;
    let rest = &text[begin + "-----BEGIN ".len()..];
    let (label, rest) = rest.split_once("-----")?;
    let kind = match label {
        "PRIVATE KEY" => PemKind::Pkcs8,
        "EC PRIVATE KEY" => PemKind::Ec,
        "RSA PRIVATE KEY" => PemKind::Rsa,
        _ => return None,
    };
    let (body, _) = rest.split_once("-----END ")?;
    let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    Some((kind, STANDARD.decode(body).ok()?))
}

/// What a PEM text holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PemKind {
    Pkcs8,
    Ec,
    Rsa,
}

/// The hash of a text, for file names and PKCE.
pub(crate) fn sha256(text: &str) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::{base64url, basic, form, form_value, pairs, sha256};
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_7636_comes_out() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(base64url(&sha256(verifier)), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn basic_credentials_are_encoded_twice() {
        assert_eq!(basic("a:b", "ü"), "Basic YSUzQWI6JUMzJUJD");
    }

    #[test]
    fn a_broken_query_is_not_read() {
        for broken in ["a=%", "a=%4", "a=%zz", "a=%FF", &"a=b&".repeat(65)] {
            assert_eq!(pairs(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(name in ".*", value in ".*") {
            prop_assume!(!name.is_empty());
            let read = pairs(&form([(name.as_str(), value.as_str())])).unwrap();
            prop_assert_eq!(read, vec![(name, value.clone())]);
            prop_assert!(form_value(&value).is_ascii());
        }
    }
}

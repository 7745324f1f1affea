//! What a server says when it refuses: the `WWW-Authenticate` header.

use crate::scopes;

/// The longest challenge that is read.
const LONGEST: usize = 4096;

/// The parts of a Bearer challenge that matter here.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Challenge {
    /// Where the metadata of the protected resource is.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scopes: Vec<String>,
    /// `invalid_token`, `insufficient_scope` or another word.
    pub error: Option<String>,
}

impl Challenge {
    /// Reads a header. Whatever cannot be read is left out: the well-known addresses remain.
    pub fn read(header: &str) -> Self {
        let header = linetender::visible::first_bytes(header, LONGEST);
        let mut challenge = Self::default();
        for (name, value) in bearer_parameters(header) {
            // The first one of a name counts: what is appended later overrides nothing.
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" if challenge.resource_metadata.is_none() => {
                    challenge.resource_metadata = Some(value);
                }
                "scope" if challenge.scopes.is_empty() => challenge.scopes = scopes::read(&value),
                "error" if challenge.error.is_none() => challenge.error = Some(value),
                _ => {}
            }
        }
        challenge
    }

    /// Whether the token is good, but not for this.
    pub fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The parameters of the Bearer challenge; RFC 9110, 11.6.1: a header may hold several challenges, and commas stand both
/// between challenges and between parameters.
fn bearer_parameters(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut rest, mut bearer) = (header, false);
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        if end == 0 {
            // Neither a scheme nor a name: nothing behind it can be told apart.
            return found;
        }
        let (word, behind) = rest.split_at(end);
        let value = behind.trim_start_matches([' ', '\t']);
        if let Some(value) = value.strip_prefix('=').filter(|value| !value.starts_with('=')) {
            let Some((value, after)) = read_value(value.trim_start_matches([' ', '\t'])) else {
                return found;
            };
            if bearer {
                found.push((word.to_owned(), value));
            }
            rest = after;
        } else {
            bearer = word.eq_ignore_ascii_case("bearer");
            // A scheme may be followed by one token68 in place of parameters.
            rest = skip_token68(value);
        }
    }
}

fn skip_token68(text: &str) -> &str {
    let end = text.find(|c: char| !(is_token(c) || c == '/' || c == '=')).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is_whole = rest.is_empty() || rest.trim_start().starts_with(',');
    let is_parameter = word.trim_end_matches('=').contains('=');
    if is_whole && !is_parameter && !word.is_empty() { rest } else { text }
}

/// A token or a quoted text, and what is behind it.
fn read_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

const fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(
            c,
            '!' | '#' | '$' | '%' | '&' | '\'' | '*' | '+' | '-' | '.' | '^' | '_' | '`' | '|' | '~'
        )
}

#[cfg(test)]
mod tests {
    use super::Challenge;
    use proptest::prelude::*;

    fn read(header: &str) -> (Option<String>, String, Option<String>) {
        let Challenge { resource_metadata, scopes, error } = Challenge::read(header);
        (resource_metadata, scopes.join(" "), error)
    }

    #[test]
    fn challenges_are_read_as_servers_write_them() {
        let some = |text: &str| Some(text.to_owned());
        for (header, metadata, scopes, error) in [
            ("Bearer", None, "", None),
            (r#"Bearer resource_metadata="https://h/x?a=b,c""#, some("https://h/x?a=b,c"), "", None),
            (
                r#"bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/x""#,
                some("https://h/x"),
                "a b",
                some("insufficient_scope"),
            ),
            ("Bearer scope=a,error=invalid_token", None, "a", some("invalid_token")),
            (r#"Basic realm="x", Bearer error="invalid_token""#, None, "", some("invalid_token")),
            (r#"Negotiate abc==, Bearer scope="x""#, None, "x", None),
            (r#"DPoP algs="ES256", error="use_dpop_nonce""#, None, "", None),
            (r#"Bearer realm="a \"quoted\" \\ one" , scope = "a""#, None, "a", None),
            (r#"Bearer scope="a", scope="admin""#, None, "a", None),
            (r#"Bearer scope="never closed"#, None, "", None),
            (r#"Bearer ,,, scope="a""#, None, "a", None),
            ("", None, "", None),
        ] {
            assert_eq!(read(header), (metadata, scopes.to_owned(), error), "{header}");
        }
    }

    proptest! {
        #[test]
        fn no_header_does_harm(header in "\\PC{0,200}") {
            let _ = Challenge::read(&header);
        }

        #[test]
        fn a_scope_comes_through_whatever_surrounds_it(before in "[a-z]{1,8}", realm in "[^\"\\\\]{0,20}") {
            let header = format!("{before} realm=\"{realm}\", Bearer realm=\"{realm}\", scope=\"one two\"");
            prop_assert_eq!(Challenge::read(&header).scopes, ["one", "two"]);
        }
    }
}

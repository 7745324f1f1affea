//! What the browser brings back. Anybody can send a browser to the address that it comes back to, so nothing of it is
//! believed, and no text of it is shown, before it is known to be the answer to this login.

use linetender_wire::http::URL_LIMIT;

use crate::address::Address;
use crate::encode::pairs;
use crate::error::{Error, ErrorKind, quoted};
use crate::secret::Secret;

/// What the answer to a login has to agree with.
pub(super) struct Expected<'a> {
    pub(super) redirect_uri: &'a str,
    pub(super) state: &'a Secret,
    pub(super) issuer: &'a str,
    /// The authorization server says that it names itself in every answer.
    pub(super) issuer_always_named: bool,
}

/// The parameters of an answer, each at most once.
struct Answer(Vec<(String, String)>);

impl Answer {
    /// `None` if the address is not the one that the browser was to come back to, or cannot be read.
    fn read(redirected: &str, redirect_uri: &str) -> Option<Self> {
        let redirected = redirected.trim();
        if redirected.len() > URL_LIMIT {
            return None;
        }
        let (address, query) = redirected.split_once('?')?;
        let query = query.split_once('#').map_or(query, |(query, _)| query);
        let (came, expected) = (Address::of_server(address).ok()?, Address::of_server(redirect_uri).ok()?);
        let is_same = came.endpoint().same_origin(expected.endpoint()) && came.path() == expected.path();
        let pairs = pairs(query).filter(|_| is_same)?;
        let is_twice = |name: &str| pairs.iter().filter(|(other, _)| other == name).count() > 1;
        let is_clear = !["code", "state", "iss", "error", "error_description"].into_iter().any(is_twice);
        is_clear.then_some(Self(pairs))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

pub(super) fn is_ours(redirected: &str, redirect_uri: &str, state: &Secret) -> bool {
    let answer = Answer::read(redirected, redirect_uri);
    answer.is_some_and(|answer| answer.get("state").is_some_and(|came| state.is(came)))
}

impl Expected<'_> {
    /// The code.
    pub(super) fn read(&self, redirected: &str) -> Result<Secret, Error> {
        let foreign = |words: &str| Error::new(ErrorKind::Foreign, words);
        let answer = Answer::read(redirected, self.redirect_uri).ok_or_else(|| {
            let words = format_args!(
                "this is not the address that the browser was sent back to: it begins with {}? and holds code and state",
                self.redirect_uri
            );
            Error::new(ErrorKind::Foreign, words)
        })?;
        // RFC 9207, 2.4: compared as it is spelt, before anything else; on a mismatch not even the error is looked at.
        match answer.get("iss") {
            Some(issuer) if issuer == self.issuer => {}
            Some(_) => {
                let words = format_args!(
                    "the answer to this login came from another authorization server than {}; it is not used, and what it says is not shown",
                    self.issuer
                );
                return Err(Error::new(ErrorKind::Foreign, words));
            }
            None if self.issuer_always_named => {
                let words = format_args!(
                    "the answer to this login does not say that it comes from {}, as that authorization server promises; it is not used",
                    self.issuer
                );
                return Err(Error::new(ErrorKind::Foreign, words));
            }
            None => {}
        }
        if !answer.get("state").is_some_and(|came| self.state.is(came)) {
            return Err(foreign("this address belongs to another login (its state differs); start again"));
        }
        if let Some(error) = answer.get("error") {
            let said = quoted(error, answer.get("error_description"));
            let words = format_args!("the authorization server {} refused the login; {said}", self.issuer);
            return Err(Error::new(ErrorKind::Refused, words));
        }
        let code = answer.get("code").filter(|code| !code.is_empty());
        code.map(Secret::from)
            .ok_or_else(|| foreign("the authorization server's answer holds no code; start again"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Expected, is_ours};
    use crate::error::ErrorKind;
    use crate::secret::Secret;
    use proptest::prelude::*;

    const BACK: &str = "http://127.0.0.1:4000/callback";

    fn read(query: &str, always: bool) -> Result<String, (ErrorKind, String)> {
        let state = Secret::new("the-state-of-it");
        let issuer = "https://as.example.com/t";
        let expected = Expected { redirect_uri: BACK, state: &state, issuer, issuer_always_named: always };
        let read = expected.read(&format!("{BACK}{query}"));
        read.map(|code| code.expose().to_owned()).map_err(|error| (error.kind(), error.to_string()))
    }

    #[test]
    fn the_issuer_is_compared_before_anything_else_is_believed() {
        let good = "?code=c0de&state=the-state-of-it";
        let named = "&iss=https%3A%2F%2Fas.example.com%2Ft";
        assert_eq!(read(&format!("{good}{named}"), true).unwrap(), "c0de");
        assert_eq!(read(good, false).unwrap(), "c0de");
        for (query, always) in [
            (good.to_owned(), true),
            (format!("{good}&iss=https://evil.example.com"), true),
            (format!("{good}&iss=https://evil.example.com"), false),
            (format!("{good}{named}%2F"), true),
            (format!("{good}&iss=HTTPS://as.example.com/t"), true),
            (format!("{good}&iss="), false),
            (format!("{good}{named}{named}"), true),
        ] {
            assert_eq!(read(&query, always).unwrap_err().0, ErrorKind::Foreign, "{query}");
        }
        let shouted =
            "?error=access_denied&error_description=CALL-THIS-NUMBER&state=the-state-of-it&iss=https://evil";
        assert!(!read(shouted, false).unwrap_err().1.contains("NUMBER"));
    }

    #[test]
    fn an_answer_to_another_login_is_not_used() {
        for query in [
            "",
            "?",
            "?code=a",
            "?code=a&state=other",
            "?code=&state=the-state-of-it",
            "?state=the-state-of-it",
            "?code=a&code=b&state=the-state-of-it",
        ] {
            assert_eq!(read(query, false).unwrap_err().0, ErrorKind::Foreign, "{query}");
        }
        let stranger = "?error=x&error_description=CALL-THIS-NUMBER&state=other";
        assert!(!read(stranger, false).unwrap_err().1.contains("NUMBER"));
    }

    #[test]
    fn a_refusal_is_shown_in_its_own_words() {
        let (kind, words) =
            read("?error=access_denied&error_description=not%20today&state=the-state-of-it", false)
                .unwrap_err();
        assert!(kind == ErrorKind::Refused && words.contains("access_denied: not today"), "{words}");
    }

    #[test]
    fn an_address_of_somebody_else_is_not_ours() {
        let state = Secret::new("the-state-of-it");
        let query = "?code=a&state=the-state-of-it";
        assert!(is_ours(&format!(" {BACK}{query}#x \n"), BACK, &state));
        for other in [
            "http://127.0.0.1:4001/callback",
            "http://127.0.0.1:4000/other",
            "https://127.0.0.1:4000/callback",
            "http://evil.example/callback",
        ] {
            assert!(!is_ours(&format!("{other}{query}"), BACK, &state), "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_gets_through_without_state(query in "\\PC{0,120}") {
            prop_assume!(!query.contains("the-state-of-it"));
            let read = read(&format!("?{query}"), false);
            prop_assert!(read.is_err());
        }
    }
}

//! Cookies of one session: load balancers keep a session at its server by them.
//!
//! A jar belongs to one session and one origin, so nothing in it can reach another. It is not a browser's: what it keeps
//! is bounded, and forgotten with the session.

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

/// How many cookies are kept, and how long a name with its value may be.
const MOST: usize = 16;
const LONGEST: usize = 4096;

/// The cookies of a session, oldest first. Not printed: they are credentials.
#[derive(Default)]
pub(super) struct Jar(Vec<(Box<str>, Box<str>)>);

impl Jar {
    /// Takes what a response sets. `secure`: it came over TLS.
    pub(super) fn take(&mut self, headers: &HeaderMap, secure: bool) {
        for set in headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok()) {
            self.set(set, secure);
        }
    }

    // RFC 6265, 5.2. Path and Domain are passed over: all requests go to one endpoint of one origin. So is Expires: a
    // session seldom lives long enough.
    fn set(&mut self, set: &str, secure: bool) {
        let mut parts = set.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim_end(), value.trim_start());
        let (mut ends, mut secret) = (false, false);
        for attribute in parts {
            let (key, given) = attribute.split_once('=').unwrap_or((attribute, ""));
            secret |= key.eq_ignore_ascii_case("secure");
            ends |= key.eq_ignore_ascii_case("max-age") && given.parse::<i64>().is_ok_and(|age| age <= 0);
        }
        if name.is_empty() || name.len() + value.len() > LONGEST || (secret && !secure) {
            return;
        }
        self.0.retain(|(known, _)| **known != *name);
        if ends {
            return;
        }
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((name.into(), value.into()));
    }

    /// Adds them to what a request carries, behind cookies that were configured.
    pub(super) fn put(&self, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        let configured = headers.get(COOKIE).and_then(|value| value.to_str().ok());
        let ours = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        let all: Vec<_> = configured.map(str::to_owned).into_iter().chain(ours).collect();
        if let Ok(mut value) = HeaderValue::from_str(&all.join("; ")) {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::{COOKIE, SET_COOKIE};
    use http::{HeaderMap, HeaderValue};

    use super::{Jar, LONGEST, MOST};

    fn sent(jar: &Jar) -> String {
        let mut headers = HeaderMap::new();
        jar.put(&mut headers);
        headers.get(COOKIE).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    fn taken(jar: &mut Jar, sets: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for set in sets {
            headers.append(SET_COOKIE, HeaderValue::from_str(set).unwrap());
        }
        jar.take(&headers, false);
        sent(jar)
    }

    #[test]
    fn what_a_response_sets_is_sent_back_until_it_is_taken_away() {
        let mut jar = Jar::default();
        assert_eq!(taken(&mut jar, &["lb=a; Path=/; HttpOnly", "x=1"]), "lb=a; x=1");
        assert_eq!(taken(&mut jar, &["lb=b"]), "x=1; lb=b");
        assert_eq!(taken(&mut jar, &["x=; Max-Age=0", "no pair", "=v", "s=1; Secure"]), "lb=b");
    }

    #[test]
    fn configured_cookies_stay() {
        let mut jar = Jar::default();
        taken(&mut jar, &["lb=a"]);
        let mut headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static("key=1"))]);
        jar.put(&mut headers);
        assert_eq!(headers[COOKIE], "key=1; lb=a");
        assert!(headers[COOKIE].is_sensitive());
    }

    #[test]
    fn a_jar_is_bounded() {
        let mut jar = Jar::default();
        for number in 0..100 {
            taken(&mut jar, &[&format!("n{number}={}", "v".repeat(LONGEST))]);
            taken(&mut jar, &[&format!("n{number}=v")]);
        }
        assert_eq!(sent(&jar).split("; ").count(), MOST);
        assert!(sent(&jar).ends_with("n99=v"));
    }
}

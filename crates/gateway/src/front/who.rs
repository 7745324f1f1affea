//! Whose a request is: agents take turns, and one that asks for everything at once must not be as many as it has requests.
//!
//! Its principal is what the machine knows of where it comes from. Which of that principal's agents it is, only it can say: by
//! its session, or by what it calls itself and shows for itself. Whoever has many names divides its own share with them.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::IpAddr;

use http::header::AUTHORIZATION;
use http::request::Parts;
use linetender::session::Who;

/// Where a connection comes from. Its port is another for each connection, and says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct From(pub(super) IpAddr);

/// Whose this request is; `client` is what it says of itself, as it was spelt.
pub(super) fn who(head: &Parts, client: Option<&str>) -> Who {
    // Kept as a number alone: what it shows for itself is a secret.
    let shown = head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    Who { principal: principal(head), agent: number((shown, client)) }
}

/// Whose this session is.
pub(super) fn whose_session(head: &Parts, session: u64) -> Who {
    Who { principal: principal(head), agent: number(("session", session)) }
}

fn principal(head: &Parts) -> u64 {
    number(head.extensions.get::<From>().map(|From(address)| *address))
}

fn number(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{From, who};
    use http::request::Parts;

    fn head(from: [u8; 4], token: &str) -> Parts {
        let (mut head, ()) = http::Request::new(()).into_parts();
        head.extensions.insert(From(from.into()));
        head.headers.insert("authorization", token.parse().unwrap());
        head
    }

    #[test]
    fn requests_are_one_agents_if_everything_that_is_known_of_them_is_the_same() {
        let here = head([10, 0, 0, 1], "Bearer a");
        let one = who(&here, Some(r#"{"name":"a"}"#));
        assert_eq!(one, who(&head([10, 0, 0, 1], "Bearer a"), Some(r#"{"name":"a"}"#)));
        let others = [
            who(&here, Some(r#"{"name":"b"}"#)),
            who(&here, None),
            who(&head([10, 0, 0, 2], "Bearer a"), Some(r#"{"name":"a"}"#)),
            who(&head([10, 0, 0, 1], "Bearer b"), Some(r#"{"name":"a"}"#)),
        ];
        for other in others {
            assert_ne!(one, other);
        }
        // What an agent says of itself makes it nobody else.
        assert_eq!(one.principal, others[0].principal);
        assert_eq!(one.principal, others[3].principal);
        assert_ne!(one.principal, others[2].principal);
    }
}

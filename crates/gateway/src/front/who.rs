//! Whose a modern request is. It has no session, so nobody can say for certain; but agents take turns, and one that asks for
//! everything at once must not be as many agents as it has requests.
//!
//! So it is known by where it comes from, what it shows for itself and what it calls itself. Two that agree in all of that
//! are taken for one and share its turns, which is less than each would like and never less than one agent's part.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;

use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::gateway::Who;

/// Where a connection comes from. Its port is another for each connection, and says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct From(pub(super) IpAddr);

/// Whose this request is; `client` is what it says of itself, as it was spelt.
pub(super) fn who(head: &Parts, client: Option<&str>) -> Who {
    let from = head.extensions.get::<From>().map(|From(address)| *address);
    // Kept as a number alone: what it shows for itself is a secret.
    let mut hasher = DefaultHasher::new();
    (from, head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes), client).hash(&mut hasher);
    Who(hasher.finish())
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
    }
}

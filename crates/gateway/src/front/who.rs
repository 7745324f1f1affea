//! Whose a request is: agents take turns, and one that asks for everything at once must not be as many as it has requests.
//!
//! Its principal was decided at the entrance. Which of that principal's agents it is, only it can say: by its session, or by what the
//! first request on its connection called itself and showed for itself. Whoever has many names divides its own share with them.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use http::Extensions;
use http::header::AUTHORIZATION;
use http::request::Parts;

use super::activity::Activity;
use crate::budget::Owner;
use crate::principal::{Principal, Stay, Visitor};

/// Whose this request is; `client` is what it says of itself, as it was spelt.
pub(super) fn visitor(head: &Parts, client: Option<&str>) -> Visitor {
    // Kept as a number alone: what it shows for itself is a secret.
    let says = || number((head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes), client));
    let agent = match head.extensions.get::<Arc<Activity>>() {
        Some(connection) => connection.agent(says),
        None => says(),
    };
    Visitor { principal: principal(&head.extensions), agent, stay: Stay::Request }
}

/// Whose this session is.
pub(super) fn visitor_of_session(head: &Parts, session: u64) -> Visitor {
    let agent = number(("session", session));
    Visitor { principal: principal(&head.extensions), agent, stay: Stay::Session }
}

/// Whom a request acts for, as the entrance decided.
pub(super) fn principal(of: &Extensions) -> Principal {
    of.get::<Principal>().cloned().unwrap_or_else(Principal::nobody)
}

/// Whose bytes a request makes us keep.
pub(super) fn owner(of: &Extensions) -> Owner {
    let group = of.get::<Arc<Activity>>().map_or(0, |connection| connection.owner().group);
    Owner { principal: principal(of).number(), group }
}

pub(super) fn number(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::visitor;
    use crate::front::activity::Activity;
    use crate::front::caller::Caller;
    use crate::principal::Principal;
    use http::request::Parts;
    use linetender::session::Who;

    fn head(uid: u32, token: &str) -> Parts {
        let (mut head, ()) = http::Request::new(()).into_parts();
        head.extensions.insert(Activity::new(Caller::User(uid)));
        head.extensions.insert(Principal::user(uid));
        head.headers.insert("authorization", token.parse().unwrap());
        head
    }

    fn who(head: &Parts, client: Option<&str>) -> Who {
        visitor(head, client).who()
    }

    #[tokio::test]
    async fn requests_are_one_agents_if_everything_that_is_known_of_them_is_the_same() {
        let one = who(&head(1, "Bearer a"), Some(r#"{"name":"a"}"#));
        assert_eq!(one, who(&head(1, "Bearer a"), Some(r#"{"name":"a"}"#)));
        let others = [
            who(&head(1, "Bearer a"), Some(r#"{"name":"b"}"#)),
            who(&head(1, "Bearer a"), None),
            who(&head(2, "Bearer a"), Some(r#"{"name":"a"}"#)),
            who(&head(1, "Bearer b"), Some(r#"{"name":"a"}"#)),
        ];
        for other in others {
            assert_ne!(one, other);
        }
        // What an agent says of itself makes it nobody else's.
        assert!([0, 1, 3].into_iter().all(|at| others[at].principal == one.principal));
        assert_ne!(one.principal, others[2].principal);
    }

    #[tokio::test]
    async fn x07_a_connection_is_one_agent_whatever_its_requests_say() {
        let head = head(1, "Bearer a");
        assert_eq!(who(&head, Some("a")), who(&head, Some("b")));
    }
}

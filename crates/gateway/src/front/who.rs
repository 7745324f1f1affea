//! Whose a request is: agents take turns, and one that asks for everything at once must not be as many as it has requests.
//!
//! Its principal is what the machine knows of the connection it came on. Which of that principal's agents it is, only it can
//! say: by its session, or by what the first request on its connection called itself and showed for itself. Whoever has many
//! names divides its own share with them.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use linetender::session::Who;

use super::activity::Activity;

/// Whose this request is; `client` is what it says of itself, as it was spelt.
pub(super) fn who(head: &Parts, client: Option<&str>) -> Who {
    // Kept as a number alone: what it shows for itself is a secret.
    let shown = head.headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
    let said = number((shown, client));
    match head.extensions.get::<Arc<Activity>>() {
        Some(connection) => Who { principal: connection.owner().principal, agent: connection.agent(said) },
        None => Who { principal: 0, agent: said },
    }
}

/// Whose this session is.
pub(super) fn whose_session(head: &Parts, session: u64) -> Who {
    let connection = head.extensions.get::<Arc<Activity>>();
    let principal = connection.map_or(0, |connection| connection.owner().principal);
    Who { principal, agent: number(("session", session)) }
}

pub(super) fn number(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::who;
    use crate::front::activity::Activity;
    use crate::front::caller::Caller;
    use http::request::Parts;

    fn head(uid: u32, token: &str) -> Parts {
        let (mut head, ()) = http::Request::new(()).into_parts();
        head.extensions.insert(Activity::new(Caller::User(uid)));
        head.headers.insert("authorization", token.parse().unwrap());
        head
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

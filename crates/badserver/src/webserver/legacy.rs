//! What 2025-11-25 asks of a request: a session, unless the server has none.

use serde_json::Value;

use super::manners::{Manners, Speaks, UnknownSession};
use super::post::Asked;
use super::reply::{self, Answer, Refused};

pub(super) const SESSION: &str = "mcp-session-id";

/// Lets a request in, or says why not.
pub(super) fn admit(asked: &Asked, manners: &Manners) -> Result<(), Refused> {
    if asked.header("mcp-protocol-version").is_some_and(|version| version >= "2026") {
        return Err(
            reply::json(400, &reply::error(&Value::Null, -32000, "unsupported protocol version")).into()
        );
    }
    if manners.stateless || asked.method() == "initialize" {
        return Ok(());
    }
    let Some(session) = asked.header(SESSION) else {
        return Err(reply::json(400, &reply::error(&Value::Null, -32000, "not initialized")).into());
    };
    if asked.house.knows(session) { Ok(()) } else { Err(unknown(asked, manners.unknown_session).into()) }
}

/// Ends a session.
pub(super) fn delete(asked: &Asked, manners: &Manners) -> Answer {
    if manners.speaks == Speaks::Modern || manners.stateless {
        return reply::text(405, "there are no sessions");
    }
    match admit(asked, manners) {
        Ok(()) => {
            asked.house.close_session(asked.header(SESSION).unwrap_or_default());
            reply::text(200, "")
        }
        Err(refused) => *refused,
    }
}

/// Refuses a session as a server does that does not know it.
pub(super) fn unknown(asked: &Asked, how: UnknownSession) -> Answer {
    let words = "no such session";
    match how {
        UnknownSession::NotFound => reply::json(404, &reply::error(&Value::Null, -32001, words)),
        UnknownSession::NotFoundById => reply::json(404, &reply::error(asked.id(), -32001, words)),
        UnknownSession::BadRequest => reply::json(400, &reply::error(&Value::Null, -32000, words)),
        UnknownSession::Unauthorized => reply::text(401, words),
        UnknownSession::Unavailable => reply::text(503, words),
        UnknownSession::Error(code) => reply::json(200, &reply::error(asked.id(), code, words)),
    }
}

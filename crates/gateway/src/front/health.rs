//! What a service manager asks.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, json};

use super::{Front, reply};
use crate::principal::Principal;

/// It runs.
pub(super) async fn healthz() -> Response {
    reply::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Whether agents should be sent here, and where each line stands. A server that is down is no reason not to: the
/// others are served, and calls to it say why they fail.
///
/// Which servers there are is nobody else's business: whoever is not known learns no more than whether to wait, and whoever is hears of
/// those it sees.
pub(super) async fn readyz(
    State(front): State<Arc<Front>>,
    principal: Option<Extension<Principal>>,
) -> Response {
    let leaves = front.far.as_ref().is_some_and(|far| far.kin.leaves());
    let ready = !leaves && !*front.closing.borrow();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let Some(Extension(principal)) = principal else {
        return reply::json(status, json!({ "ready": ready }).to_string());
    };
    let sight = front.gateway.seen_by(&principal);
    let states: Map<_, _> = (sight.berths())
        .map(|berth| (berth.name().to_owned(), berth.line.status().state.name().into()))
        .collect();
    reply::json(status, json!({ "ready": ready, "servers": states }).to_string())
}

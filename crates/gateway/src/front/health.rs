//! What a service manager asks.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, json};

use super::caller::Caller;
use super::{Front, reply};

/// It runs.
pub(super) async fn healthz() -> Response {
    reply::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Whether agents should be sent here, and where each line stands. A server that is down is no reason not to: the
/// others are served, and calls to it say why they fail.
///
/// Which servers there are is nobody else's business: whoever is not admitted learns no more than whether to wait.
pub(super) async fn readyz(State(front): State<Arc<Front>>, caller: Option<Extension<Caller>>) -> Response {
    let ready = !*front.closing.borrow();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if caller.is_none_or(|Extension(caller)| caller.is_stranger()) {
        return reply::json(status, json!({ "ready": ready }).to_string());
    }
    let lines = front.gateway.lines();
    let states: Map<_, _> =
        lines.iter().map(|line| (line.name().to_owned(), line.status().state.name().into())).collect();
    reply::json(status, json!({ "ready": ready, "servers": states }).to_string())
}

//! What the gateway says of itself to whoever wants a token for it.
// RFC 9728; MCP 2026-07-28, "Authorization": servers MUST implement protected resource metadata.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, HOST, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::json;

use super::{Front, reply};
use crate::config::Settings;

/// Where such documents are: the resource's own path follows.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The longest path that is repeated in a header.
const LONGEST: usize = 1024;

/// The gateway as a resource that tokens are issued for.
#[derive(Debug)]
pub(super) struct Resource {
    public_url: Option<String>,
    scheme: &'static str,
}

impl Resource {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { public_url: settings.public_url.clone(), scheme: settings.scheme() }
    }

    /// What the gateway is called from outside, without a path. If nobody said, as this request calls it, whose host was let in.
    fn base(&self, uri: &Uri, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| uri.authority().map(http::uri::Authority::as_str)).unwrap_or("localhost");
        format!("{}://{host}", self.scheme)
    }

    /// Where the document about the resource is that this request is for.
    pub(super) fn document_of(&self, uri: &Uri, headers: &HeaderMap) -> String {
        let is_ours = |path: &&str| path.starts_with("/mcp") && path.len() <= LONGEST;
        let path = Some(uri.path()).filter(is_ours).unwrap_or("/mcp");
        format!("{}{WELL_KNOWN}{path}", self.base(uri, headers))
    }
}

/// The document about `/mcp`, or about `/mcp/NAME`. Whether there is such a server it does not say.
pub(super) async fn document(
    State(front): State<Arc<Front>>,
    name: Option<Path<String>>,
    request: Request,
) -> Response {
    let Some((issuer, scopes)) = front.bearers.as_ref().and_then(|of| Some((of.issuer()?, of.scopes())))
    else {
        let words = "this gateway accepts no tokens of an authorization server (gateway.auth.jwt)";
        return reply::error(StatusCode::NOT_FOUND, "null", -32600, words);
    };
    // As it is spelt in the address: that is what the resource is called.
    let path = name.and(request.uri().path().strip_prefix(WELL_KNOWN)).unwrap_or("/mcp");
    let resource = format!("{}{path}", front.resource.base(request.uri(), request.headers()));
    let mut document = json!({
        "resource": resource,
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "linetender",
    });
    if !scopes.is_empty() {
        document["scopes_supported"] = scopes.into();
    }
    let mut response = reply::json(StatusCode::OK, document.to_string());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}

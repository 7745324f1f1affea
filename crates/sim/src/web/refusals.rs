//! What a host says instead of the result. Nothing in it depends on whether the host ran the call.

use serde_json::{Value, json};

use super::http1::Request;
use super::serve::{JSON, SESSION, Served};

/// Where a redirect leads.
pub(super) const MOVED: &str = "/moved";

const STATUSES: [u16; 12] = [200, 400, 400, 401, 403, 404, 405, 413, 429, 500, 502, 503];

/// Codes that mean something to a client, and one that does not.
const CODES: [i64; 8] = [-32020, -32021, -32022, -32600, -32602, -32001, -32002, -32603];

impl Served {
    /// Says anything but the result.
    pub(super) async fn refuse(&mut self, nonce: &str, id: &Value, request: &Request) -> Option<()> {
        let session = request.headers.get(SESSION).filter(|_| !self.manners.modern);
        match (self.rng.below(10), session) {
            (0..6, _) => self.refuse_by_status(nonce, id, session).await,
            (6..8, Some(session)) => {
                // Half of the sessions live on.
                if self.rng.percent(50) {
                    self.web.forget(session);
                    self.web.scene.book().session_gone(nonce, self.web.scene.now());
                }
                self.web.scene.book().doubted(nonce, session);
                self.refuse_session().await
            }
            (8, _) if self.manners.challenges => self.challenge(nonce).await,
            _ if request.path != MOVED => {
                self.web.scene.book().refused(nonce, "redirect");
                let status = self.rng.pick(&[307, 308]);
                self.whole(status, &[("location", MOVED)], "").await
            }
            _ => self.refuse_by_status(nonce, id, session).await,
        }
    }

    async fn refuse_by_status(&mut self, nonce: &str, id: &Value, session: Option<&String>) -> Option<()> {
        let (status, code) = (self.rng.pick(&STATUSES), self.rng.pick(&CODES));
        let error =
            |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } });
        let body = match self.rng.below(3) {
            0 => error(id).to_string(),
            1 => error(&Value::Null).to_string(),
            _ => "no".to_owned(),
        };
        let kind = if body.starts_with('{') { JSON } else { ("content-type", "text/plain") };
        let mut headers = vec![kind];
        if matches!(status, 429 | 503) && self.rng.percent(50) {
            headers.push(("retry-after", "1"));
        }
        match (status, session) {
            (400, _) if kind == JSON && matches!(code, -32020 | -32022) => {
                self.web.scene.book().refused(nonce, "protocol");
            }
            (429, _) => self.web.scene.book().refused(nonce, "rate-limited"),
            (400 | 404, Some(session)) => self.web.scene.book().doubted(nonce, session),
            _ => {}
        }
        self.whole(status, &headers, &body).await
    }

    async fn challenge(&mut self, nonce: &str) -> Option<()> {
        self.web.scene.book().refused(nonce, "auth");
        let (status, challenge) = self
            .rng
            .pick(&[(401, "Bearer error=\"invalid_token\""), (403, "Bearer error=\"insufficient_scope\"")]);
        self.whole(status, &[("www-authenticate", challenge)], "no").await
    }
}

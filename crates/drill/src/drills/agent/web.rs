//! An agent at an address: one request, one connection, and a session where there is one.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use linetender_badserver::agent::{self, Asks, Reply};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::scenario::Era;

/// Where to, and what it gave us.
pub(crate) struct Web {
    to: SocketAddr,
    path: String,
    era: Era,
    session: Mutex<Option<String>>,
    /// How often a session was refused, and begun anew.
    pub(crate) reconnects: AtomicU32,
}

/// What came of a request.
pub(crate) enum Heard {
    /// A message, as it was spelt.
    Message(String),
    /// A status, without a message.
    Status(u16),
    /// The session is not known any more.
    NoSession,
    /// Nothing: the connection ended.
    Closed,
}

impl Web {
    /// At this address, which is plain HTTP on this machine.
    pub(crate) fn at(url: &str, era: Era) -> Result<Self, String> {
        let (to, path) = address(url)?;
        let (session, reconnects) = (Mutex::default(), AtomicU32::new(0));
        Ok(Self { to, path, era, session, reconnects })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.to
    }

    /// Begins a session with this greeting.
    pub(crate) async fn begin(&self, hello: &Value, initialized: &Value) -> Heard {
        *self.session.lock().await = None;
        let (heard, session) = self.exchange(hello, None).await;
        if self.era == Era::Legacy && matches!(heard, Heard::Message(_)) {
            let _ = self.post(initialized, session.as_deref()).await;
        }
        *self.session.lock().await = session;
        heard
    }

    /// The answer to a request.
    pub(crate) async fn ask(&self, message: &Value) -> Heard {
        let session = self.session.lock().await.clone();
        self.exchange(message, session).await.0
    }

    pub(crate) async fn tell(&self, message: &Value) {
        let session = self.session.lock().await.clone();
        let _ = self.post(message, session.as_deref()).await;
    }

    pub(crate) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    async fn exchange(&self, message: &Value, session: Option<String>) -> (Heard, Option<String>) {
        let Ok(mut reply) = self.post(message, session.as_deref()).await else {
            return (Heard::Closed, None);
        };
        // MCP 2025-11-25, Streamable HTTP, "Session Management": 404 to a session means that a new one has to be begun.
        if reply.status == 404 && session.is_some() {
            return (Heard::NoSession, None);
        }
        let given = reply.session().map(str::to_owned);
        loop {
            match reply.next_text().await {
                Ok(Some(text)) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    if is_answer(&text, message, reply.status.as_u16()) {
                        return (Heard::Message(text), given);
                    }
                }
                Ok(None) if reply.status == 200 => return (Heard::Closed, given),
                Ok(None) => return (Heard::Status(reply.status.as_u16()), given),
                Err(_) => return (Heard::Closed, given),
            }
        }
    }

    async fn post(&self, message: &Value, session: Option<&str>) -> Result<Reply, String> {
        let asks = match self.era {
            Era::Legacy => Asks::Legacy(session),
            Era::Modern => Asks::Modern,
        };
        agent::post(self.to, &self.path, asks, message).await
    }
}

/// The address and the path of a URL.
pub(super) fn address(url: &str) -> Result<(SocketAddr, String), String> {
    let rest = url.strip_prefix("http://").ok_or_else(|| format!("{url} is not http://"))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.replace("localhost", "127.0.0.1");
    let to = host.parse().map_err(|_| format!("{url} has no address with a port in it"))?;
    Ok((to, format!("/{path}")))
}

/// Whether this is what was waited for. A refusal by status names no id, and need not even be a message.
fn is_answer(text: &str, asked: &Value, status: u16) -> bool {
    match serde_json::from_str::<Value>(text) {
        Ok(said) => said.get("method").is_none() && (said["id"] == asked["id"] || status != 200),
        Err(_) => true,
    }
}

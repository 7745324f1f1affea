//! The two ends of a session, in the form in which `rmcp` wants them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use linetender::session::{self, Agent, Passed};
use linetender::{Line, Rig, Server};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::read::{Heard, read};

/// How long a client that closes waits for its server to be gone. The close ladder of a default policy ends well before.
const GONE: Duration = Duration::from_secs(15);

/// Refusals that wait for room. A session lets no more questions than that be open.
const REFUSALS: usize = 256;

/// An `rmcp` client transport that survives server restarts. Created by [`transport`], [`transport_on`] or [`shared`].
///
/// It ends when the client closes it, and never by itself.
#[derive(Debug)]
pub struct SessionTransport {
    server: Box<str>,
    ends: Ends,
    /// What the server is told of questions that the client could not read.
    refusals: VecDeque<Bytes>,
}

#[derive(Debug)]
enum Ends {
    Open(Agent),
    Closed,
}

/// The transport is closed; the message was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the session with {server} was closed by its client")]
pub struct Closed {
    server: Box<str>,
}

/// Transport for one client with its own server, which starts with `initialize` and stops with the client.
///
/// The client's name and capabilities go to the server, and the server's questions (sampling, elicitation, roots) come to
/// the client's handler.
///
/// ```no_run
/// use linetender::Server;
/// use rmcp::ServiceExt as _;
/// use rmcp::model::CallToolRequestParams;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ().serve(linetender_rmcp::transport(Server::stdio("time", ["mcp-server-time"]))).await?;
/// let result = client.call_tool(CallToolRequestParams::new("get_current_time")).await?;
/// if result.is_error == Some(true) {
///     println!("it says why, and whether the call may have run: {:?}", result.content);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Outside a tokio runtime.
pub fn transport(server: impl Into<Server>) -> SessionTransport {
    transport_on(server, &Rig::new())
}

/// Like [`transport`], on a shared [`Rig`], which limits how many servers start at once.
///
/// ```no_run
/// use linetender::{Rig, Server};
/// use rmcp::ServiceExt as _;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let rig = Rig::new();
/// let time = ().serve(linetender_rmcp::transport_on(Server::stdio("time", ["mcp-server-time"]), &rig)).await?;
/// let git = ().serve(linetender_rmcp::transport_on(Server::stdio("git", ["mcp-server-git"]), &rig)).await?;
/// # drop((time, git));
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Outside a tokio runtime.
pub fn transport_on(server: impl Into<Server>, rig: &Rig) -> SessionTransport {
    let server = server.into();
    let name = server.name().into();
    SessionTransport::of(name, session::open(server, rig))
}

/// Transport for one of several clients that share a server; the server keeps running when one of them disconnects.
///
/// Such a line declares no sampling, elicitation or roots to its server: nothing would say whose question it is.
///
/// ```no_run
/// use linetender::{Line, Server};
/// use rmcp::ServiceExt as _;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let line = Line::open(Server::stdio("time", ["mcp-server-time"]));
/// let one = ().serve(linetender_rmcp::shared(&line)).await?;
/// let other = ().serve(linetender_rmcp::shared(&line)).await?;
/// # drop((one, other));
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Outside a tokio runtime.
pub fn shared(line: &Line) -> SessionTransport {
    SessionTransport::of(line.name().into(), session::join(line))
}

impl SessionTransport {
    fn of(server: Box<str>, agent: Agent) -> Self {
        Self { server, ends: Ends::Open(agent), refusals: VecDeque::new() }
    }

    fn refuse(&mut self, text: Bytes) {
        if self.refusals.len() == REFUSALS {
            self.refusals.pop_front();
        }
        self.refusals.push_back(text);
    }
}

impl Transport<RoleClient> for SessionTransport {
    type Error = Closed;

    fn name() -> Cow<'static, str> {
        "linetender".into()
    }

    /// Hands a message over now if there is room, for `rmcp` runs these futures in any order, and a cancellation must not
    /// overtake its request.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let closed = Closed { server: self.server.clone() };
        let handed = match &self.ends {
            Ends::Open(agent) => hand_over(&agent.to, &message),
            Ends::Closed => Handed::Gone,
        };
        async move {
            match handed {
                Handed::Over => Ok(()),
                Handed::Waits(to, text) => to.send(text).await.map_err(|_| closed),
                Handed::Gone => Err(closed),
            }
        }
    }

    /// The next message that the client can read. Cancel-safe: nothing is held across an await.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Ends::Open(agent) = &mut self.ends else { return None };
            // What is to be refused must not keep answers from being read: the session may wait for that.
            let text = tokio::select! {
                Ok(room) = agent.to.reserve(), if !self.refusals.is_empty() => {
                    if let Some(refusal) = self.refusals.pop_front() {
                        room.send(refusal.into());
                    }
                    continue;
                }
                text = agent.from.recv() => text?,
            };
            match read(text.text(), &self.server) {
                Heard::Message(message) => return Some(*message),
                Heard::Refused(refusal) => self.refuse(refusal),
                Heard::Nothing => {}
            }
        }
    }

    /// Ends the session, and waits until nothing of its server is left; or, on a shared line, of the client's own.
    async fn close(&mut self) -> Result<(), Closed> {
        if let Ends::Open(Agent { to, from }) = std::mem::replace(&mut self.ends, Ends::Closed) {
            // Nobody reads the last answers, so the session need not wait for them. It holds its end until it is over.
            drop(from);
            if tokio::time::timeout(GONE, to.closed()).await.is_err() {
                tracing::warn!(server = &*self.server, "client closed; its server is still shutting down");
            }
        }
        Ok(())
    }
}

/// What became of a message.
enum Handed {
    Over,
    Waits(mpsc::Sender<Passed>, Passed),
    Gone,
}

fn hand_over(to: &mpsc::Sender<Passed>, message: &TxJsonRpcMessage<RoleClient>) -> Handed {
    // What `rmcp` makes of its own models is always JSON.
    let Ok(text) = serde_json::to_vec(message) else { return Handed::Gone };
    match to.try_send(Bytes::from(text).into()) {
        Ok(()) => Handed::Over,
        Err(TrySendError::Full(text)) => Handed::Waits(to.clone(), text),
        Err(TrySendError::Closed(_)) => Handed::Gone,
    }
}

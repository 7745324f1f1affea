//! What one node asks of another, in one message and its answer.

use std::io;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Subject};
use linetender_core::lease::{Fence, Node};
use serde::{Deserialize, Serialize};

/// Which orders this linetender understands. A newer one is refused, and says so.
pub(super) const SPEAKS: u32 = 1;

/// How long a node may take to answer.
const ANSWERS: Duration = Duration::from_secs(3);

/// An order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) speaks: u32,
    /// The name of the node that asks.
    pub(super) from: String,
    pub(super) wants: Wants,
}

/// What is wanted.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Wants {
    /// Nothing but an answer.
    Alive,
    /// A stream to its front.
    Front { stream: String },
    /// A seat on a line, of which its owner has this fence.
    Line { line: String, node: u64, claim: u64, stream: String },
}

impl Wants {
    pub(super) fn line(line: &str, fence: Fence, stream: &str) -> Self {
        let Fence { node: Node(node), claim } = fence;
        Self::Line { line: line.to_owned(), node, claim, stream: stream.to_owned() }
    }
}

/// What is said to it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Answer {
    Alive,
    /// The stream begins, and this is its other place.
    Taken {
        stream: String,
    },
    /// The line is not, or no longer, owned under that fence.
    Elsewhere,
    /// It cannot be done, and why.
    Refused {
        why: String,
    },
}

/// Where a node is asked.
pub(super) fn subject(fleet: &str, node: Node) -> Subject {
    format!("linetender.{fleet}.node.{:016x}", node.0).into()
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nobody is there: it was not delivered.
    Nobody,
    /// It is not known.
    Silence(String),
}

/// Asks a node.
pub(super) async fn ask(client: &Client, to: Subject, order: &Order) -> Result<Answer, NoAnswer> {
    let silence = |error: &dyn std::fmt::Display| NoAnswer::Silence(error.to_string());
    let text = serde_json::to_vec(order).map_err(|error| silence(&error))?;
    match tokio::time::timeout(ANSWERS, client.request(to, text.into())).await {
        Ok(Ok(message)) => serde_json::from_slice(&message.payload).map_err(|error| silence(&error)),
        Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Err(NoAnswer::Nobody),
        Ok(Err(error)) => Err(silence(&error)),
        Err(_) => Err(silence(&io::Error::from(io::ErrorKind::TimedOut))),
    }
}

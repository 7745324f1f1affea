//! What an owner answers to an order.

use serde::{Deserialize, Serialize};

/// What an owner says to an order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It holds the line, and the hop begins.
    Taken(Taken),
    /// It does not share this server, and why: whoever asks has to run it.
    Private(String),
    /// Not now: it is about to go. Whoever asks finds another.
    Later,
}

/// Who has taken an order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Taken {
    /// The owner's number among all that ever owned the line: an older one is not believed.
    pub fence: u64,
    /// Which linetender it is.
    pub version: String,
    /// Whether it took the pipes that it was offered.
    #[serde(default)]
    pub pipes: bool,
}

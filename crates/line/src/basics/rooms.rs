//! Who counts what is kept of messages that have not all come.

use std::fmt;
use std::sync::Arc;

use linetender_wire::Room;
use tokio::sync::Notify;

/// Whoever counts what is kept of messages that servers have not finished sending, all of them together. One that is not counted has
/// the limit of its policy, and no other.
pub trait Rooms: fmt::Debug + Send + Sync {
    /// Room for one such message of this server's. `wanted` is to be told if what it has must be given up.
    fn room(&self, server: &str, wanted: &Arc<Notify>) -> Box<dyn Room>;
}

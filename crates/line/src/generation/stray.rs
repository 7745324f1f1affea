//! Errors without an id while several calls are in flight: which of them one is about shows later, if at all.

use std::sync::Arc;
use std::time::Duration;

use linetender_wire::Seen;
use linetender_wire::handshake::Hello;

use super::link::{Live, Probed};

/// How long the calls that an error may be about have to be answered, before it is looked at again which of them was not.
const LOOK: Duration = Duration::from_secs(5);

/// An error without an id.
pub(crate) struct Stray {
    /// What a caller is told of it.
    pub(crate) seen: Arc<Seen>,
    /// The calls that were in flight.
    pub(crate) about: Vec<u64>,
}

impl Stray {
    /// Waits until one of the calls is left alone. If the server answers a ping as it answered the others, the error was about
    /// that one, and no answer to it will come.
    pub(crate) async fn settle(mut self, live: Arc<Live>, hello: Hello) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.about.retain(|id| live.ledger.is_in_flight(*id));
            match *self.about {
                [] => return,
                [id] => {
                    let probed = tokio::time::timeout(LOOK, live.probe(&hello)).await;
                    if matches!(probed, Ok(Probed::Alive)) {
                        live.ledger.lose(id, &self.seen);
                    }
                    return;
                }
                _ => {}
            }
        }
    }
}

//! Whether a server still knows the session that it was initialized for.
//!
//! A server can be restarted behind a process that lives on: a watcher, a shell loop, `exec` of itself, a proxy that starts its
//! child again. The pipe stays open, and the new server answers each call with an error, because no client has initialized it.
//! The Python SDK 1.x says only "Invalid request parameters" and still answers `ping`. So the error of a call is compared with
//! the answer to a list that this very generation has given before.

use std::sync::OnceLock;
use std::time::Duration;

use linetender_wire::frame::{Message, Outcome};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::link::Live;
use super::reach::Reach;
use crate::basics::kind::Kind;
use crate::basics::refusal::Refusal;
use crate::book::Reply;
use linetender_wire::handshake::Era;

/// What is known of one generation.
#[derive(Default)]
pub(super) struct SessionCheck {
    /// The list that the server refused, and how: from then on it is a stranger.
    lost: OnceLock<(Kind, Refusal)>,
    /// When the last list was asked for that the server gave. Locked while one is asked for: one serves all calls.
    given: Mutex<Option<Instant>>,
}

impl Live {
    /// True if the session can get lost without an end that the transport shows. Modern servers have none, and the
    /// keeper of a shared server looks for itself.
    pub(crate) fn may_lose_session(&self) -> bool {
        self.era() == Era::Legacy && !matches!(self.reach, Reach::Hop(_))
    }

    /// True if the server refuses `list`, which it gave before in this generation, as it just refused a call of `method`. The list
    /// is asked for once for all calls that were refused before that.
    pub(crate) async fn has_lost_session(
        &self,
        list: Kind,
        (method, refusal): (&str, &Refusal),
        limit: Duration,
    ) -> bool {
        let refused = Instant::now();
        let look = async {
            let mut given = self.session.given.lock().await;
            if self.session.lost.get().is_none() && given.is_none_or(|asked| asked < refused) {
                let asked = Instant::now();
                match self.refusal_of(list).await {
                    Some(said) => drop(self.session.lost.set((list, said))),
                    None => *given = Some(asked),
                }
            }
            self.session.lost.get().is_some_and(|(list, said)| said.is_same(list.method(), refusal, method))
        };
        timeout(limit, look).await.unwrap_or_default()
    }

    /// How the server refuses a list, if it does so in a way that shows a lost session.
    async fn refusal_of(&self, list: Kind) -> Option<Refusal> {
        let reply = self.ask_when_room(list.method(), None).await?.await.ok()?;
        let Reply::Answer(frame) = reply else { return None };
        match frame.message() {
            Message::Response { outcome: Some((Outcome::Error, error)), .. } => Refusal::of(error),
            _ => None,
        }
    }
}

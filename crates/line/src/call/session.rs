//! An answer that says that the server was never initialized: the session is lost, or the server means something else.

use std::sync::Arc;
use std::time::Duration;

use linetender_core::{Extent, Gate, Instant, LossReport, Record, RecordStep, ServerRefusal};
use linetender_wire::frame::Frame;
use linetender_wire::{Redacted, Seen};

use super::{Call, Reply};
use crate::basics::kind::Kind;
use crate::basics::refusal::Refusal;
use crate::book::Lost;
use crate::generation::Live;
use crate::tender::Inbox;

/// Longest wait for the end of a generation whose session is lost.
const ENDS: Duration = Duration::from_secs(1);

/// How much is quoted of what the server says.
const SAID: usize = 400;

impl Call<'_> {
    /// Tells an answer of the server from the refusal of a server that was restarted behind its process.
    ///
    /// # Errors
    /// If it is such a refusal: the call is lost with the session.
    pub(super) async fn judged(
        &self,
        link: &Live,
        frame: Frame,
        record: Record,
        until: Instant,
    ) -> Result<Reply, Lost> {
        let answer = Reply::new(frame, link.era());
        let Some(refusal) = answer.error().and_then(Refusal::of) else { return Ok(answer) };
        if self.is_of_stranger(link, &refusal, until).await {
            return Err(self.lost_with_session(link, record, &refusal).await);
        }
        // Until here it counted as no service.
        link.ledger.signs.answered();
        Ok(answer)
    }

    async fn is_of_stranger(&self, link: &Live, refusal: &Refusal, until: Instant) -> bool {
        let Some(list) = self.list_of(link).filter(|_| link.may_lose_session()) else { return false };
        let limit =
            until.since(self.shared.clock.now()).min(self.shared.server.policy.settings().probe.timeout);
        link.has_lost_session(list, (self.method, refusal), limit).await
    }

    /// A list that the server gave in this generation.
    fn list_of(&self, link: &Live) -> Option<Kind> {
        let catalogue = self.shared.catalogue.borrow();
        (catalogue.generation == link.generation.number()).then(|| catalogue.given()).flatten()
    }

    async fn lost_with_session(&self, link: &Live, record: Record, refusal: &Refusal) -> Lost {
        let seen = Seen::NotInitialized { said: Redacted::head(refusal.words(), SAID) };
        // A tender that is gone has no generation left to replace.
        let _ = self.shared.inbox.send(Inbox::SessionLost(link.generation, seen.clone())).await;
        // What the caller is told of the end is known then.
        let mut published = self.shared.published.clone();
        let ended = published.wait_for(|now| now.gate != (Gate::Go { generation: link.generation }));
        let _ = tokio::time::timeout(ENDS, ended).await;
        if let Some(place) = &self.options.place {
            place.return_to_queue();
        }
        let report = LossReport::Refused(ServerRefusal::SessionLost);
        let lost = record
            .step(RecordStep::Write(Extent::default()))
            .and_then(|record| record.step(RecordStep::Lose(report)))
            .unwrap_or(record);
        Lost::with_all(lost, Some(Arc::new(seen)))
    }
}

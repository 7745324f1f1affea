//! A call that is with its server: it waits for the answer, for its time, or for nobody.

use std::sync::Arc;

use linetender_core::{Delivery, Extent, Instant, Record, RecordStep, Safety, Span};
use linetender_wire::frame::{self, Frame};
use tokio::sync::oneshot;

use super::{Deadline, Shared};
use crate::dial::Link;
use crate::entry::{Entry, Reply};
use crate::error::CallErrorKind;
use crate::tender::Inbox;

/// How one try ended.
pub(super) enum Try {
    /// The server answered.
    Answer(Frame),
    /// The call is over without an answer to pass on.
    Over(CallErrorKind, Record, String),
    /// Its generation lost it.
    Lost(Record),
    /// It could not be registered: that generation is over.
    Sealed,
}

/// A call that is out. If its caller goes away, the server is told, and the seat is free.
pub(super) struct Out<'a> {
    shared: &'a Arc<Shared>,
    link: &'a Arc<Link>,
    entry: Arc<Entry>,
    until: Instant,
    over: bool,
}

impl<'a> Out<'a> {
    pub(super) const fn new(
        shared: &'a Arc<Shared>,
        link: &'a Arc<Link>,
        entry: Arc<Entry>,
        until: Instant,
    ) -> Self {
        Self { shared, link, entry, until, over: false }
    }

    /// Waits for the answer, and watches the clock.
    pub(super) async fn wait(
        &mut self,
        answer: oneshot::Receiver<Reply>,
        deadline: Deadline,
        arrived: Instant,
        limit: Span,
    ) -> Try {
        let ended = self.end(answer, deadline, arrived, limit).await;
        self.over = true;
        ended
    }

    async fn end(
        &mut self,
        mut answer: oneshot::Receiver<Reply>,
        deadline: Deadline,
        arrived: Instant,
        limit: Span,
    ) -> Try {
        let clock = self.shared.clock;
        let cap = arrived + self.shared.server.policy.settings().call.cap.max(limit);
        loop {
            let timer = tokio::time::timeout_at(clock.at(self.until), &mut answer);
            match timer.await {
                Ok(Ok(Reply::Answer(frame))) => return Try::Answer(frame),
                Ok(Ok(Reply::Unusable(why))) => return unusable(why),
                Ok(Ok(Reply::Lost(record))) => return Try::Lost(record),
                // The generation dropped it without a word: nothing is known.
                Ok(Err(_)) => return unusable("the connection ended".into()),
                Err(_) => {}
            }
            let progress = self.entry.progress_at() + limit;
            if deadline == Deadline::Agent {
                self.overdue();
                self.until = clock.now() + limit;
            } else if progress > clock.now() && clock.now() < cap {
                self.until = progress.min(cap);
            } else if let Ok(record) = self.entry.withdraw(RecordStep::Expire) {
                self.leave(None);
                self.overdue();
                let cause = format!("no answer within {} ms", limit.millis());
                return Try::Over(CallErrorKind::TimedOut, record, cause);
            }
        }
    }

    fn overdue(&self) {
        let _ = self.shared.inbox.try_send(Inbox::Overdue(self.link.generation));
    }

    /// Out of the ledger, and the server is told to stop.
    fn leave(&self, owed_until: Option<Instant>) {
        self.link.ledger.abandon(self.entry.id, owed_until);
        let params = format!(r#"{{"requestId":{},"reason":"the caller gave up"}}"#, self.entry.id);
        self.link.ledger.tell(frame::notification("notifications/cancelled", Some(&params)));
    }
}

impl Drop for Out<'_> {
    fn drop(&mut self) {
        if !self.over
            && let Ok(record) = self.entry.withdraw(RecordStep::Cancel)
        {
            if matches!(record.delivery(), Some(Delivery::NotExecuted(_))) {
                // The writer skips it: nobody has to be told.
                self.link.ledger.abandon(self.entry.id, None);
            } else {
                self.leave(Some(self.until));
            }
        }
    }
}

/// The server answered, but not with something that can be passed on.
fn unusable(why: String) -> Try {
    let record = Record::new(Safety::Unsafe);
    let answered = record
        .step(RecordStep::Write(Extent::default()))
        .and_then(|record| record.step(RecordStep::Answer))
        .unwrap_or(record);
    Try::Over(CallErrorKind::BadAnswer, answered, why)
}

//! A call that is with its server: it waits for the answer, for its time, or for nobody.

use std::sync::Arc;
use std::time::Duration;

use linetender_core::{Delivery, Extent, Instant, Record, RecordStep, Safety};
use linetender_wire::frame::Frame;
use linetender_wire::seam::Exchange;
use tokio::sync::oneshot;

use super::Shared;
use crate::basics::error::CallErrorKind;
use crate::basics::late;
use crate::book::{Entry, Lost, Reply};
use crate::generation::Live;
use crate::server::Deadline;
use crate::status::signs::GiveUp;
use crate::tender::Inbox;

/// How one try ended.
pub(super) enum Try {
    /// The server answered.
    Answer(Frame),
    /// The call is over without an answer to pass on.
    Over(CallErrorKind, Record, String),
    /// It was lost, or could not be registered because that generation is over.
    Lost(Lost),
}

/// How long a call may take.
#[derive(Clone, Copy)]
pub(super) struct Time {
    pub(super) deadline: Deadline,
    /// How long the server may be quiet about it.
    pub(super) quiet: Duration,
    /// When it is over, whatever the server says.
    pub(super) total: Instant,
    /// For how long it may stand still while the agent answers questions of the server.
    pub(super) still: Duration,
}

impl Time {
    /// Until when a call may wait for its turn. The calls before it may take long, and that is no silence of the server's.
    pub(super) fn of_a_turn(&self, now: Instant, longest: Duration) -> Instant {
        match self.deadline {
            Deadline::Agent => now + longest,
            Deadline::Policy | Deadline::Within { .. } => self.total,
        }
    }

    /// Until when one try may be quiet. An agent that owns the deadline goes on waiting, however long ago it began.
    pub(super) fn of_a_try(&self, now: Instant) -> Instant {
        match self.deadline {
            Deadline::Agent => now + self.quiet,
            Deadline::Policy | Deadline::Within { .. } => (now + self.quiet).min(self.total),
        }
    }
}

/// A call that is out. If its caller goes away, the server is told, and the seat is free; an exchange that it carried ends.
pub(super) struct Out<'a> {
    shared: &'a Arc<Shared>,
    link: &'a Arc<Live>,
    entry: Arc<Entry>,
    until: Instant,
    /// For how long it stood still, as far as `until` and the total time are later for it.
    stood: Duration,
    over: bool,
}

impl<'a> Out<'a> {
    pub(super) const fn new(
        shared: &'a Arc<Shared>,
        link: &'a Arc<Live>,
        entry: Arc<Entry>,
        until: Instant,
    ) -> Self {
        Self { shared, link, entry, until, stood: Duration::ZERO, over: false }
    }

    /// Waits for the answer, and watches the clock.
    pub(super) async fn wait(
        mut self,
        answer: oneshot::Receiver<Reply>,
        mut exchange: Option<Exchange>,
        time: Time,
    ) -> Try {
        let ended = self.end(answer, &mut exchange, time).await;
        self.over = true;
        // One that was not ended by its call may still have to tell the line something.
        if !matches!(ended, Try::Over(CallErrorKind::TimedOut, ..))
            && let Some(rest) = exchange
        {
            rest.leave();
        }
        ended
    }

    async fn end(
        &mut self,
        mut answer: oneshot::Receiver<Reply>,
        exchange: &mut Option<Exchange>,
        mut time: Time,
    ) -> Try {
        let clock = self.shared.clock;
        loop {
            match self.brought_in_time(&mut answer, exchange, &mut time).await {
                Some(Ok(Reply::Answer(frame))) => return Try::Answer(frame),
                Some(Ok(Reply::Unusable(why))) => return unusable(why),
                Some(Ok(Reply::Lost(lost))) => return Try::Lost(lost),
                // The ledger is gone, and its calls with it.
                Some(Err(_)) => {
                    let record = self.entry.forgotten();
                    return Try::Lost(Lost::with_all(record, None));
                }
                None => {}
            }
            let now = clock.now();
            let progress = self.entry.progress_at() + time.quiet;
            if time.deadline == Deadline::Agent {
                self.overdue();
                self.until = now + time.quiet;
            } else if progress > now && now < time.total {
                self.until = progress.min(time.total);
            } else if let Ok(record) = self.entry.withdraw(RecordStep::Expire) {
                self.leave(&record, GiveUp::Expired);
                self.overdue();
                let mut cause = if now >= time.total && progress > now {
                    "timed out, although the server still reported progress".to_owned()
                } else {
                    format!("no response within {} ms", time.quiet.as_millis())
                };
                if let Some(health) = self.link.ledger.signs.health() {
                    cause = format!("{cause}; {}", health.advice(self.link.reach.pid()));
                }
                return Try::Over(CallErrorKind::TimedOut, record, cause);
            }
        }
    }

    /// The answer, if it comes before the time of the call is over. That stands still while the agent answers a question of the
    /// server: a person may take long.
    async fn brought_in_time(
        &mut self,
        answer: &mut oneshot::Receiver<Reply>,
        exchange: &mut Option<Exchange>,
        time: &mut Time,
    ) -> Option<Result<Reply, oneshot::error::RecvError>> {
        let clock = self.shared.clock;
        loop {
            if let Some(stand) = self.entry.stood() {
                let (spent, is_still) = stand.spent(clock.now());
                let more = spent.min(time.still).saturating_sub(self.stood);
                self.stood += more;
                self.until = self.until + more;
                time.total = time.total + more;
                if is_still && self.stood < time.still {
                    let end = clock.at(clock.now() + time.still.saturating_sub(self.stood));
                    tokio::select! {
                        biased;
                        reply = brought(answer, exchange) => return Some(reply),
                        () = stand.over.notified() => {}
                        () = tokio::time::sleep_until(end) => {}
                    }
                    continue;
                }
            }
            let brought = late::before(clock.at(self.until), brought(answer, exchange)).await;
            let stands = || {
                self.entry
                    .stood()
                    .is_some_and(|stand| stand.spent(clock.now()).0.min(time.still) > self.stood)
            };
            if brought.is_some() || !stands() {
                return brought;
            }
        }
    }

    fn overdue(&self) {
        let _ = self.shared.inbox.try_send(Inbox::Overdue(self.link.generation));
    }

    /// Out of the ledger; and if the server may have it, it is told to stop.
    fn leave(&self, record: &Record, how: GiveUp) {
        let id = self.entry.id;
        if matches!(record.delivery(), Some(Delivery::NotExecuted(_))) {
            // The writer skips it: the server has to be told nothing.
            if self.link.reach.has_exchanges() {
                self.link.ledger.withdrawn(id);
            } else {
                // It lies before a server that does not read.
                self.link.ledger.given_up(id, how);
            }
            self.link.reach.drop_exchange(id);
        } else {
            self.link.ledger.given_up(id, how);
            self.link.cancel(id);
        }
    }
}

impl Drop for Out<'_> {
    fn drop(&mut self) {
        if !self.over
            && let Ok(record) = self.entry.withdraw(RecordStep::Cancel)
        {
            self.leave(&record, GiveUp::Cancelled);
        }
    }
}

/// The answer, while whoever waits for it carries what brings it.
async fn brought(
    answer: &mut oneshot::Receiver<Reply>,
    exchange: &mut Option<Exchange>,
) -> Result<Reply, oneshot::error::RecvError> {
    while let Some(carried) = exchange {
        tokio::select! {
            biased;
            reply = &mut *answer => return reply,
            () = carried => *exchange = None,
        }
    }
    answer.await
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

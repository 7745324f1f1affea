//! The reckoning at the end of a generation: what it earned, what its end costs, and where the line goes.

use core::time::Duration;

use super::Machine;
use super::ending::{After, Ending, Served};
use super::starts::Starts;
use super::state::State;
use crate::backoff;
use crate::budget::{Account, Cost};
use crate::cause::{Cause, Leaf, Leaves, Plan};
use crate::class::{Charge, Class, Route};
use crate::time::{Instant, doubled};

/// What is remembered from one proven generation to the next. A handshake does not end an episode: only
/// service does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Episode {
    /// Generations in a row that ended unproven.
    pub(super) unproven: u32,
    /// Whether the free respawn after an era probe was used.
    pub(super) era_probed: bool,
    /// How often the line was parked.
    pub(super) parks: u32,
    /// How often use woke it.
    pub(super) wakes: u32,
}

impl<D> Machine<D> {
    /// The generation ends, and this is why. If it was draining, that is a reason too.
    pub(super) fn end(&mut self, cause: Cause<D>) {
        let served = self.close_books();
        let cause = match core::mem::replace(&mut self.state, State::Closed) {
            State::Draining { cause: plan, .. } => plan.join(cause),
            _ => cause,
        };
        self.lay_to_rest(cause, served);
    }

    /// A drain is over: its calls are done, or its time is up.
    pub(super) fn end_drained(&mut self) {
        let served = self.close_books();
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Draining { cause, .. } => self.lay_to_rest(cause, served),
            other => self.state = other,
        }
    }

    fn lay_to_rest(&mut self, cause: Cause<D>, served: Served) {
        let reckoned = self.reckon(&cause, served.answered);
        let settle_by = self.now + self.policy.close.settle;
        self.enter(State::Ending(Ending::new(cause, reckoned, settle_by, served)));
    }

    /// Something failed while the generation was ending. Before the server was told to die, a planned end becomes a
    /// mixed one, and that counts; after that, and if it was charged already, it is a note.
    pub(super) fn failed_while_ending(&mut self, late: Cause<D>) {
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Ending(mut ending) => {
                if ending.fell() || !ending.cause.leaves().planned() {
                    ending.cause.add_notes_of(late);
                } else {
                    ending.cause = ending.cause.join(late);
                    if ending.after != After::Closed {
                        let (after, cost) = self.reckon(&ending.cause, ending.served.answered);
                        ending.cost = cost;
                        // It is charged, but a failure does not undo what an operator said.
                        if ending.after != After::OutOfService {
                            ending.after = after;
                        }
                    }
                }
                self.state = State::Ending(ending);
            }
            other => self.state = other,
        }
    }

    /// Pays out what the generation earned, and tells how it served its callers.
    fn close_books(&mut self) -> Served {
        self.accrue();
        let live = self.state.live();
        let served = live.map_or_else(Served::default, |live| Served {
            answered: live.vitals.answered,
            exchanges: live.vitals.exchanges,
        });
        if live.is_some_and(|live| live.proven(&self.policy.probe)) {
            self.episode = Episode::default();
        } else {
            self.episode.unproven = self.episode.unproven.saturating_add(1);
        }
        served
    }

    /// Turns time up into budget, as far as there was a sign of life: silence earns nothing. Neither does a generation
    /// that has answered nobody, however long it idles: restarting it is of no use to anybody.
    pub(super) fn accrue(&mut self) {
        if let Some(live) = self.state.live_mut().filter(|live| live.vitals.answered > 0) {
            let heard_at = live.vitals.heard_at;
            self.budget.earn_uptime(&self.policy.budget, heard_at.since(live.paid_until));
            live.paid_until = live.paid_until.max(heard_at);
        }
    }

    /// The one place where an end is charged, and where it is decided what comes after it.
    fn reckon(&mut self, cause: &Cause<D>, answered: u64) -> (After, Cost) {
        if answered > 0 {
            self.starts = Starts::Answered;
        }
        let leaves = cause.leaves();
        if leaves.has(Leaf::Planned(Plan::Close)) {
            return (After::Closed, Cost::Free);
        }
        let charged = self.charges(leaves, answered > 0);
        let account = self.policy.budget.account(answered);
        let cost = match charged {
            false => Cost::Free,
            true if self.budget.take(account) => Cost::Token(account),
            true => Cost::Unpaid(account),
        };
        (self.next_place(cause, cost), cost)
    }

    fn next_place(&mut self, cause: &Cause<D>, cost: Cost) -> After {
        let (now, leaves) = (self.now, cause.leaves());
        let asked = cause.retry_after().unwrap_or(Duration::ZERO).min(self.policy.backoff.retry_after_cap);
        if leaves.out_of_service() {
            return After::OutOfService;
        }
        if let (Route::Wait, Cost::Token(_) | Cost::Unpaid(_)) = (leaves.route(), cost)
            && let Some(after) = self.spared_place(cause)
        {
            return after;
        }
        match (leaves.route(), cost) {
            (Route::NeedsAuth, _) => After::NeedsAuth { next_probe_at: now + self.policy.park.probe_cap },
            // The same dial would fail the same way: not worth a fast probe.
            (Route::Park, _) => self.park(self.policy.park.probe_cap, asked),
            (Route::Wait, Cost::Unpaid(_)) => {
                let probe = doubled(self.policy.park.probe, self.episode.parks, self.policy.park.probe_cap);
                let probe = self.jitter.around(probe);
                self.park(probe, asked)
            }
            (Route::Wait, Cost::Token(account)) => {
                After::Dial { at: self.charged_dial(now, account).max(now + asked) }
            }
            (Route::Wait, Cost::Free) => {
                let at = self.free_dial(now, leaves).max(now + asked);
                let stop = leaves.planned() && leaves.unused();
                if stop { After::Idle { not_before: at } } else { After::Dial { at } }
            }
        }
    }

    /// Whether any failure of the set takes a token.
    fn charges(&mut self, leaves: Leaves, served: bool) -> bool {
        leaves.failures().fold(false, |charged, class| {
            charged
                | match class.row().charge {
                    Charge::Always => true,
                    Charge::Never => false,
                    Charge::UnlessServed => !served,
                    Charge::AfterTheFirst => core::mem::replace(&mut self.episode.era_probed, true),
                }
        })
    }

    /// Backoff grows with the tokens missing; the first is free.
    fn charged_dial(&mut self, now: Instant, account: Account) -> Instant {
        let missing = self.budget.missing(&self.policy.budget, account);
        now + self.jitter.up_to(backoff::ceiling(&self.policy.backoff, account, missing))
    }

    /// A free end is not instant: two dials keep their distance, and a generation that proved nothing takes the
    /// normal backoff too. So no free path can spin.
    fn free_dial(&mut self, now: Instant, leaves: Leaves) -> Instant {
        if leaves == Leaves::of(Leaf::Failed(Class::EraProbe)) {
            return now;
        }
        let mut at = self.spaced(now);
        if self.episode.unproven > 0 {
            let account = Account::Ends;
            let missing = self.budget.missing(&self.policy.budget, account);
            let step = missing.max(self.episode.unproven) + 1;
            at = at.max(now + self.jitter.up_to(backoff::ceiling(&self.policy.backoff, account, step)));
        }
        at
    }

    /// Now, or as soon as the last dial is far enough away.
    pub(super) fn spaced(&self, now: Instant) -> Instant {
        now.max(self.dialled_at + self.policy.dial.gap)
    }

    fn park(&mut self, probe: Duration, asked: Duration) -> After {
        let wake = doubled(self.policy.park.wake, self.episode.wakes, self.policy.park.wake_cap);
        self.episode.parks = self.episode.parks.saturating_add(1);
        After::Park { next_probe_at: self.now + probe.max(asked), wake_from: self.now + wake.max(asked) }
    }
}

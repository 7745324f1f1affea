//! The reckoning at the end of a generation: what it earned, what its end costs, and where the line goes.

use super::Machine;
use super::ending::{After, Ending};
use super::state::State;
use crate::backoff;
use crate::cause::{Cause, Leaf, Leaves, Plan};
use crate::class::{Charge, Class, Route};
use crate::time::{Instant, Span};

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
    /// The generation ends, and this is why. The one place where an end is charged.
    pub(super) fn end(&mut self, cause: Cause<D>) {
        let now = self.now;
        let served = self.close_books(now);
        let after = self.reckon(now, cause.leaves(), cause.retry_after(), served);
        let settle_by = now + self.policy.close.settle;
        self.enter(State::Ending(Ending::new(cause, after, settle_by)));
    }

    /// A planned end whose calls are done or whose time is up.
    pub(super) fn end_drained(&mut self) {
        if let State::Draining { cause, .. } = self.take_draining() {
            self.end(cause);
        }
    }

    /// Leaves the live part in place, so that the books can be closed on it, and takes the cause.
    pub(super) fn take_draining(&mut self) -> State<D> {
        match self.take_state() {
            State::Draining { live, cause, until } => {
                self.state = State::Up(live);
                State::Draining { live, cause, until }
            }
            other => other,
        }
    }

    /// Pays out what the generation earned, and tells whether it answered a caller.
    fn close_books(&mut self, now: Instant) -> bool {
        self.accrue(now);
        let live = self.state.live();
        let served = live.is_some_and(|live| live.vitals.answered > 0);
        if live.is_some_and(|live| live.proven(now, &self.policy.probe)) {
            self.episode = Episode::default();
        } else {
            self.episode.unproven = self.episode.unproven.saturating_add(1);
        }
        served
    }

    /// Turns time up into budget. Time under suspicion earns nothing.
    pub(super) fn accrue(&mut self, now: Instant) {
        let suspect = matches!(self.state, State::Suspect(_));
        if let Some(live) = self.state.live_mut() {
            let up = now.since(live.paid_until);
            live.paid_until = now;
            if !suspect {
                self.budget.earn_uptime(&self.policy.budget, up);
            }
        }
    }

    fn reckon(&mut self, now: Instant, leaves: Leaves, retry_after: Option<Span>, served: bool) -> After {
        if leaves.has(Leaf::Planned(Plan::Close)) {
            return After::Closed;
        }
        let charged = self.charges(leaves, served);
        let paid = !charged || self.budget.take();
        match leaves.route() {
            Route::NeedsAuth => After::NeedsAuth { next_probe_at: now + self.policy.park.probe_cap },
            // The same dial would fail the same way: not worth a fast probe.
            Route::Park => self.park(now, self.policy.park.probe_cap),
            Route::Wait if !paid => {
                let probe = self.policy.park.probe.doubled(self.episode.parks, self.policy.park.probe_cap);
                let probe = self.jitter.around(probe);
                self.park(now, probe)
            }
            Route::Wait if leaves.planned() && leaves.idle_stop() => After::Idle,
            Route::Wait => {
                let at = if charged { self.charged_dial(now) } else { self.free_dial(now, leaves) };
                let wanted =
                    retry_after.map_or(Span::ZERO, |wait| wait.min(self.policy.backoff.retry_after_cap));
                After::Dial { at: at.max(now + wanted) }
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
    fn charged_dial(&mut self, now: Instant) -> Instant {
        let missing = self.budget.missing(&self.policy.budget);
        now + self.jitter.up_to(backoff::ceiling(&self.policy.backoff, missing))
    }

    /// A free end is not instant: two dials keep their distance, and a generation that proved nothing takes the
    /// normal backoff too. So no free path can spin.
    fn free_dial(&mut self, now: Instant, leaves: Leaves) -> Instant {
        if leaves == Leaves::of(Leaf::Failed(Class::EraProbe)) {
            return now;
        }
        let mut at = self.spaced(now);
        if self.episode.unproven > 0 {
            let step = self.budget.missing(&self.policy.budget).max(self.episode.unproven) + 1;
            at = at.max(now + self.jitter.up_to(backoff::ceiling(&self.policy.backoff, step)));
        }
        at
    }

    /// Now, or as soon as the last dial is far enough away.
    pub(super) fn spaced(&self, now: Instant) -> Instant {
        now.max(self.dialled_at + self.policy.dial.gap)
    }

    fn park(&mut self, now: Instant, probe: Span) -> After {
        let wake = self.policy.park.wake.doubled(self.episode.wakes, self.policy.park.wake_cap);
        self.episode.parks = self.episode.parks.saturating_add(1);
        After::Park { next_probe_at: now + probe, wake_from: now + wake }
    }
}

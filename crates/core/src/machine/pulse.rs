//! Feeling for life: when a live line is probed, and what an answer or its absence means.

use super::Machine;
use super::live::Pulse;
use super::refused::Listens;
use super::state::State;
use crate::cause::Cause;
use crate::class::Class;
use crate::time::Instant;

impl<D> Machine<D> {
    /// A pulse timer of the live generation has come.
    pub(super) fn check_pulse(&mut self, now: Instant) {
        let Some(live) = self.state.live() else { return };
        match live.pulse {
            Pulse::Resting { .. } => self.look(now),
            Pulse::Asking { .. } | Pulse::Listening { .. } | Pulse::Pausing { .. } => self.missed(now),
        }
    }

    /// Nothing happened for a while: is a probe due?
    fn look(&mut self, now: Instant) {
        let (keepalive, over_http) = (self.policy.probe.keepalive, self.policy.probe.over_http);
        let suspect = matches!(self.state, State::Suspect(_));
        let Some(live) = self.state.live_mut() else { return };
        if suspect && live.unchecked && live.vitals.in_flight == 0 {
            // It was asked often enough. The next call asks again.
            live.pulse = Pulse::Resting { check_at: now + keepalive };
            return;
        }
        // The next call's own connection shows whether a server somewhere else is still there, and until then no agent needs to know.
        let may_be_idle = live.vitals.exchanges && !over_http;
        let quiet_at = if may_be_idle { now } else { live.vitals.heard_at } + keepalive;
        // A probe must not compete with a call in flight, unless that call is what made the line suspect.
        let abandoned = live.vitals.abandoned_at.is_some();
        live.pulse = if live.unchecked || suspect || abandoned || (!live.vitals.busy() && quiet_at <= now) {
            Pulse::Asking { since: now }
        } else if !live.vitals.busy() {
            Pulse::Resting { check_at: quiet_at }
        } else {
            Pulse::Resting { check_at: now + keepalive }
        };
    }

    /// A probe went unanswered.
    fn missed(&mut self, now: Instant) {
        let policy = self.policy;
        let Some(live) = self.state.live_mut() else { return };
        live.missed = live.missed.saturating_add(1);
        live.listens = Listens::Presumed;
        if live.missed < policy.probe.failures {
            live.pulse = Pulse::Asking { since: now };
            self.suspect();
        } else if let Some(conclusion) = live.judged(now, &policy) {
            self.end(Cause::concluded(Class::Silent, conclusion));
        } else {
            // Nothing is counted against it later.
            live.missed = 0;
            let (is_doubtful, abandoned) = (live.is_doubtful(now, &policy), live.abandoned_until(&policy));
            self.look_later(now);
            if let Some(live) = self.state.live_mut() {
                live.unchecked = is_doubtful;
            }
            self.time_the_last_probes(now, abandoned);
        }
    }

    /// The call that the server would have to be busy with was given up: is it alive? Callers cancel calls of healthy
    /// servers too, so the line is suspect only if the probe goes unanswered.
    pub(super) fn abandoned(&mut self, now: Instant) {
        let policy = self.policy;
        let Some(live) = self.state.live_mut() else { return };
        if live.may_ask(now, &policy) {
            live.pulse = Pulse::Asking { since: now };
        } else {
            let abandoned = live.abandoned_until(&policy);
            self.time_the_last_probes(now, abandoned);
        }
    }

    /// The last probes before the end of an abandoned generation begin so that they end with it.
    fn time_the_last_probes(&mut self, now: Instant, abandoned: Option<(Instant, Instant)>) {
        let worst = self.policy.probe.worst();
        let Some((live, (last, _))) = self.state.live_mut().zip(abandoned) else { return };
        if let Pulse::Resting { check_at } = &mut live.pulse
            && *check_at + worst > last
        {
            *check_at = last.max(now);
        }
    }

    /// Nothing was learnt, and nothing is held against the server: no new call is kept from it.
    pub(super) fn look_later(&mut self, now: Instant) {
        let keepalive = self.policy.probe.keepalive;
        if let Some(live) = self.state.live_mut() {
            live.unchecked = false;
            live.wanted = false;
            live.listens = Listens::Presumed;
            live.pulse = Pulse::Resting { check_at: now + keepalive };
            self.suspect();
        }
    }

    /// The server showed life.
    pub(super) fn alive(&mut self, now: Instant) {
        let keepalive = self.policy.probe.keepalive;
        match &mut self.state {
            State::Up(live) => {
                live.rest(now, keepalive);
            }
            State::Suspect(live) => {
                let mut live = *live;
                live.rest(now, keepalive);
                self.enter(State::Up(live));
            }
            _ => {}
        }
    }

    /// Something is odd about the server.
    pub(super) fn suspect(&mut self) {
        if let State::Up(live) = self.state {
            self.enter(State::Suspect(live));
        }
    }
}

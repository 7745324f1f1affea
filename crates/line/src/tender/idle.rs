//! Stopping a server that nobody uses: the next call starts it again.

use std::time::Duration;

use linetender_core::{Command, Generation, State, Vitals};
use linetender_wire::{Exit, Seen};
use tokio::time::Instant;

use super::Running;
use crate::generation::UNUSED;

/// In how many steps the time is counted: a server is stopped after that time without a call, or up to one step later.
const STEPS: u32 = 8;

/// How long nobody has used the server.
pub(super) struct Unused {
    step: Option<Duration>,
    /// When to look again.
    look_at: Option<Instant>,
    /// Steps without a call.
    quiet: u32,
    /// The generation that was seen, and how many callers it had answered.
    seen: Option<(Generation, u64)>,
}

impl Unused {
    /// Counts up to so long; not at all, if nothing is said.
    pub(super) fn after(time: Option<Duration>) -> Self {
        let step = time.map(|time| time / STEPS);
        Self { step, look_at: step.map(|step| Instant::now() + step), quiet: 0, seen: None }
    }

    pub(super) const fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// One step is over. Whether the server was not used for all of them.
    fn step(&mut self, used: bool, seen: Option<(Generation, u64)>) -> bool {
        self.look_at = self.step.map(|step| Instant::now() + step);
        let same = seen.is_some() && seen == std::mem::replace(&mut self.seen, seen);
        self.quiet = if used || !same { 0 } else { self.quiet + 1 };
        self.quiet >= STEPS
    }
}

impl Running {
    /// Stops the server if nobody used it for as long as it may run for nobody. That costs no budget.
    pub(super) fn stop_if_unused(&mut self, now: linetender_core::Instant) {
        let vitals = self.vitals();
        let used = vitals.as_ref().is_some_and(|(generation, vitals)| self.is_used(*generation, vitals));
        let seen = vitals.map(|(generation, vitals)| (generation, vitals.answered));
        if self.unused.step(used, seen) {
            self.cell(Command::IdleStop.name());
            self.machine.handle_command(now, Command::IdleStop);
        }
    }

    /// Whether the server ended by itself after its work, used by nobody: with status 0, after it had answered a caller; or by closing the
    /// stream that all its answers come on, after it had not been used for long.
    pub(super) fn is_finished(&self, seen: &Seen) -> bool {
        let Some(current) = self.current.as_ref().filter(|_| matches!(self.machine.state(), State::Up(_)))
        else {
            return false;
        };
        let vitals = current.ledger.vitals();
        let after_its_work = match seen {
            Seen::Exited { exit: Exit::Status(0), .. } => vitals.answered > 0,
            Seen::StreamEnded { .. } => current.ledger.usage.since() >= UNUSED,
            _ => false,
        };
        after_its_work && !self.is_used(current.generation, &vitals)
    }

    fn vitals(&self) -> Option<(Generation, Vitals)> {
        self.current.as_ref().map(|current| (current.generation, current.ledger.vitals()))
    }

    fn is_used(&self, generation: Generation, vitals: &Vitals) -> bool {
        vitals.in_flight > 0
            || vitals.owed
            // Whoever wants to hear of a resource, or of a task, uses the server without calling it.
            || self.tender.wishes.has_resources()
            || self.tender.audience.has_tasks(generation)
    }
}

#[cfg(test)]
mod tests {
    use super::{STEPS, Unused};
    use linetender_core::Generation;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn only_a_whole_time_without_use_counts() {
        let first = Some((Generation::new(1), 0));
        let mut unused = Unused::after(Some(Duration::from_secs(8)));
        let quiet =
            |unused: &mut Unused, steps: u32| (0..steps).filter(|_| unused.step(false, first)).count();
        // The first step only sees what is there.
        assert_eq!(quiet(&mut unused, STEPS), 0);
        assert!(!unused.step(true, first), "a call is under way");
        assert_eq!(quiet(&mut unused, STEPS - 1), 0);
        assert!(!unused.step(false, Some((Generation::new(1), 1))), "a call was answered in between");
        assert!(!unused.step(false, Some((Generation::new(2), 1))), "another generation");
        let second = Some((Generation::new(2), 1));
        assert_eq!((0..STEPS).filter(|_| unused.step(false, second)).count(), 1);
        assert!(!unused.step(false, None), "nothing to stop");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_it_is_never_looked_at() {
        assert_eq!(Unused::after(None).look_at(), None);
    }
}

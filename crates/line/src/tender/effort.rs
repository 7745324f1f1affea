//! Whether a server that answers no probes works: its processes use a processor or wait for one, or began after the call that was given up.

use std::time::Duration;

use linetender_core::{Instant, Pulse, State};
use linetender_wire::stdio::platform::Work;

use super::Running;

/// It works if its processes use at least this part of a processor: one in so many.
const PART: u32 = 20;

/// For how many looks it counts as working after that.
const LOOKS: u32 = 3;

/// What was seen of a server's processes.
#[derive(Debug, Default)]
pub(super) struct Effort {
    /// The last look, and the processor time up to then.
    last: Option<(Instant, Duration)>,
    worked_at: Option<Instant>,
}

impl Effort {
    /// Whether it works, as far as this look and those before tell. One look is as long after the last as a probe waits.
    fn look(&mut self, now: Instant, work: Work, given_up: Option<Duration>, look: Duration) -> bool {
        let last = self.last.replace((now, work.cpu));
        let uses_processor =
            last.is_some_and(|(at, cpu)| now > at && work.cpu.saturating_sub(cpu) * PART >= now.since(at));
        if uses_processor || work.is_runnable {
            self.worked_at = Some(now);
        }
        let has_child = given_up.zip(work.youngest).is_some_and(|(call, child)| child < call);
        let worked = self.worked_at.is_some_and(|at| now.since(at) < look * LOOKS);
        work.is_elsewhere || has_child || worked
    }
}

impl Running {
    /// A probe may have gone unanswered: what do the server's processes do?
    pub(super) fn look_at_effort(&mut self, now: Instant) {
        let (State::Up(live) | State::Suspect(live)) = self.machine.state() else { return };
        if matches!(live.pulse(), Pulse::Resting { .. }) {
            return;
        }
        let look = self.machine.policy().probe.timeout;
        let Some(current) = &mut self.current else { return };
        let work = current.connection.link().and_then(|link| link.reach.work());
        let given_up = current.ledger.signs.since_abandoned_call();
        let works = work.is_some_and(|work| current.effort.look(now, work, given_up, look));
        current.ledger.set_works(works);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linetender_core::Instant;

    use super::{Effort, Work};

    const LOOK: Duration = Duration::from_secs(5);

    fn at(secs: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(secs)
    }

    #[test]
    fn a_twentieth_of_a_processor_is_work_for_three_looks() {
        let mut effort = Effort::default();
        let mut look = |secs, millis| {
            let work = Work { cpu: Duration::from_millis(millis), ..Work::default() };
            effort.look(at(secs), work, None, LOOK)
        };
        assert!(!look(100, 9000), "what it did before the first look is not known");
        assert!(!look(105, 9249));
        assert!(look(110, 9499));
        assert!(look(115, 9499));
        assert!(look(120, 9499));
        assert!(!look(125, 9499));
    }

    #[test]
    fn a_server_that_waits_for_a_processor_works() {
        let mut effort = Effort::default();
        let mut look =
            |secs, is_runnable| effort.look(at(secs), Work { is_runnable, ..Work::default() }, None, LOOK);
        assert!(!look(100, false));
        assert!(look(105, true) && look(119, false));
        assert!(!look(120, false));
    }

    #[test]
    fn a_process_that_began_after_the_call_and_work_elsewhere_are_work() {
        let given_up = Some(Duration::from_secs(70));
        let look = |work, given_up| Effort::default().look(at(100), work, given_up, LOOK);
        let child = |secs| Work { youngest: Some(Duration::from_secs(secs)), ..Work::default() };
        assert!(look(child(60), given_up));
        assert!(!look(child(80), given_up), "a helper that was there before");
        assert!(!look(child(60), None), "nothing was given up");
        assert!(look(Work { is_elsewhere: true, ..Work::default() }, None));
    }
}

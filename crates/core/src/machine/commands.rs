//! What somebody wants of the line, and what is done about it.

use super::Machine;
use super::ending::After;
use super::input::{Command, CommandOutcome};
use super::state::{Origin, Rest, State};
use crate::cause::{Cause, Plan};
use crate::time::Instant;

impl<D> Machine<D> {
    /// Somebody wants something. Any task may ask, through the owner; only the owner acts.
    pub fn handle_command(&mut self, now: Instant, command: Command) -> CommandOutcome {
        let now = self.tick(now);
        match (&self.state, command) {
            (State::Closed, _) => CommandOutcome::Closed,
            // Of many that saw the same generation fail, the first has been heard already; and where none lives, the
            // budget has decided what comes next.
            (state, Command::RedialIf { seen }) if seen < self.generation || state.live().is_none() => {
                CommandOutcome::Joined
            }
            (State::Idle(_), _) => self.command_idle(command),
            (State::Waiting { .. } | State::Parked { .. } | State::NeedsAuth { .. }, _) => {
                self.command_between(now, command)
            }
            (State::OutOfService { .. }, _) => self.command_out_of_service(now, command),
            (State::Dialing(_), _) => self.command_dialing(command),
            (State::Up(_) | State::Suspect(_), _) => self.command_live(now, command),
            (State::Draining { .. }, _) => self.command_draining(command),
            (State::Ending(_), _) => self.command_ending(now, command),
        }
    }

    fn command_idle(&mut self, command: Command) -> CommandOutcome {
        match command {
            Command::Open | Command::Redial | Command::Wake => self.dial_from_idle(),
            Command::Park => self.take_out_of_service(),
            Command::Close => self.enter(State::Closed),
            Command::RedialIf { .. } | Command::Recycle | Command::Credentials | Command::IdleStop => {
                return CommandOutcome::Joined;
            }
        }
        CommandOutcome::Started
    }

    /// Waiting, parked, without credentials: nothing is alive, and somebody may know better than the timer.
    fn command_between(&mut self, now: Instant, command: Command) -> CommandOutcome {
        let waiting = matches!(self.state, State::Waiting { .. });
        match command {
            Command::Redial | Command::Wake | Command::Credentials => self.dial_spaced(now),
            Command::Open if !waiting => self.dial_spaced(now),
            Command::Open | Command::RedialIf { .. } | Command::Recycle => CommandOutcome::Joined,
            Command::IdleStop => self.stop_waiting(),
            Command::Park => {
                self.take_out_of_service();
                CommandOutcome::Started
            }
            Command::Close => {
                self.enter(State::Closed);
                CommandOutcome::Started
            }
        }
    }

    /// Nothing is alive, so there is nothing to wait for. Why the last generation ended was told when it did.
    fn take_out_of_service(&mut self) {
        self.enter(State::OutOfService { cause: Cause::planned(Plan::Park) });
    }

    /// Only an operator's word counts here: whoever opens a line, or logs in, does not know that it is not to run.
    fn command_out_of_service(&mut self, now: Instant, command: Command) -> CommandOutcome {
        match command {
            Command::Wake | Command::Redial => self.dial_spaced(now),
            Command::Park => CommandOutcome::Joined,
            Command::Open
            | Command::RedialIf { .. }
            | Command::Recycle
            | Command::Credentials
            | Command::IdleStop => CommandOutcome::Declined,
            Command::Close => {
                self.enter(State::Closed);
                CommandOutcome::Started
            }
        }
    }

    /// A dial that somebody asked for: at once, but no two closer than the gap.
    fn dial_spaced(&mut self, now: Instant) -> CommandOutcome {
        let at = self.spaced(now);
        match core::mem::replace(&mut self.state, State::Idle(None)) {
            State::Waiting { until, last } if until <= at => {
                self.state = State::Waiting { until, last };
                return CommandOutcome::Joined;
            }
            State::Waiting { last, .. }
            | State::Parked { cause: last, .. }
            | State::OutOfService { cause: last }
            | State::NeedsAuth { cause: last, .. } => {
                self.enter(State::Waiting { until: at, last });
            }
            other => self.state = other,
        }
        if at <= now {
            self.dial(Origin::Again);
        }
        CommandOutcome::Started
    }

    /// Nobody needs a line that waits: it need not dial by itself.
    fn stop_waiting(&mut self) -> CommandOutcome {
        match core::mem::replace(&mut self.state, State::Idle(None)) {
            State::Waiting { until, last } => {
                self.enter(State::Idle(Some(Rest { not_before: until, last })));
                CommandOutcome::Started
            }
            other => {
                self.state = other;
                CommandOutcome::Declined
            }
        }
    }

    fn command_dialing(&mut self, command: Command) -> CommandOutcome {
        match command {
            Command::Close => self.end(Cause::planned(Plan::Close)),
            Command::Park => self.end(Cause::planned(Plan::Park)),
            // Whoever dials reads the credentials itself.
            Command::Open
            | Command::RedialIf { .. }
            | Command::Redial
            | Command::Recycle
            | Command::Wake
            | Command::Credentials => return CommandOutcome::Joined,
            Command::IdleStop => return CommandOutcome::Declined,
        }
        CommandOutcome::Started
    }

    fn command_live(&mut self, now: Instant, command: Command) -> CommandOutcome {
        let Some(plan) = command.plan() else { return CommandOutcome::Joined };
        let cause = Cause::planned(plan);
        let until = now + self.policy.close.drain;
        match (&self.state, plan) {
            // Whoever asks for these does not want to wait for a call that may hang.
            (_, Plan::Redial | Plan::Close) => self.end(cause),
            (State::Up(live) | State::Suspect(live), _) if live.vitals.in_flight > 0 => {
                let live = *live;
                self.enter(State::Draining { live, cause, until });
            }
            _ => self.end(cause),
        }
        CommandOutcome::Started
    }

    fn command_draining(&mut self, command: Command) -> CommandOutcome {
        let parks = self.state.cause().is_some_and(|cause| cause.leaves().out_of_service());
        let plan = match command {
            Command::Park => return self.park_when_drained(parks),
            Command::RedialIf { .. } | Command::Open | Command::Recycle | Command::IdleStop if parks => {
                return CommandOutcome::Declined;
            }
            Command::Redial | Command::RedialIf { .. } | Command::Close => {
                self.end(Cause::planned(if command == Command::Close { Plan::Close } else { Plan::Redial }));
                return CommandOutcome::Started;
            }
            // It was to stay down, and somebody needs it after all.
            Command::Open | Command::Wake => Plan::Redial,
            Command::Recycle => Plan::Recycle,
            Command::IdleStop => Plan::IdleStop,
            Command::Credentials => return CommandOutcome::Joined,
        };
        self.state = match core::mem::replace(&mut self.state, State::Idle(None)) {
            State::Draining { live, cause, until } => {
                State::Draining { live, cause: cause.join(Cause::planned(plan)), until }
            }
            other => other,
        };
        if parks { CommandOutcome::Started } else { CommandOutcome::Joined }
    }

    /// The last word counts, so it takes the place of the plans before it. The time to drain is not prolonged.
    fn park_when_drained(&mut self, parks: bool) -> CommandOutcome {
        match &mut self.state {
            State::Draining { cause, .. } if !parks => {
                *cause = Cause::planned(Plan::Park);
                CommandOutcome::Started
            }
            _ => CommandOutcome::Joined,
        }
    }

    /// The end itself cannot be hurried, but what comes after it can be changed.
    fn command_ending(&mut self, now: Instant, command: Command) -> CommandOutcome {
        let soon = self.spaced(now);
        let State::Ending(ending) = &mut self.state else { return CommandOutcome::Joined };
        ending.after = match (command, ending.after) {
            (_, After::Closed) => return CommandOutcome::Closed,
            (Command::Close, _) => After::Closed,
            (Command::Park, After::OutOfService) => return CommandOutcome::Joined,
            (Command::Park, _) => After::OutOfService,
            (Command::Redial | Command::Wake, After::OutOfService) => {
                // A failure that is seen later reckons again, and must not park what was asked back.
                ending.add_plan(Plan::Redial);
                After::Dial { at: soon }
            }
            (
                Command::Open | Command::Credentials | Command::Recycle | Command::IdleStop,
                After::OutOfService,
            ) => return CommandOutcome::Declined,
            (Command::Redial | Command::Wake, After::Dial { at }) if at <= soon => {
                return CommandOutcome::Joined;
            }
            (Command::Redial | Command::Wake, _) => After::Dial { at: soon },
            (Command::Open, After::Idle { not_before }) => After::Dial { at: not_before },
            (Command::Open | Command::Credentials, After::Park { .. } | After::NeedsAuth { .. }) => {
                After::Dial { at: soon }
            }
            (Command::IdleStop, After::Dial { at }) => After::Idle { not_before: at },
            (Command::IdleStop, After::Park { .. } | After::NeedsAuth { .. }) => {
                return CommandOutcome::Declined;
            }
            (Command::Open | Command::Credentials, _)
            | (Command::RedialIf { .. } | Command::Recycle | Command::IdleStop, _) => {
                return CommandOutcome::Joined;
            }
        };
        CommandOutcome::Started
    }
}

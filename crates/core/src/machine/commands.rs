//! What somebody wants of the line, and what is done about it.

use super::Machine;
use super::ending::After;
use super::input::{Asked, Command};
use super::state::{Origin, State};
use crate::cause::{Cause, Plan};
use crate::time::Instant;

impl<D> Machine<D> {
    /// Somebody wants something. Any task may ask, through the owner; only the owner acts.
    pub fn handle_command(&mut self, now: Instant, command: Command) -> Asked {
        let now = self.tick(now);
        if matches!(self.state, State::Closed) {
            return Asked::Closed;
        }
        // Of many that saw the same generation fail, the first has been heard already.
        if let Command::Redial { seen } = command
            && seen < self.generation
        {
            return Asked::Joined;
        }
        match self.state {
            State::Idle => self.command_idle(command),
            State::Waiting { .. } | State::Parked { .. } | State::NeedsAuth { .. } => {
                self.command_between(now, command)
            }
            State::Dialing(_) => self.command_dialing(command),
            State::Up(_) | State::Suspect(_) => self.command_live(now, command),
            State::Draining { .. } => self.command_draining(command),
            State::Ending(_) => self.command_ending(now, command),
            State::Closed => Asked::Closed,
        }
    }

    fn command_idle(&mut self, command: Command) -> Asked {
        match command {
            Command::Open | Command::Redial { .. } => self.dial(self.origin()),
            Command::Close => self.enter(State::Closed),
            Command::Recycle | Command::Reload | Command::Credentials | Command::IdleStop => {
                return Asked::Joined;
            }
        }
        Asked::Started
    }

    /// Waiting, parked, without credentials: nothing is alive, and somebody may know better than the timer.
    fn command_between(&mut self, now: Instant, command: Command) -> Asked {
        match command {
            Command::Redial { .. } | Command::Reload | Command::Credentials => self.dial_spaced(now),
            Command::Open if !matches!(self.state, State::Waiting { .. }) => self.dial_spaced(now),
            Command::Close => self.enter(State::Closed),
            Command::Open | Command::Recycle | Command::IdleStop => return Asked::Joined,
        }
        Asked::Started
    }

    /// A dial that somebody asked for: at once, but no two closer than the gap.
    fn dial_spaced(&mut self, now: Instant) {
        let at = self.spaced(now);
        if at <= now {
            return self.dial(Origin::Again);
        }
        match self.take_state() {
            State::Waiting { last, .. }
            | State::Parked { cause: last, .. }
            | State::NeedsAuth { cause: last, .. } => {
                self.enter(State::Waiting { until: at, last });
            }
            other => self.state = other,
        }
    }

    fn command_dialing(&mut self, command: Command) -> Asked {
        match command {
            Command::Reload => self.end(Cause::planned(Plan::Reload)),
            Command::Credentials => self.end(Cause::planned(Plan::Credentials)),
            Command::Close => self.end(Cause::planned(Plan::Close)),
            Command::Open | Command::Redial { .. } | Command::Recycle | Command::IdleStop => {
                return Asked::Joined;
            }
        }
        Asked::Started
    }

    fn command_live(&mut self, now: Instant, command: Command) -> Asked {
        let Some(plan) = command.plan() else { return Asked::Joined };
        let cause = Cause::planned(plan);
        let in_flight = self.state.live().map_or(0, |live| live.vitals.in_flight);
        match plan {
            // Whoever asks for these does not want to wait for a call that may hang.
            Plan::Redial | Plan::Close => self.end(cause),
            Plan::Recycle | Plan::Reload | Plan::IdleStop | Plan::Credentials if in_flight == 0 => {
                self.end(cause);
            }
            Plan::Recycle | Plan::Reload | Plan::IdleStop | Plan::Credentials => {
                self.accrue(now);
                let until = now + self.policy.close.drain;
                if let State::Up(live) | State::Suspect(live) = self.take_state() {
                    self.enter(State::Draining { live, cause, until });
                }
            }
        }
        Asked::Started
    }

    fn command_draining(&mut self, command: Command) -> Asked {
        let Some(plan) = command.plan() else { return Asked::Joined };
        let State::Draining { live, cause, until } = self.take_draining() else { return Asked::Joined };
        let cause = cause.join(Cause::planned(plan));
        match plan {
            Plan::Redial | Plan::Close => {
                self.end(cause);
                Asked::Started
            }
            Plan::Recycle | Plan::Reload | Plan::IdleStop | Plan::Credentials => {
                self.state = State::Draining { live, cause, until };
                Asked::Joined
            }
        }
    }

    /// The end itself cannot be hurried, but what comes after it can be changed.
    fn command_ending(&mut self, now: Instant, command: Command) -> Asked {
        let soon = After::Dial { at: self.spaced(now) };
        let State::Ending(ending) = &mut self.state else { return Asked::Joined };
        let after = match (command, ending.after) {
            (_, After::Closed) => return Asked::Closed,
            (Command::Close, _) => After::Closed,
            (Command::Redial { .. }, _) => soon,
            (Command::Open, After::Idle | After::Park { .. } | After::NeedsAuth { .. }) => soon,
            (Command::Reload | Command::Credentials, After::Park { .. } | After::NeedsAuth { .. }) => soon,
            (Command::Open | Command::Reload | Command::Credentials, _) => return Asked::Joined,
            (Command::Recycle | Command::IdleStop, _) => return Asked::Joined,
        };
        ending.after = after;
        Asked::Started
    }
}

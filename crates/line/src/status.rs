//! Where a line stands, for people and programs, and how its server looks at this moment.
//!
//! In: the machine's state and the cause of an end, from the tender; what was heard and given up, from the book. Out: words.

pub(crate) mod signs;

use std::fmt;
use std::sync::Arc;

use linetender_core::{
    Budget, Cause, Conclusion, Detail as CauseDetail, Gate, Generation, Instant, Leaf, NoteKind, Plan,
    Refusal, State, StateKind,
};
use linetender_wire::{Detail, Seen};

use crate::basics::clock::Clock;
use crate::basics::next_try::NextTry;
use signs::{Health, Signs};

/// Where a line stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Its state.
    pub state: StateKind,
    /// The newest generation's number.
    pub generation: u64,
    /// Why the last generation ended, or why calls wait for this one, in words.
    pub cause: Option<Arc<Why>>,
    /// Milli-tokens left in the budget.
    pub budget: u32,
    /// Milli-tokens left for the ends of generations that had served their callers.
    pub useful: u32,
    /// What calls are told, from which the next try follows.
    pub(crate) gate: Gate,
    pub(crate) clock: Clock,
    /// What keeps the server from being started at this moment.
    pub(crate) waits: Waits,
    /// What is heard from the generation that serves.
    pub(crate) signs: Option<Arc<Signs>>,
}

/// What keeps a server that is to be started from being started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Waits {
    /// Nothing: it is being started, or need not be.
    Nothing,
    /// The server whose place it takes has not ended yet.
    Predecessor,
    /// Others of its rig are being started, and only so many are at once.
    Turn,
    /// Nobody listens at its address.
    Listener,
    /// Its credentials are being asked for.
    Key,
}

impl Waits {
    /// Why a call was not answered, if it is this.
    pub(crate) const fn cause(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Predecessor => Some("waiting for the replaced server process to exit"),
            Self::Turn => Some("waiting for a start slot: many servers are starting"),
            Self::Listener => Some("connection refused at the server's address"),
            Self::Key => Some("waiting for the server's credentials"),
        }
    }
}

/// Why a generation ended, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Why {
    /// The headline.
    pub text: String,
    /// The last lines of stderr.
    pub stderr: Option<String>,
    /// All that led to it: an exit, a timeout, a reload …
    pub leaves: Vec<Leaf>,
    /// Whether all of it was wanted.
    pub planned: bool,
}

impl Status {
    /// The newest generation that is over.
    pub(crate) fn last_ended(&self) -> Generation {
        let lives = self.state.is_live() || self.state == StateKind::Dialing;
        Generation::new(self.generation.saturating_sub(u64::from(lives)))
    }

    /// `printed` is the first thing that the last generation wrote that was no message.
    pub(crate) fn of(
        state: &State<Detail>,
        generation: Generation,
        budget: Budget,
        gate: Gate,
        clock: Clock,
        signs: Option<Arc<Signs>>,
        printed: Option<&str>,
    ) -> Self {
        let cause = state.cause().map(|cause| Arc::new(Why::of(cause, printed)));
        let signs = signs.filter(|_| matches!(state, State::Up(_) | State::Suspect(_)));
        let waits = Waits::Nothing;
        Self {
            state: state.kind(),
            generation: generation.number(),
            cause,
            budget: budget.millis(),
            useful: budget.useful_millis(),
            gate,
            clock,
            signs,
            waits,
        }
    }

    /// What is wrong with a server that is up, if anything is: true now, also if this status is an older one of the
    /// same generation.
    pub fn health(&self) -> Option<Health> {
        self.signs.as_ref().and_then(|signs| signs.health())
    }

    /// Whether an operator took it out of service: it is parked for that, or about to be.
    pub fn is_out_of_service(&self) -> bool {
        matches!(self.gate, Gate::Refuse { why: Refusal::OutOfService, .. })
    }

    /// When the server is tried next, as seen from now; `None` while it serves.
    pub fn next_try(&self) -> Option<NextTry> {
        match self.gate {
            Gate::Go { .. } => None,
            gate => Some(self.next_try_by(gate)),
        }
    }

    /// The same if this is the line's gate.
    pub(crate) fn next_try_by(&self, gate: Gate) -> NextTry {
        let under_way = match self.waits {
            Waits::Nothing | Waits::Listener | Waits::Key => NextTry::UnderWay,
            Waits::Predecessor => NextTry::PredecessorGone,
            Waits::Turn => NextTry::ItsTurn,
        };
        let next = match gate {
            Gate::Go { .. } => NextTry::Now,
            Gate::Knock => NextTry::NextCall,
            Gate::Hold { from: Instant::ORIGIN, .. } => NextTry::UnderWay,
            Gate::Hold { .. } if self.waits != Waits::Nothing => NextTry::UnderWay,
            Gate::Hold { from, .. } => NextTry::of(linetender_core::NextTry::At(from), self.clock),
            Gate::Refuse { next, .. } => NextTry::of(next, self.clock),
        };
        if next == NextTry::UnderWay { under_way } else { next }
    }
}

impl Why {
    /// Why calls wait for a generation that lives.
    pub(crate) fn waiting(seen: &Seen) -> Self {
        Self { text: seen.to_string(), stderr: None, leaves: Vec::new(), planned: false }
    }

    fn of(cause: &Cause<Detail>, printed: Option<&str>) -> Self {
        let headline = cause.headline();
        let (text, stderr) = match &headline.detail {
            CauseDetail::Seen(seen) => (seen.to_string(), seen.stderr().map(ToString::to_string)),
            CauseDetail::Concluded(conclusion) => (concluded(*conclusion, headline.kind, printed), None),
        };
        // A closed pipe is seldom the whole story: what came after it may say more.
        let text = match &headline.detail {
            CauseDetail::Seen(seen) if matches!(**seen, Seen::Closed { .. }) => {
                exit_of(cause).unwrap_or(text)
            }
            _ => text,
        };
        let stderr = stderr.or_else(|| {
            cause.notes().find_map(|note| match &note.detail {
                CauseDetail::Seen(seen) => seen.stderr().map(ToString::to_string),
                CauseDetail::Concluded(_) => None,
            })
        });
        // Usage texts and "please log in" go to stdout as often as not.
        let ended = match &headline.detail {
            CauseDetail::Seen(seen) => matches!(**seen, Seen::Exited { .. } | Seen::Closed { .. }),
            CauseDetail::Concluded(_) => false,
        };
        let text = match printed.filter(|_| ended && stderr.is_none()) {
            Some(printed) => format!("{text}; its stdout was not MCP: {printed}"),
            None => text,
        };
        let leaves: Vec<Leaf> = cause.leaves().iter().collect();
        Self { text, stderr, leaves, planned: cause.leaves().planned() }
    }
}

/// How a server ended by itself, where that became known only after its end had begun.
fn exit_of(cause: &Cause<Detail>) -> Option<String> {
    cause.notes().find_map(|note| match &note.detail {
        CauseDetail::Seen(seen) => matches!(**seen, Seen::Exited { .. }).then(|| seen.to_string()),
        CauseDetail::Concluded(_) => None,
    })
}

fn concluded(conclusion: Conclusion, kind: NoteKind, printed: Option<&str>) -> String {
    match conclusion {
        Conclusion::Asked => match kind {
            NoteKind::Leaf(Leaf::Planned(Plan::Park)) => "parked by an operator".into(),
            NoteKind::Leaf(leaf) => format!("stopped by linetender ({})", leaf.name()),
            NoteKind::Teardown => "stopped by linetender".into(),
        },
        Conclusion::StartTimeout => "the server sent nothing within the start timeout".into(),
        Conclusion::HandshakeTimeout => match printed {
            Some(printed) => {
                format!(
                    "the server did not complete the handshake in time; its stdout was not MCP: {printed}"
                )
            }
            None => "the server did not complete the handshake in time".into(),
        },
        Conclusion::ProbesUnanswered => "the server did not answer health checks".into(),
        Conclusion::Abandoned => {
            "the server hangs: callers gave up, and it has not answered health checks since".into()
        }
        Conclusion::Hung => "the server hangs: it sent nothing within the hang timeout".into(),
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linetender_wire::{Exit, Pipe, Redacted, Seen};

    use super::Why;

    #[test]
    fn a_closed_pipe_is_explained_by_the_exit_that_became_known_later() {
        let closed = Seen::Closed { what: Pipe::Stdin, stderr: Redacted::default() };
        let mut cause = closed.clone().cause();
        assert_eq!(Why::of(&cause, None).text, closed.to_string());
        let stderr = Redacted::head("no such key", 100);
        cause.add_teardown(Arc::new(Seen::Exited { exit: Exit::Status(3), stderr }));
        let why = Why::of(&cause, None);
        assert!(why.text.contains("status 3"), "{}", why.text);
        assert_eq!(why.stderr.as_deref(), Some("no such key"));
    }
}

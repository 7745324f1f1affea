//! Where a line stands, for people and programs, and how its server looks at this moment.
//!
//! In: the machine's state and the cause of an end, from the tender; what was heard and given up, from the book. Out: words.

pub(crate) mod signs;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use linetender_core::{
    Budget, Cause, Conclusion, Cost, Detail as CauseDetail, Gate, Generation, Instant, Leaf, NoteKind, Plan,
    Refusal, State, StateKind,
};
use linetender_wire::{Detail, Exit, Seen};

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
    /// What the end cost that is under way.
    pub cost: Option<Cost>,
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
    /// No gateway of the fleet is known to run it.
    Owner,
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
            Self::Owner => Some("no gateway of the fleet runs the server yet"),
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
    /// The word for what was seen (`exited`, `connection-refused`, …) or concluded (`hung`, …).
    pub seen: &'static str,
    /// How the server process ended, if that was seen.
    pub exit: Option<Exit>,
    /// The HTTP status, if one was the reason.
    pub http: Option<u16>,
    /// The headline for agents of others, where it is another one.
    pub(crate) outside: Option<Box<str>>,
}

/// What else is known of an end that the machine concluded from silence.
#[derive(Debug)]
pub(crate) enum Aside {
    /// The first thing that the generation wrote that was no message.
    Printed(String),
    /// Connections to its address were refused all the time.
    NobodyListens,
}

impl Aside {
    /// An end is published after this status. `odd`: what was no message.
    pub(crate) fn heed(aside: &mut Option<Self>, before: &Status, odd: Option<String>) {
        let refused = before.cause.as_ref().is_some_and(|why| why.seen == "connection-refused");
        if before.waits == Waits::Listener || (before.state.is_live() && refused) {
            *aside = Some(Self::NobodyListens);
        } else if before.state != StateKind::Ending || !matches!(aside, Some(Self::NobodyListens)) {
            *aside = odd.map(Self::Printed);
        }
    }
}

impl Status {
    /// The newest generation that is over.
    pub(crate) fn last_ended(&self) -> Generation {
        let lives = self.state.is_live() || self.state == StateKind::Dialing;
        Generation::new(self.generation.saturating_sub(u64::from(lives)))
    }

    /// `aside` is what else is known of the last generation's end.
    pub(crate) fn of(
        state: &State<Detail>,
        generation: Generation,
        budget: Budget,
        gate: Gate,
        clock: Clock,
        signs: Option<Arc<Signs>>,
        aside: Option<&Aside>,
    ) -> Self {
        let cause = state.cause().map(|cause| Arc::new(Why::of(cause, aside)));
        let signs = signs.filter(|_| matches!(state, State::Up(_) | State::Suspect(_)));
        let waits = Waits::Nothing;
        Self {
            state: state.kind(),
            generation: generation.number(),
            cause,
            budget: budget.millis(),
            useful: budget.useful_millis(),
            cost: match state {
                State::Ending(ending) => Some(ending.cost()),
                _ => None,
            },
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

    /// How long ago the server was last heard, while it serves. One at a URL is asked nothing while no agent uses it.
    pub fn last_heard(&self) -> Option<Duration> {
        self.signs.as_ref().map(|signs| self.clock.now().since(signs.heard_at()))
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
            Waits::Nothing | Waits::Listener | Waits::Key | Waits::Owner => NextTry::UnderWay,
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
    /// The headline as agents may read it, who are `outsiders` or not.
    pub(crate) fn told(&self, outsiders: bool) -> &str {
        self.outside.as_deref().filter(|_| outsiders).unwrap_or(&self.text)
    }

    /// Why calls wait for a generation that lives.
    pub(crate) fn waiting(seen: &Seen) -> Self {
        Self {
            text: seen.to_string(),
            stderr: None,
            leaves: Vec::new(),
            planned: false,
            seen: seen.name(),
            exit: seen.exit(),
            http: seen.http(),
            outside: outside(seen),
        }
    }

    fn of(cause: &Cause<Detail>, aside: Option<&Aside>) -> Self {
        let printed = match aside {
            Some(Aside::Printed(printed)) => Some(printed.as_str()),
            Some(Aside::NobodyListens) | None => None,
        };
        let headline = cause.headline();
        let (text, stderr) = match &headline.detail {
            CauseDetail::Seen(seen) => (seen.to_string(), seen.stderr().map(ToString::to_string)),
            CauseDetail::Concluded(conclusion) => (concluded(*conclusion, headline.kind, aside), None),
        };
        // A closed pipe is seldom the whole story: what came after it may say more.
        let better = match &headline.detail {
            CauseDetail::Seen(seen) if matches!(**seen, Seen::Closed { .. }) => exit_of(cause),
            _ => None,
        };
        let text = better.map_or(text, ToString::to_string);
        let (seen, exit, http) = match (better, &headline.detail) {
            (Some(seen), _) => (seen.name(), seen.exit(), seen.http()),
            (None, CauseDetail::Seen(seen)) => (seen.name(), seen.exit(), seen.http()),
            (None, CauseDetail::Concluded(Conclusion::StartTimeout | Conclusion::ProbesUnanswered))
                if matches!(aside, Some(Aside::NobodyListens)) =>
            {
                ("connection-refused", None, None)
            }
            (None, CauseDetail::Concluded(conclusion)) => (conclusion.name(), None, None),
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
        let outside = match &headline.detail {
            CauseDetail::Seen(seen) => outside(seen),
            CauseDetail::Concluded(_) => None,
        };
        Self { text, stderr, leaves, planned: cause.leaves().planned(), seen, exit, http, outside }
    }
}

/// What was seen in words for agents of others, where these are other words.
fn outside(seen: &Seen) -> Option<Box<str>> {
    let told = seen.to_outsiders();
    (told != seen.to_string()).then(|| told.into())
}

/// How a server ended by itself, where that became known only after its end had begun.
fn exit_of(cause: &Cause<Detail>) -> Option<&Seen> {
    cause.notes().find_map(|note| match &note.detail {
        CauseDetail::Seen(seen) => {
            matches!(**seen, Seen::Exited { .. } | Seen::NameTaken { .. }).then_some(&**seen)
        }
        CauseDetail::Concluded(_) => None,
    })
}

fn concluded(conclusion: Conclusion, kind: NoteKind, aside: Option<&Aside>) -> String {
    match conclusion {
        Conclusion::Asked => match kind {
            NoteKind::Leaf(Leaf::Planned(Plan::Park)) => "parked by an operator".into(),
            NoteKind::Leaf(Leaf::Planned(Plan::IdleStop)) => {
                "stopped by linetender: nobody used it, or its configuration was changed".into()
            }
            NoteKind::Leaf(leaf) => format!("stopped by linetender ({})", leaf.name()),
            NoteKind::Teardown => "stopped by linetender".into(),
        },
        Conclusion::StartTimeout if matches!(aside, Some(Aside::NobodyListens)) => {
            "the server is unreachable: its address refused connections until the start timeout".into()
        }
        Conclusion::ProbesUnanswered if matches!(aside, Some(Aside::NobodyListens)) => {
            "the server is unreachable: its address refuses connections".into()
        }
        Conclusion::StartTimeout => "the server sent nothing within the start timeout".into(),
        Conclusion::HandshakeTimeout => match aside {
            Some(Aside::Printed(printed)) => {
                format!(
                    "the server did not complete the handshake in time; its stdout was not MCP: {printed}"
                )
            }
            _ => "the server did not complete the handshake in time".into(),
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

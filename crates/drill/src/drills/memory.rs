//! What the agent of a drill remembers, as a model does: what it set up at its server, and what it was told of that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::{CallError, ServerState};
use linetender_badserver::{ContextRun, wall_clock};

/// How a text begins by which a model learns that the server's memory is gone.
const LOSS: &str = "The server was replaced at ";

/// The word for a call that was not executed for that reason.
const BY_RULE: &str = "context-replaced";

/// How the answer of `use` names the context.
const IN_CONTEXT: &str = " in context ";

/// How long an agent thinks after it was told that a context is gone. Until then its calls are refused together.
const THINKS: Duration = Duration::from_secs(1);

/// The tool that is declared `readOnlyHint`.
const READ_ONLY: &str = "echo";

/// The memory of an agent. All its times are by the clock that the book has too.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    calls: HashMap<String, Asked>,
    /// In the order in which the agent learned it.
    learned: Vec<(Duration, Learned)>,
    /// How many calls were made, how many were not executed since a context was replaced, and how many losses were told.
    made: u64,
    refused: u64,
    set_up: u64,
}

#[derive(Debug)]
struct Asked {
    at: Duration,
    tool: String,
    is_refused_by_rule: bool,
    /// When the agent stopped waiting for the reply.
    given_up: Option<Duration>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Learned {
    /// It set up what it needs in this context.
    SetUp { context: String },
    /// A text says that the context is gone.
    Lost,
    /// It stands at a new connection, and has set up nothing there.
    Begun,
}

/// What a reply says of the server's memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notice {
    /// A model reads that it is gone.
    is_told: bool,
    /// The call was not executed for that reason.
    is_refused_by_rule: bool,
}

/// What an agent remembers, in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) made: u64,
    pub(crate) refused: u64,
    pub(crate) set_up: u64,
    pub(crate) told: u64,
}

impl Notice {
    pub(crate) fn in_message(text: &str) -> Self {
        Self { is_told: text.contains(LOSS), is_refused_by_rule: text.contains(BY_RULE) }
    }

    pub(crate) fn in_error(error: &CallError) -> Self {
        let reason = &error.fields()["reason"];
        Self { is_told: error.for_model().contains(LOSS), is_refused_by_rule: reason == BY_RULE }
    }
}

impl Memory {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is about to be made.
    pub(crate) fn asks(&self, nonce: &str, tool: &str) {
        let asked =
            Asked { at: wall_clock(), tool: tool.to_owned(), is_refused_by_rule: false, given_up: None };
        let mut known = self.known();
        known.made += 1;
        known.calls.insert(nonce.to_owned(), asked);
    }

    /// The agent reads the reply to a call. The answer of `use` names the context.
    pub(crate) fn hears(&self, nonce: &str, notice: Notice, answer: Option<&str>) {
        let at = wall_clock();
        let mut known = self.known();
        known.refused += u64::from(notice.is_refused_by_rule);
        let Some(asked) = known.calls.get_mut(nonce) else { return };
        asked.is_refused_by_rule = notice.is_refused_by_rule;
        let is_use = asked.tool == "use";
        if notice.is_told {
            known.learned.push((at, Learned::Lost));
        }
        if let Some(context) = answer.filter(|_| is_use).and_then(context_of) {
            known.set_up += 1;
            known.learned.push((at, Learned::SetUp { context }));
        }
    }

    /// The agent waits for the reply to a call no longer.
    pub(crate) fn gives_up(&self, nonce: &str) {
        if let Some(asked) = self.known().calls.get_mut(nonce) {
            asked.given_up = Some(wall_clock());
        }
    }

    /// The agent stands at a new connection.
    pub(crate) fn begins(&self) {
        let at = wall_clock();
        self.known().learned.push((at, Learned::Begun));
    }

    /// How long the agent thinks before it sets up what it needs; `None` if it is set up.
    pub(crate) fn sets_up_after(&self) -> Option<Duration> {
        match self.known().learned.last() {
            Some((_, Learned::SetUp { .. })) => None,
            Some((at, Learned::Lost)) => Some((*at + THINKS).saturating_sub(wall_clock())),
            Some((_, Learned::Begun)) | None => Some(Duration::ZERO),
        }
    }

    /// Whether a call was not executed since a context was replaced.
    pub(crate) fn was_refused_by_rule(&self, nonce: &str) -> bool {
        self.known().calls.get(nonce).is_some_and(|asked| asked.is_refused_by_rule)
    }

    pub(crate) fn sums(&self) -> Sums {
        let known = self.known();
        let told = known.learned.iter().filter(|(_, learned)| *learned == Learned::Lost).count() as u64;
        Sums { made: known.made, refused: known.refused, set_up: known.set_up, told }
    }

    /// The calls that were executed in another context than the one that the agent had set up, and of whose end it had been told
    /// nothing. Also how many more there were after the agent had given up a call: the reply to that may have told it, and a reply
    /// that is on its way cannot be taken back.
    pub(crate) fn unwarned(&self, state: ServerState, runs: &[ContextRun]) -> (Vec<String>, u64) {
        let (known, mut missed) = (self.known(), 0);
        let unwarned = |run: &ContextRun| {
            let asked = known.calls.get(&run.nonce)?;
            // What only looks may be answered by anybody, unless the server said that all of it is state.
            if state == ServerState::None || (state == ServerState::Unknown && asked.tool == READ_ONLY) {
                return None;
            }
            let (before, later) =
                known.learned.split_at(known.learned.partition_point(|(at, _)| *at <= asked.at));
            let Some((set_up, Learned::SetUp { context })) = before.last() else { return None };
            let is_told = later.iter().any(|(at, learned)| *at <= run.at && *learned == Learned::Lost);
            if *context == run.context || is_told {
                return None;
            }
            let may_have_told = |asked: &Asked| asked.given_up.is_some_and(|at| at > *set_up && at <= run.at);
            if known.calls.values().any(may_have_told) {
                missed += 1;
                return None;
            }
            Some(format!(
                "call {} ({}) was executed in context {} on {}, and its agent had set up {context} and was told nothing",
                run.nonce, asked.tool, run.context, run.selected
            ))
        };
        (runs.iter().filter_map(unwarned).collect(), missed)
    }
}

/// The context that the answer of `use` names.
fn context_of(answer: &str) -> Option<String> {
    let (_, rest) = answer.split_once(IN_CONTEXT)?;
    let end =
        rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(rest.len());
    Some(rest[..end].to_owned()).filter(|context| !context.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linetender::ServerState;
    use linetender_badserver::{ContextRun, wall_clock};

    use super::{Memory, Notice, context_of};

    const ANSWER: &str = r#"{"content":[{"text":"selected db-1 in context s7-1"}]}"#;
    const TOLD: Notice = Notice { is_told: true, is_refused_by_rule: true };

    fn set_up() -> Memory {
        let memory = Memory::default();
        assert_eq!(memory.sets_up_after(), Some(Duration::ZERO));
        memory.asks("setup", "use");
        memory.hears("setup", Notice::default(), Some(ANSWER));
        assert_eq!(memory.sets_up_after(), None);
        memory
    }

    fn run(nonce: &str, context: &str) -> ContextRun {
        let (nonce, context, selected) = (nonce.to_owned(), context.to_owned(), "prod".to_owned());
        ContextRun { nonce, context, selected, at: wall_clock() }
    }

    #[test]
    fn an_effect_in_a_fresh_context_is_found_unless_its_agent_was_told() {
        let memory = set_up();
        memory.asks("a", "write");
        let (here, elsewhere) = (run("a", "s7-1"), run("a", "s7-2"));
        assert!(memory.unwarned(ServerState::Unknown, &[here]).0.is_empty());
        let found = memory.unwarned(ServerState::Unknown, std::slice::from_ref(&elsewhere)).0;
        assert!(matches!(&*found, [one] if one.contains("in context s7-2 on prod")), "{found:?}");
        assert!(memory.unwarned(ServerState::None, std::slice::from_ref(&elsewhere)).0.is_empty());
        memory.asks("b", "write");
        memory.hears("b", TOLD, None);
        assert!(memory.was_refused_by_rule("b") && !memory.was_refused_by_rule("a"));
        // What ran before it was told stays found; what runs from now on is not.
        assert_eq!(memory.unwarned(ServerState::Unknown, &[elsewhere, run("a", "s7-2")]).0.len(), 1);
        assert!(memory.sets_up_after().is_some_and(|wait| wait > Duration::ZERO));
        memory.asks("c", "write");
        assert!(memory.unwarned(ServerState::Process, &[run("c", "s7-2")]).0.is_empty());
    }

    #[test]
    fn a_notice_that_the_agent_did_not_wait_for_is_counted_apart() {
        let memory = set_up();
        memory.asks("a", "write");
        memory.gives_up("a");
        memory.asks("b", "write");
        assert_eq!(memory.unwarned(ServerState::Unknown, &[run("b", "s7-2")]), (Vec::new(), 1));
    }

    #[test]
    fn what_only_looks_may_cross_unless_all_is_state() {
        let memory = set_up();
        memory.asks("a", "echo");
        let runs = [run("a", "s7-2")];
        assert!(memory.unwarned(ServerState::Unknown, &runs).0.is_empty());
        assert_eq!(memory.unwarned(ServerState::Process, &runs).0.len(), 1);
    }

    #[test]
    fn at_a_new_connection_nothing_is_set_up() {
        let memory = set_up();
        memory.begins();
        memory.asks("a", "write");
        assert!(memory.unwarned(ServerState::Unknown, &[run("a", "s7-2")]).0.is_empty());
        assert_eq!(memory.sets_up_after(), Some(Duration::ZERO));
    }

    #[test]
    fn the_answer_of_use_names_its_context() {
        assert_eq!(context_of(ANSWER).as_deref(), Some("s7-1"));
        assert_eq!(context_of("selected db-1"), None);
    }
}

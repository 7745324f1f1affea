//! A call as a task: what it is called, how far it has got, and taking it back. Any node can say so of any call.

use std::sync::Arc;
use std::time::Duration;

use super::begin::Said;
use super::key::who;
use super::note::{Note, Stage};
use super::{Call, Durable, Ending, Identity};
use crate::budget::Owner;
use crate::failed::Failed;
use crate::principal::Principal;

/// How the ids of such tasks begin. What follows is the name of the record, which says nothing to anybody but its owner.
const PREFIX: &str = "linetender-call-";

/// A call that somebody looks at.
pub(crate) struct Seen {
    pub(crate) identity: Identity,
    pub(crate) server: Arc<str>,
    /// When it was asked for, and when what is known of it was noted: milliseconds since 1970.
    pub(crate) since: u64,
    pub(crate) at: u64,
    pub(crate) kept: Duration,
    pub(crate) state: State,
}

/// How far it has got.
pub(crate) enum State {
    Working,
    Cancelled,
    Ended(Ending),
}

impl Identity {
    /// What it is called as a task.
    pub(crate) fn task(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}

/// Whether this is what a call is called as a task: the name of its record.
pub(crate) fn name_of_task(id: &str) -> Option<&str> {
    id.strip_prefix(PREFIX)
        .filter(|name| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl Durable {
    /// A call, if it is there and this principal's.
    pub(crate) async fn look(&self, name: &str, principal: &Principal) -> Result<Option<Seen>, Failed> {
        let mut call = Call {
            identity: Identity { name: name.to_owned(), who: who(principal), arguments: String::new() },
            owner: Owner::default(),
            server: "".into(),
            kept: Duration::ZERO,
            bytes: 0,
            since: 0,
        };
        let mut last = None;
        // Twice, if whoever ran it is gone: it may have noted the outcome in between.
        for _ in 0..2 {
            let noted = self.recall(&call).await.map_err(|away| Failed::unread(&away.to_string()))?;
            let note = noted.as_ref().and_then(|(_, text)| Note::read(text));
            let Some(note) = note.filter(|note| note.who == call.identity.who) else { return Ok(None) };
            call.identity.arguments.clone_from(&note.arguments);
            call.server = note.server.as_str().into();
            let seen = |state| {
                let (identity, server) = (call.identity.clone(), Arc::clone(&call.server));
                let kept = Duration::from_millis(note.kept);
                Ok(Some(Seen { identity, server, since: note.since, at: note.at, kept, state }))
            };
            if matches!(note.stage, Stage::Running(by) if by.node == self.0.shared.node)
                && self.is_under_way(&call.identity)
            {
                return seen(State::Working);
            }
            if let Stage::Cancelled(_) = note.stage {
                return seen(State::Cancelled);
            }
            let void = matches!(note.stage, Stage::Void(_)).then(|| note.stage.answer()).flatten();
            match self.said(&call, noted) {
                Said::At(node) if (self.0.shared.lives)(node) => return seen(State::Working),
                Said::At(_) => {
                    let died = Failed::node_died().of(Some(&call.server));
                    last = Some(seen(State::Ended(Ending::Failed(Arc::new(died)))));
                }
                Said::Ended(ending) => return seen(State::Ended(ending)),
                Said::Free(_) => {
                    let ending = void.map(Ending::Answered);
                    let never = || Failed::unnoted("it did not answer").of(Some(&call.server));
                    return seen(State::Ended(ending.unwrap_or_else(|| Ending::Failed(Arc::new(never())))));
                }
            }
        }
        last.unwrap_or(Ok(None))
    }

    /// Takes a call back, if it runs here. Elsewhere it goes on.
    pub(crate) fn cancel(&self, call: &Identity) {
        if let Some(run) = self.under_way().calls.get(&(call.name.clone(), call.arguments.clone())) {
            run.cancel.notify_one();
        }
    }

    fn is_under_way(&self, call: &Identity) -> bool {
        self.under_way().calls.contains_key(&(call.name.clone(), call.arguments.clone()))
    }
}

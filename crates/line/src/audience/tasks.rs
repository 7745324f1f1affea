//! Whose tasks a server runs. On a line that several agents share, whoever knows a task's id could read its result: so a task is
//! found by whoever began it, and by nobody else.
// MCP, "Tasks", "Security": receivers MUST bind tasks to the authorization context, which on a shared line is all of ours.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use linetender_core::Generation;
use linetender_wire::frame::Members;
use linetender_wire::renewed;

/// Tasks of one principal that are known, and principals that have some. Who begins more loses its oldest.
const EACH: usize = 256;
const PRINCIPALS: usize = 256;

/// No id is longer, and no answer that begins a task.
const ID: usize = 256;
const ANSWER: usize = 64 * 1024;

/// Who began a task: an agent that has a session, or a principal whose agents have none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct TaskOwner {
    pub(crate) principal: u64,
    /// Which of its agents, if that is the same from one request to the next.
    pub(crate) session: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    of: HashMap<Box<str>, (Generation, TaskOwner)>,
    /// By principal, the oldest first.
    begun: HashMap<u64, VecDeque<Box<str>>>,
    /// Principals, whoever began one first in front.
    order: VecDeque<u64>,
    /// In which generation the last one was begun.
    last: Option<Generation>,
}

impl Tasks {
    /// A call was answered so: perhaps it began a task.
    pub(super) fn note(&self, generation: Generation, owner: TaskOwner, result: &str) {
        if let Some(id) = begun_by(result) {
            renewed(&self.0, |known| *known = Known::default()).note(generation, owner, id.into());
        }
    }

    /// In which generation the last one was begun, if any was.
    pub(super) fn last(&self) -> Option<Generation> {
        renewed(&self.0, |known| *known = Known::default()).last
    }

    /// A call was answered so: perhaps it began a task, and whose that is needs not be known.
    pub(super) fn note_begun(&self, generation: Generation, result: &str) {
        if begun_by(result).is_some() {
            let mut known = renewed(&self.0, |known| *known = Known::default());
            known.last = known.last.max(Some(generation));
        }
    }

    /// Whose a task is, if that is known, and which generation began it.
    pub(super) fn known(&self, id: &str) -> Option<(Generation, TaskOwner)> {
        renewed(&self.0, |known| *known = Known::default()).of.get(id).copied()
    }
}

impl Known {
    fn note(&mut self, generation: Generation, owner: TaskOwner, id: Box<str>) {
        let principal = owner.principal;
        self.last = self.last.max(Some(generation));
        match self.of.get_mut(&id) {
            // A server that gives the same id to two has said whose it is; it does not become another's.
            Some((of, _)) if *of >= generation => return,
            // One that was restarted may count from the beginning: what had this id is no more.
            Some((of, before)) if *before == owner => {
                *of = generation;
                return;
            }
            Some((_, before)) => {
                if let Some(begun) = self.begun.get_mut(&before.principal) {
                    begun.retain(|begun| *begun != id);
                }
                self.of.remove(&id);
            }
            None => {}
        }
        if !self.begun.contains_key(&principal) {
            self.order.push_back(principal);
            if self.order.len() > PRINCIPALS
                && let Some(first) = self.order.pop_front()
            {
                for id in self.begun.remove(&first).unwrap_or_default() {
                    self.of.remove(&id);
                }
            }
        }
        let begun = self.begun.entry(principal).or_default();
        if begun.len() >= EACH
            && let Some(oldest) = begun.pop_front()
        {
            self.of.remove(&oldest);
        }
        begun.push_back(id.clone());
        self.of.insert(id, (generation, owner));
    }
}

/// The id of the task that an answer says was begun: `{"task":{"taskId":…}}`, or in the modern era `{"resultType":"task","taskId":…}`.
fn begun_by(result: &str) -> Option<String> {
    if result.len() > ANSWER || !(result.contains("taskId") || result.contains(r"\u")) {
        return None;
    }
    let members = Members::of(result)?;
    let id = match members.get("task") {
        Some(task) => Members::of(task.get())?.string("taskId")?,
        None => members.string("taskId")?,
    };
    (id.len() <= ID).then(|| id.into_owned())
}

#[cfg(test)]
mod tests {
    use super::{EACH, PRINCIPALS, TaskOwner, Tasks, begun_by};
    use linetender_core::Generation;

    fn of(principal: u64) -> TaskOwner {
        TaskOwner { principal, session: None }
    }

    fn note(tasks: &Tasks, principal: u64, result: &str) {
        tasks.note(Generation::new(1), of(principal), result);
    }

    impl Tasks {
        fn owner(&self, id: &str) -> Option<u64> {
            self.known(id).map(|(_, owner)| owner.principal)
        }
    }

    #[test]
    fn a_task_is_whose_call_began_it() {
        let tasks = Tasks::default();
        note(&tasks, 1, r#"{"task":{"taskId":"a","status":"working"}}"#);
        note(&tasks, 2, r#"{"resultType":"task","taskId":"b"}"#);
        note(&tasks, 2, r#"{"task":{"taskId":"a"}}"#);
        assert_eq!(["a", "b", "c"].map(|id| tasks.owner(id)), [Some(1), Some(2), None]);
    }

    #[test]
    fn a_server_that_was_restarted_counts_its_tasks_anew() {
        let tasks = Tasks::default();
        let one = r#"{"taskId":"1"}"#;
        tasks.note(Generation::new(1), of(1), one);
        tasks.note(Generation::new(2), of(2), one);
        assert_eq!(tasks.owner("1"), Some(2));
        tasks.note(Generation::new(1), of(1), one);
        assert_eq!(tasks.owner("1"), Some(2), "a late answer of the old one changes nothing");
        tasks.note(Generation::new(2), of(1), one);
        assert_eq!(tasks.owner("1"), Some(2));
    }

    #[test]
    fn only_an_answer_that_begins_a_task_does() {
        assert_eq!(begun_by(r#"{"content":[{"text":"taskId"}]}"#), None);
        assert_eq!(begun_by(r#"{"structuredContent":{"taskId":"x"}}"#), None);
        assert_eq!(begun_by(&format!(r#"{{"taskId":"{}"}}"#, "x".repeat(300))), None);
    }

    #[test]
    fn x07_whoever_begins_many_loses_its_own() {
        let tasks = Tasks::default();
        note(&tasks, 1, r#"{"taskId":"mine"}"#);
        (0..10 * EACH).for_each(|n| note(&tasks, 2, &format!(r#"{{"taskId":"{n}"}}"#)));
        assert_eq!(tasks.owner("mine"), Some(1));
        assert_eq!((tasks.owner("0"), tasks.owner(&(10 * EACH - 1).to_string())), (None, Some(2)));
        assert!(tasks.0.lock().unwrap().of.len() <= EACH + 1);
        (10..u64::try_from(10 + 2 * PRINCIPALS).unwrap())
            .for_each(|n| note(&tasks, n, &format!(r#"{{"taskId":"of {n}"}}"#)));
        assert!(tasks.0.lock().unwrap().begun.len() <= PRINCIPALS);
    }
}

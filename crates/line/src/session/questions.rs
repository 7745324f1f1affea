//! What the agent is asked. Ids of different generations could clash, so each question gets a number of ours.

use std::collections::HashMap;

use linetender_core::Generation;
use linetender_wire::frame::Frame;
use tokio::sync::oneshot;

use crate::audience::WhileOpen;
use crate::basics::params::respell_member;

/// The most questions that an agent may leave unanswered.
const OPEN: usize = 256;

/// Who asked.
#[derive(Debug)]
pub(super) enum Asker {
    /// A generation of the server's, under this id; and what stands still meanwhile.
    Server(
        Generation,
        Box<str>,
        #[expect(dead_code, reason = "it is open as long as this lives")] Option<WhileOpen>,
    ),
    /// A call of the agent's own that cannot go on without.
    Round(oneshot::Sender<Frame>),
}

/// Questions that the agent has not answered, by our number.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: HashMap<u64, Asker>,
    last: u64,
    /// The newest generation that is over.
    gone: Option<Generation>,
}

impl Questions {
    /// A number for a question; none, if too many are open.
    pub(super) fn ask(&mut self, asker: Asker) -> Option<u64> {
        // A call that is over need not be answered.
        self.open.retain(|_, open| match open {
            Asker::Server(..) => true,
            Asker::Round(answer) => !answer.is_closed(),
        });
        if self.open.len() >= OPEN {
            return None;
        }
        self.last += 1;
        self.open.insert(self.last, asker);
        Some(self.last)
    }

    /// This generation and those before it are over: what they asked, and nobody can answer any more.
    pub(super) fn orphaned(&mut self, newest: Generation) -> Vec<u64> {
        self.gone = self.gone.max(Some(newest));
        let orphans =
            self.open.extract_if(|_, asker| matches!(asker, Asker::Server(of, ..) if *of <= newest));
        let mut numbers: Vec<_> = orphans.map(|(number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Whether this generation is over: what it asked need not be asked any more.
    pub(super) fn is_gone(&self, generation: Generation) -> bool {
        self.gone.is_some_and(|gone| generation <= gone)
    }

    /// Who asked it.
    pub(super) fn answered(&mut self, number: u64) -> Option<Asker> {
        self.open.remove(&number)
    }

    /// The server takes a question back: the params as the agent understands them.
    pub(super) fn taken_back(&mut self, generation: Generation, params: &str) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a serde_json::value::RawValue,
        }
        let Cancelled { id } = serde_json::from_str(params).ok()?;
        let same = |asker: &Asker| matches!(asker, Asker::Server(of, asked, _) if *of == generation && **asked == *id.get());
        let number = *self.open.iter().find(|(_, asker)| same(asker))?.0;
        self.open.remove(&number);
        respell_member(params, "requestId", &number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{Asker, OPEN, Questions};
    use linetender_core::Generation;

    #[test]
    fn questions_have_numbers_of_ours_and_are_taken_back_by_them() {
        let (first, second) = (Generation::new(1), Generation::new(2));
        let of = |generation, id: &str| Asker::Server(generation, id.into(), None);
        let mut questions = Questions::default();
        assert_eq!(questions.ask(of(first, "1")), Some(1));
        assert_eq!(questions.ask(of(first, r#""1""#)), Some(2));
        assert_eq!(questions.taken_back(second, r#"{"requestId":1}"#), None);
        let params = questions.taken_back(first, r#"{"reason":"late","requestId":"1"}"#).unwrap();
        assert_eq!(params, r#"{"reason":"late","requestId":2}"#);
        assert!(questions.answered(2).is_none(), "it was taken back");
        assert!(
            matches!(questions.answered(1), Some(Asker::Server(generation, id, _)) if generation == first && *id == *"1")
        );
        for number in 0..OPEN {
            assert!(questions.ask(of(first, &number.to_string())).is_some());
        }
        assert_eq!(questions.ask(of(second, "x")), None);
        let orphans = questions.orphaned(first);
        assert_eq!(orphans.len(), OPEN, "they went with their generation");
        assert!(questions.is_gone(first) && !questions.is_gone(second));
        assert!(
            orphans.iter().all(|number| questions.answered(*number).is_none()),
            "a late answer goes nowhere"
        );
        assert!(questions.ask(of(second, "x")).is_some());
    }
}

//! What the server asks the agent. Ids of different generations could clash, so each question gets a number of ours.

use std::collections::HashMap;

use linetender_core::Generation;

use crate::call::respell_member;

/// The most questions that an agent may leave unanswered.
const OPEN: usize = 256;

/// Questions that the agent has not answered: ours to theirs.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: HashMap<u64, (Generation, Box<str>)>,
    last: u64,
}

impl Questions {
    /// A number for a question; none, if too many are open.
    pub(super) fn ask(&mut self, generation: Generation, id: &str) -> Option<u64> {
        // Whoever asked before this generation is not there any more to be answered.
        self.open.retain(|_, (asker, _)| *asker == generation);
        if self.open.len() >= OPEN {
            return None;
        }
        self.last += 1;
        self.open.insert(self.last, (generation, id.into()));
        Some(self.last)
    }

    /// Who asked, and under which id.
    pub(super) fn answered(&mut self, number: u64) -> Option<(Generation, Box<str>)> {
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
        let same = |(asker, asked): &(Generation, Box<str>)| *asker == generation && **asked == *id.get();
        let number = *self.open.iter().find(|(_, question)| same(question))?.0;
        self.open.remove(&number);
        respell_member(params, "requestId", &number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{OPEN, Questions};
    use linetender_core::Generation;

    #[test]
    fn questions_have_numbers_of_ours_and_are_taken_back_by_them() {
        let (first, second) = (Generation::new(1), Generation::new(2));
        let mut questions = Questions::default();
        assert_eq!(questions.ask(first, "1"), Some(1));
        assert_eq!(questions.ask(first, r#""1""#), Some(2));
        assert_eq!(questions.taken_back(second, r#"{"requestId":1}"#), None);
        let params = questions.taken_back(first, r#"{"reason":"late","requestId":"1"}"#).unwrap();
        assert_eq!(params, r#"{"reason":"late","requestId":2}"#);
        assert_eq!(questions.answered(2), None, "it was taken back");
        assert_eq!(questions.answered(1), Some((first, "1".into())));
        for number in 0..OPEN {
            assert!(questions.ask(first, &number.to_string()).is_some());
        }
        assert_eq!(questions.ask(first, "x"), None);
        assert!(questions.ask(second, "x").is_some(), "the old ones went with their generation");
    }
}

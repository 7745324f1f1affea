//! Requests that are not answered: on which stream each answer belongs, and whose progress a token is.
//!
//! An agent decides how many there are, so every step takes the same time however many that is. It also runs in a
//! destructor, where nothing could interrupt it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::tape::Tape;

/// The requests of one session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By their id as it was spelt.
    open: HashMap<Box<str>, Call>,
    /// The id of the request that has this progress token.
    tokens: HashMap<Box<str>, Box<str>>,
    /// How many answers each stream waits for, by its number. A stream without any has no entry.
    waiting: HashMap<u64, usize>,
}

#[derive(Debug)]
struct Call {
    tape: Arc<Tape>,
    token: Option<Box<str>>,
}

/// A request that is answered, by what its stream still waits for.
#[derive(Debug)]
pub(super) enum Answered {
    /// Other answers are to come on this stream.
    More(Arc<Tape>),
    /// It was the last that this stream waited for.
    Last(Arc<Tape>),
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a request with this id is not answered yet.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// A request whose id is not in use, and the stream of its answer.
    pub(super) fn expect(&mut self, id: &str, token: Option<&str>, tape: &Arc<Tape>) {
        *self.waiting.entry(tape.number).or_default() += 1;
        if let Some(token) = token {
            self.tokens.insert(token.into(), id.into());
        }
        self.open.insert(id.into(), Call { tape: Arc::clone(tape), token: token.map(Into::into) });
    }

    /// Takes out a request that was answered or taken back.
    pub(super) fn take(&mut self, id: &str) -> Option<Answered> {
        let Call { tape, token } = self.open.remove(id)?;
        // A later request may have taken over the token.
        if let Some(token) = token
            && self.tokens.get(&token).is_some_and(|of| **of == *id)
        {
            self.tokens.remove(&token);
        }
        let left = self.waiting.get_mut(&tape.number).map(|waiting| {
            *waiting -= 1;
            *waiting
        });
        if left.is_some_and(|left| left > 0) {
            return Some(Answered::More(tape));
        }
        self.waiting.remove(&tape.number);
        Some(Answered::Last(tape))
    }

    /// The stream of the request that has this progress token.
    pub(super) fn with_token(&self, token: &str) -> Option<&Arc<Tape>> {
        let id = self.tokens.get(token)?;
        self.open.get(id).map(|call| &call.tape)
    }

    /// The stream of the only request, if there is just one.
    pub(super) fn only(&self) -> Option<&Arc<Tape>> {
        // An iterator over a table that once was large passes all its empty places.
        if self.open.len() != 1 {
            return None;
        }
        self.open.values().next().map(|call| &call.tape)
    }

    /// Those whose stream nobody has read for so long. It looks at all of them.
    pub(super) fn unread(&self, since: Duration) -> Vec<Box<str>> {
        let unread = self.open.iter().filter(|(_, call)| call.tape.is_unread(since));
        unread.map(|(id, _)| id.clone()).collect()
    }

    /// Takes out all of them.
    pub(super) fn drain(&mut self) -> Vec<(Box<str>, Arc<Tape>)> {
        let open = std::mem::take(self).open;
        open.into_iter().map(|(id, call)| (id, call.tape)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Answered, Calls};
    use crate::front::tape::Tape;
    use std::sync::Arc;

    fn last(answered: Option<Answered>) -> Option<bool> {
        answered.map(|answered| matches!(answered, Answered::Last(_)))
    }

    #[test]
    fn a_stream_ends_with_the_last_of_its_answers() {
        let batch = Arc::new(Tape::new(1));
        let mut calls = Calls::default();
        for id in ["1", "2"] {
            calls.expect(id, None, &batch);
        }
        assert!(calls.is_open("1") && !calls.is_open("3"));
        assert_eq!(last(calls.take("1")), Some(false));
        assert_eq!((last(calls.take("2")), last(calls.take("2"))), (Some(true), None));
        assert!(calls.is_empty() && calls.waiting.is_empty());
    }

    #[test]
    fn a_token_belongs_to_the_last_request_that_used_it() {
        let (one, two) = (Arc::new(Tape::new(1)), Arc::new(Tape::new(2)));
        let mut calls = Calls::default();
        calls.expect("1", Some("t"), &one);
        calls.expect("2", Some("t"), &two);
        calls.take("1");
        assert_eq!(calls.with_token("t").map(|tape| tape.number), Some(2));
        calls.take("2");
        assert!(calls.with_token("t").is_none() && calls.tokens.is_empty());
    }
}

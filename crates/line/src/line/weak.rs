//! A handle that does not keep its line: what follows a line must not be why it lives.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::broadcast;

use super::{Event, Line};
use crate::call::Shared;

/// A line, as long as somebody else holds it.
#[derive(Clone)]
pub struct WeakLine {
    shared: Weak<Shared>,
    events: broadcast::WeakSender<Event>,
}

impl fmt::Debug for WeakLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLine").finish_non_exhaustive()
    }
}

impl Line {
    /// A handle that does not keep it.
    pub fn downgrade(&self) -> WeakLine {
        WeakLine { shared: Arc::downgrade(&self.shared), events: self.events.clone() }
    }
}

impl WeakLine {
    /// The line, if it is held still. Whoever asks lets go of it at once.
    pub fn upgrade(&self) -> Option<Line> {
        Some(Line { shared: self.shared.upgrade()?, events: self.events.clone() })
    }
}

//! What happens to a line while a world is played, written down as everybody is told it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::{Event, Events, State};

use crate::scene::Scene;

/// A log that is being written.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Entries>>);

/// What was written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    pub(crate) states: Vec<(Duration, &'static str)>,
    /// The leaves of every end.
    pub(crate) causes: Vec<&'static str>,
    pub(crate) changes: u32,
    pub(crate) missed: u64,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn entries(&self) -> Entries {
        self.lock().clone()
    }

    /// How many generations ended for this reason.
    pub(crate) fn ends_by(&self, leaf: &str) -> usize {
        self.lock().causes.iter().filter(|cause| **cause == leaf).count()
    }

    /// Writes until the line is gone.
    pub(crate) async fn watch(self, scene: Arc<Scene>, mut events: Events) {
        loop {
            let event = events.next().await;
            let mut log = self.lock();
            match event {
                Some(Event::State(status)) => {
                    scene.say(|| {
                        let cause = status.cause.as_ref().map_or("", |why| &why.text);
                        format!("line: {} {} {cause}", status.state, status.generation)
                    });
                    log.states.push((scene.now(), status.state.name()));
                    if status.state == State::Ending {
                        log.causes.extend(
                            status.cause.iter().flat_map(|why| why.leaves.iter().map(|leaf| leaf.name())),
                        );
                    }
                }
                Some(Event::Changed(..)) => log.changes += 1,
                Some(Event::Missed(missed)) => log.missed += missed,
                Some(_) => {}
                None => return,
            }
        }
    }
}

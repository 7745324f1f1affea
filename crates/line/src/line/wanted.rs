//! What agents of a line want to hear of: asked of the generation that is up, and of every one that follows.

use linetender_wire::handshake::Era;

use super::Line;
use crate::audience::TASKS_EXTENSION;
use crate::basics::said::Declared;

impl Line {
    /// Somebody wants to hear of a resource, in this generation and every one that follows; whether there is room for it.
    pub(crate) fn subscribe(&self, uri: &str) -> bool {
        if !self.shared.wishes.subscribe(uri) {
            return false;
        }
        // Whoever listens uses the server: one that was stopped because nobody did is started.
        self.wake();
        true
    }

    /// Nobody wants to any more.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.shared.wishes.want_not(uri);
    }

    /// One more stream wants to hear of a task, in this generation and every one that follows; whether that can be.
    pub(crate) fn watch_task(&self, task: &str) -> bool {
        let tells = |declared: &Declared| {
            declared.era == Era::Modern && declared.extensions.contains_key(TASKS_EXTENSION)
        };
        self.declared().is_some_and(|declared| tells(&declared)) && self.shared.wishes.watch(task)
    }

    /// One stream less does.
    pub(crate) fn unwatch_task(&self, task: &str) {
        self.shared.wishes.unwatch(task);
    }

    /// Whether one more resource can be asked for again in every generation that follows.
    pub(crate) fn has_room_for(&self, uri: &str) -> bool {
        self.shared.wishes.has_room_for(uri)
    }

    /// Nobody wants to hear of a resource any more. The server is told by whoever calls this.
    pub(crate) fn wants_not(&self, uri: &str) {
        self.shared.wishes.forget(uri);
    }

    /// An agent asks the server itself to tell of a resource: the unsubscription that was still to be sent is dropped.
    pub(crate) fn asks_for(&self, uri: &str) {
        self.shared.wishes.is_asked_for(uri);
    }
}

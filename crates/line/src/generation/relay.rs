//! The listener of a server process, which may outlive the generation that started it.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use linetender_wire::seam::{Listener, Loss};
use linetender_wire::stdio::Child;
use linetender_wire::{Item, Room};
use tokio::sync::Notify;

use super::ear::Ear;

/// A server process, and who listens to it.
#[derive(Clone)]
pub(crate) struct Process {
    child: Arc<Child>,
    relay: Arc<Relay>,
}

/// Passes on what a process says to the generation that has it now.
pub(super) struct Relay(RwLock<Arc<Ear>>);

impl Process {
    pub(super) fn new(child: Child, relay: Arc<Relay>) -> Self {
        Self { child: Arc::new(child), relay }
    }

    /// Lets another generation hear the process from now on.
    pub(crate) fn turn_to(&self, ear: Arc<Ear>) {
        *self.relay.0.write().unwrap_or_else(PoisonError::into_inner) = ear;
    }
}

impl std::ops::Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl Relay {
    pub(super) fn new(ear: Arc<Ear>) -> Arc<Self> {
        Arc::new(Self(RwLock::new(ear)))
    }

    fn ear(&self) -> Arc<Ear> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Listener for Relay {
    fn hear(&self, item: Item) {
        self.ear().hear(item);
    }

    fn hear_during(&self, id: u64, item: Item) {
        self.ear().hear_during(id, item);
    }

    fn heard(&self) {
        self.ear().heard();
    }

    fn lost(&self, id: u64, loss: Loss) {
        self.ear().lost(id, loss);
    }

    fn redirected(&self, id: u64) {
        self.ear().redirected(id);
    }

    fn repeated(&self, method: &str) {
        self.ear().repeated(method);
    }

    fn gap(&self) {
        self.ear().gap();
    }

    fn stream_wanted(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let ear = self.ear();
        Box::pin(async move { ear.stream_wanted().await })
    }

    fn wants_stderr(&self) -> bool {
        self.ear().wants_stderr()
    }

    fn stderr(&self, line: &[u8]) {
        self.ear().stderr(line);
    }

    fn room(&self, wanted: &Arc<Notify>) -> Option<Box<dyn Room>> {
        self.ear().room(wanted)
    }
}

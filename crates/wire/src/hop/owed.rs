//! What an asker was not answered yet.

use std::collections::HashSet;

use crate::frame::{Frame, Message, Passed, Routing};
use crate::lines::{About, about};

/// Ids of requests, as they were spelt. There are no more than the asker's line has calls in flight.
#[derive(Debug, Default)]
pub(super) struct Owed(HashSet<String>);

impl Owed {
    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// The asker says something.
    pub(super) fn asked(&mut self, frame: &Frame) {
        match frame.message() {
            // It is open for as long as its asker listens, and asks the next owner again.
            Message::Request { method: "subscriptions/listen", .. } => {}
            Message::Request { id, .. } => {
                self.0.insert(id.to_owned());
            }
            // What is cancelled need not be answered.
            Message::Notification { method: method @ "notifications/cancelled", params } => {
                if let Some(id) = Routing::of(method, params).ok().and_then(|routing| routing.request_id) {
                    self.0.remove(id.get());
                }
            }
            Message::Notification { .. } | Message::Response { .. } => {}
        }
    }

    /// The line says something.
    pub(super) fn answered(&mut self, said: &Passed) {
        match said {
            Passed::Frame(frame) => {
                if let Message::Response { id: Some(id), .. } = frame.message() {
                    self.0.remove(id);
                }
            }
            Passed::Text(text) => {
                if let About::Answer(id) = about(text) {
                    self.0.remove(&id);
                }
            }
        }
    }
}

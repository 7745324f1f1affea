//! What left a server's tree on purpose, and lives on: it is named once the server has been gone for a while, if it is still there.

use std::time::Duration;

use linetender_wire::Redacted;
use linetender_wire::stdio::LeftBehind;
use tokio::time::Instant;

use super::{LineEvent, Running};

/// The processes that are to be named, and when.
#[derive(Default)]
pub(super) struct Left(Vec<(Instant, LeftBehind)>);

impl Left {
    /// One more, to be named after this long.
    pub(super) fn note(&mut self, left: LeftBehind, patience: Duration) {
        self.0.push((Instant::now() + patience, left));
    }

    pub(super) fn look_at(&self) -> Option<Instant> {
        self.0.iter().map(|(at, _)| *at).min()
    }
}

impl Running {
    /// A container may still run: one of an earlier start, which is ended now, or one that could not be ended.
    pub(super) fn container_left(&self, id: String, reason: Option<Redacted>) {
        let (server, container) = (&*self.tender.server.name, &*id);
        match &reason {
            None => tracing::warn!(
                server,
                container,
                "a container of an earlier start may still run: it is ended before the next start"
            ),
            Some(reason) => {
                tracing::warn!(server, container, %reason, "a container may still run: it could not be ended");
            }
        }
        let reason = reason.map(|reason| reason.to_string());
        let _ = self.tender.events.send(LineEvent::ContainerLeft { id, reason });
    }

    /// Names those that are due by then, and still live.
    pub(super) fn name_left(&mut self, until: Option<Instant>) {
        let is_due = |at: Instant| until.is_none_or(|until| at <= until);
        let (due, later) = std::mem::take(&mut self.left.0).into_iter().partition(|(at, _)| is_due(*at));
        self.left.0 = later;
        let due: Vec<(Instant, LeftBehind)> = due;
        for left in due.into_iter().filter_map(|(_, left)| left.again()) {
            let server = &*self.tender.server.name;
            tracing::info!(
                server,
                pid = left.pid,
                name = left.name,
                memory = left.memory,
                command = left.command(),
                "a process that left the server's tree on purpose lives on"
            );
            let _ = self.tender.events.send(LineEvent::Left(left));
        }
    }
}

//! Running a call, and noting how it ended.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linetender::Delivery;
use linetender::session::{Replied, Settled};
use linetender_core::lease::Revision;
use linetender_wire::caught;
use linetender_wire::frame::Frame;
use tokio::time::Instant;

use super::begin::Begun;
use super::note::{By, Note, Stage};
use super::room::Memory;
use super::{Call, Durable, Ending, Nobody, Run, Told};
use crate::budget::Class;
use crate::failed::{Failed, Full};

/// How soon an outcome that could not be noted is noted again, and how late at most.
const FIRST_AGAIN: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_secs(30);

/// A record of a call that runs is written so many times in the time that it is kept for.
const BEATS: u32 = 3;

/// What became of noting an outcome.
enum Stored {
    Yes(Revision),
    /// The directory does not answer.
    Away,
    /// Something else is noted there.
    Lost,
}

impl Durable {
    /// Carries a call from its beginning to its end, wherever it runs, and tells whoever waits.
    pub(super) async fn carry(&self, call: &Call, run: &Run, line: impl Future<Output = Settled> + Send) {
        let entered = self.room().enter(&call.identity.name, call.owner.principal);
        let Some(is_new) = entered else {
            let failed = Failed::full(Full::Durable).of(Some(&call.server));
            run.told.send_replace(Some(Told { ending: Ending::Failed(Arc::new(failed)), ran: false }));
            return self.left(call);
        };
        match caught(self.begin(call, run)).await {
            Ok(Begun::Here(by, revision)) => {
                run.noted.send_replace(true);
                run.here.store(true, Ordering::Release);
                self.run(call, run, line, (by, revision)).await;
            }
            Ok(Begun::Ended(ending)) => {
                self.leave(call, is_new);
                run.told.send_replace(Some(Told { ending, ran: false }));
            }
            Err(_) => {
                self.leave(call, is_new);
                let ending = Ending::Failed(Arc::new(Failed::broken().of(Some(&call.server))));
                run.told.send_replace(Some(Told { ending, ran: false }));
            }
        }
        self.left(call);
    }

    fn leave(&self, call: &Call, is_new: bool) {
        if is_new {
            self.room().leave(&call.identity.name);
        }
    }

    /// Runs a call here.
    async fn run(
        &self,
        call: &Call,
        run: &Run,
        line: impl Future<Output = Settled> + Send,
        (by, revision): (By, Revision),
    ) {
        let revision = Mutex::new(revision);
        let settled = {
            let mut line = pin!(caught(line));
            tokio::select! {
                biased;
                () = run.cancel.notified() => None,
                settled = &mut line => Some(settled),
                never = self.beat(call, by, &revision) => match never {},
            }
        };
        let (ending, how) = match settled {
            Some(Ok(Settled { replied, delivery })) => match delivery {
                Delivery::NotExecuted(_) => (answered(call, replied), Stage::void as fn(&Frame) -> _),
                // What a server refused it may have executed.
                Delivery::Refused(_) | Delivery::Unknown(_) | Delivery::Answered => {
                    (answered(call, replied), Stage::ended as _)
                }
            },
            Some(Err(_)) => (own(call, Failed::broken()), Stage::ended as _),
            // Dropping it took it back from its server.
            None => (own(call, Failed::cancelled()), Stage::cancelled as _),
        };
        let revision = *revision.lock().unwrap_or_else(PoisonError::into_inner);
        let mut note = self.stage(call, &ending, how);
        let mut memory = Memory::default();
        if self.0.shared.directory.is_memory() {
            match self.memory(call, &note) {
                Some(room) => memory = room,
                None => note = Stage::Large(size(&ending)),
            }
        }
        let told = Told { ending: ending.clone(), ran: true };
        let mut stored = self.store(call, by, Some(revision), &note).await;
        run.told.send_replace(Some(told));
        if let Stored::Away = stored {
            tracing::warn!(server = %call.server, "the outcome of a durable call could not be stored; it is tried again");
            stored = self.store_late(call, by, &note).await;
        }
        let noted = if let Stored::Yes(revision) = stored { Some(revision) } else { None };
        if noted.is_none() {
            tracing::warn!(server = %call.server, "the outcome of a durable call was not stored; whoever asks for it later is told that it is unknown");
        }
        self.room().keep(&call.identity.name, call.owner.principal, (call.kept, noted), memory);
    }

    /// Writes a record again and again, so that it is there for as long as its call runs.
    async fn beat(&self, call: &Call, by: By, revision: &Mutex<Revision>) -> Infallible {
        loop {
            tokio::time::sleep(call.kept / BEATS).await;
            let expected = *revision.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(Some(next)) = self.note(call, Some(expected), &Stage::Running(by)).await {
                *revision.lock().unwrap_or_else(PoisonError::into_inner) = next;
            }
        }
    }

    /// What is noted of a call that ended like this.
    fn stage(&self, call: &Call, ending: &Ending, how: fn(&Frame) -> Option<Stage>) -> Stage {
        let answer = match ending {
            Ending::Answered(answer) => Some(Cow::Borrowed(answer)),
            Ending::Failed(failed) => failed.outcome().map(Cow::Owned),
        };
        let noted = answer.and_then(|answer| how(&answer).or_else(|| Stage::ended(&answer)));
        noted.unwrap_or_else(|| {
            tracing::warn!(server = %call.server, node = self.0.shared.node, "the answer of a durable call cannot be noted");
            Stage::Large(size(ending))
        })
    }

    /// Memory for a record of this call, if there is some.
    fn memory(&self, call: &Call, stage: &Stage) -> Option<Memory> {
        let bytes = match stage {
            Stage::Result(text) | Stage::Error(text) | Stage::Cancelled(text) | Stage::Void(text) => {
                text.get().len()
            }
            Stage::Running(_) | Stage::Large(_) => return Some(Memory::default()),
        };
        let held = self.0.budget.hold(Class::Call, call.owner, Arc::downgrade(&Arc::new(Nobody)) as _);
        self.room().memory(call.owner.principal, held, bytes)
    }

    /// Notes how a call ended. Only its own record is replaced.
    async fn store(&self, call: &Call, by: By, expected: Option<Revision>, stage: &Stage) -> Stored {
        let mut expected = expected;
        loop {
            if let Some(revision) = expected {
                match self.note(call, Some(revision), stage).await {
                    Ok(Some(revision)) => return Stored::Yes(revision),
                    Ok(None) => {}
                    Err(_) => return Stored::Away,
                }
            }
            let Ok(noted) = self.recall(call).await else { return Stored::Away };
            let Some((revision, text)) = noted else {
                // It expired. Nobody has begun it since, or they are told the same as we were.
                return match self.note(call, None, stage).await {
                    Ok(Some(revision)) => Stored::Yes(revision),
                    Ok(None) => Stored::Lost,
                    Err(_) => Stored::Away,
                };
            };
            match Note::read(&text).map(|note| note.stage) {
                Some(Stage::Running(noted)) if noted == by => expected = Some(revision),
                // A try whose answer did not come has done it.
                Some(Stage::Result(_) | Stage::Error(_) | Stage::Cancelled(_) | Stage::Large(_)) => {
                    return Stored::Yes(revision);
                }
                Some(Stage::Void(_)) if matches!(stage, Stage::Void(_)) => return Stored::Yes(revision),
                _ => return Stored::Lost,
            }
        }
    }

    /// The same for as long as it would be kept.
    async fn store_late(&self, call: &Call, by: By, stage: &Stage) -> Stored {
        let (end, mut pause) = (Instant::now() + call.kept, FIRST_AGAIN);
        loop {
            tokio::time::sleep(pause).await;
            match self.store(call, by, None, stage).await {
                Stored::Away if Instant::now() < end => pause = (pause * 2).min(AGAIN),
                stored => return stored,
            }
        }
    }
}

/// What a line answered.
fn answered(call: &Call, Replied { text, .. }: Replied) -> Ending {
    match text.whole().into_frame() {
        Ok(frame) => Ending::Answered(frame),
        Err(_) => own(call, Failed::broken()),
    }
}

fn own(call: &Call, failed: Failed) -> Ending {
    Ending::Failed(Arc::new(failed.of(Some(&call.server))))
}

fn size(ending: &Ending) -> u64 {
    match ending {
        Ending::Answered(frame) => Frame::text(frame).len() as u64,
        Ending::Failed(_) => 0,
    }
}

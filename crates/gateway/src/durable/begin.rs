//! Whether a call may run here, or what became of it elsewhere.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use linetender_core::lease::Revision;
use linetender_fleet::Away;
use linetender_fleet::directory::Recalled;

use super::note::{By, Note, Stage};
use super::shared::number;
use super::{Call, Durable, Ending, Run};
use crate::failed::Failed;

/// How long the directory may take to answer.
const ANSWERS: Duration = Duration::from_secs(5);

/// How often a call that runs elsewhere is looked for.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_secs(1);

/// How long it is waited for. Whoever wants to wait longer asks again.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// How often the directory may fail to answer in a row while somebody waits for a call.
const FAILURES: u32 = 3;

/// How often a call is tried to be noted that seems to be free.
const TRIES: u32 = 16;

/// Runs that may not have been noted, at most.
const NEVER_RAN: usize = 1024;

/// How often such a record is looked for, and for how long.
const TIDY: Duration = Duration::from_secs(2);
const TIDIES: u32 = 30;

/// What is to be done about a call.
pub(super) enum Begun {
    /// It runs here, and this was noted.
    Here(By, Revision),
    /// It has ended.
    Ended(Ending),
}

/// What a record says.
pub(super) enum Said {
    /// The call may run, if this is still what is noted.
    Free(Option<Revision>),
    /// It runs at this node.
    At(u64),
    Ended(Ending),
}

fn failed(call: &Call, failed: Failed) -> Ending {
    Ending::Failed(Arc::new(failed.of(Some(&call.server))))
}

impl Durable {
    /// Notes that a call runs here; or what is noted of it already, once it has ended.
    pub(super) async fn begin(&self, call: &Call, run: &Run) -> Begun {
        let by = By { node: self.0.shared.node, run: number() };
        let end = tokio::time::Instant::now() + WAIT;
        let (mut free, mut pause, mut failures, mut tries) = (Some(None), FIRST_LOOK, 0, 0);
        loop {
            if let Some(expected) = free.take() {
                match self.note(call, expected, &Stage::Running(by)).await {
                    Ok(Some(revision)) => return Begun::Here(by, revision),
                    Ok(None) => {}
                    Err(away) => {
                        self.may_be_noted(call, by);
                        return Begun::Ended(failed(call, Failed::unnoted(&away.to_string())));
                    }
                }
            }
            let noted = self.recall(call).await;
            match noted.map(|noted| self.said(call, noted)) {
                // Somebody else was faster, and is gone again.
                Ok(Said::Free(revision)) if tries < TRIES => {
                    tries += 1;
                    free = Some(revision);
                }
                Ok(Said::Free(_)) => {
                    let why = "the record of the call changes all the time";
                    return Begun::Ended(failed(call, Failed::unnoted(why)));
                }
                Ok(Said::Ended(ending)) => return Begun::Ended(ending),
                Ok(Said::At(node)) => {
                    failures = 0;
                    run.noted.send_replace(true);
                    if !(self.0.shared.lives)(node) {
                        return Begun::Ended(self.after_death(call).await);
                    }
                    if tokio::time::Instant::now() >= end || run.told.receiver_count() == 0 {
                        return Begun::Ended(failed(call, Failed::runs_elsewhere()));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LOOK);
                }
                Err(away) => {
                    failures += 1;
                    if failures == FAILURES {
                        return Begun::Ended(failed(call, Failed::unread(&away.to_string())));
                    }
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }

    /// The node that ran a call is gone. It may have noted the outcome after we looked, and before it went.
    async fn after_death(&self, call: &Call) -> Ending {
        match self.recall(call).await.map(|noted| self.said(call, noted)) {
            Ok(Said::Ended(ending)) => ending,
            Ok(Said::At(_) | Said::Free(_)) => failed(call, Failed::node_died()),
            Err(away) => failed(call, Failed::unread(&away.to_string())),
        }
    }

    /// What a record means to whoever asks for this call.
    pub(super) fn said(&self, call: &Call, noted: Recalled) -> Said {
        let Some((revision, text)) = noted else { return Said::Free(None) };
        let Some(note) = Note::read(&text) else {
            return Said::Ended(failed(call, Failed::unread("it was noted by another version")));
        };
        if note.who != call.identity.who || note.arguments != call.identity.arguments {
            return Said::Ended(failed(call, Failed::other_arguments()));
        }
        match &note.stage {
            Stage::Void(_) => Said::Free(Some(revision)),
            Stage::Running(by) if by.node != self.0.shared.node => Said::At(by.node),
            // All that this node runs is known: this did not run, or it ran and its outcome could not be noted.
            Stage::Running(by) if self.never_ran().contains(&by.run) => Said::Free(Some(revision)),
            Stage::Running(_) => Said::Ended(failed(call, Failed::not_stored())),
            Stage::Large(bytes) => Said::Ended(failed(call, Failed::not_kept(*bytes))),
            stage @ (Stage::Result(_) | Stage::Error(_) | Stage::Cancelled(_)) => {
                Said::Ended(match stage.answer() {
                    Some(answer) => Ending::Answered(answer),
                    None => failed(call, Failed::unread("it was noted by another version")),
                })
            }
        }
    }

    pub(super) async fn recall(&self, call: &Call) -> Result<Recalled, Away> {
        let recalled = self.0.shared.directory.recall(&call.identity.name);
        tokio::time::timeout(ANSWERS, recalled).await.unwrap_or_else(|_| Err(late()))
    }

    pub(super) async fn note(
        &self,
        call: &Call,
        expected: Option<Revision>,
        stage: &Stage,
    ) -> Result<Option<Revision>, Away> {
        let note = Note::of(call, stage);
        let noted = self.0.shared.directory.note(&call.identity.name, expected, &note);
        tokio::time::timeout(ANSWERS, noted).await.unwrap_or_else(|_| Err(late()))
    }

    fn never_ran(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.0.never_ran.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory did not answer: it may say that a call runs here which was never begun. That is put right when it answers again.
    #[expect(clippy::disallowed_methods, reason = "it ends after a few tries")]
    fn may_be_noted(&self, call: &Call, by: By) {
        let mut never_ran = self.never_ran();
        if never_ran.len() >= NEVER_RAN {
            tracing::warn!(server = %call.server, "a call that was not begun may be noted as running until its record expires");
            return;
        }
        never_ran.insert(by.run);
        drop(never_ran);
        let (durable, call) = (self.clone(), call.clone());
        tokio::spawn(async move {
            for _ in 0..TIDIES {
                tokio::time::sleep(TIDY).await;
                let Ok(noted) = durable.recall(&call).await else { continue };
                let own = noted.and_then(|(revision, text)| match Note::read(&text)?.stage {
                    Stage::Running(noted) if noted == by => Some(revision),
                    _ => None,
                });
                let Some(revision) = own else { break };
                let failed = Failed::unnoted("it did not answer").of(Some(&call.server));
                let Some(void) = failed.outcome().and_then(|frame| Stage::void(&frame)) else { break };
                if durable.note(&call, Some(revision), &void).await.is_ok() {
                    break;
                }
            }
            durable.never_ran().remove(&by.run);
        });
    }
}

fn late() -> Away {
    Away("it took too long".to_owned())
}

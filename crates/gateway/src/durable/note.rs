//! What is noted of a call in the directory.

use linetender_wire::frame::{self, Frame, Message, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Call;
use super::key::Identity;

/// The largest note. NATS takes 1 MiB, if nobody has set it otherwise.
const LARGEST: usize = 960 * 1024;

/// What is noted.
#[derive(Debug, Deserialize)]
pub(super) struct Note {
    /// Whose call it is, of which server, and what was asked.
    pub(super) who: String,
    pub(super) server: String,
    pub(super) arguments: String,
    /// When it was asked for, and when this was noted: milliseconds since 1970.
    pub(super) since: u64,
    pub(super) at: u64,
    /// For how many milliseconds it is kept.
    pub(super) kept: u64,
    pub(super) stage: Stage,
}

/// How far it has got.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    /// A node runs it.
    Running(By),
    /// It ended with this.
    Result(Box<RawValue>),
    /// It ended with this error of its server.
    Error(Box<RawValue>),
    /// It was taken back while it ran, and ended with this for whoever waited.
    Cancelled(Box<RawValue>),
    /// It was answered, and the answer is too large to be noted: so many bytes.
    Large(u64),
    /// linetender counted that it was not executed: with this result. It may be begun anew.
    Void(Box<RawValue>),
}

/// Who runs a call.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct By {
    /// Which node: the number of its process.
    pub(super) node: u64,
    /// Which of all runs.
    pub(super) run: u64,
}

impl Note {
    pub(super) fn of(call: &Call, stage: &Stage) -> Vec<u8> {
        #[derive(Serialize)]
        struct Written<'a> {
            who: &'a str,
            server: &'a str,
            arguments: &'a str,
            since: u64,
            at: u64,
            kept: u64,
            stage: &'a Stage,
        }
        let Call { identity: Identity { who, arguments, .. }, server, since, .. } = call;
        let kept = u64::try_from(call.kept.as_millis()).unwrap_or(u64::MAX);
        let (since, at) = (*since, linetender_fleet::now().wall);
        let note = Written { who, server, arguments, since, at, kept, stage };
        serde_json::to_vec(&note).unwrap_or_default()
    }

    pub(super) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }
}

impl Stage {
    /// The end of a call that was answered like this; `None` if that is no answer.
    pub(super) fn ended(answer: &Frame) -> Option<Self> {
        let Message::Response { outcome: Some((outcome, text)), .. } = answer.message() else { return None };
        if text.len() > LARGEST {
            return Some(Self::Large(text.len() as u64));
        }
        let text = RawValue::from_string(text.to_owned()).ok()?;
        Some(match outcome {
            Outcome::Result => Self::Result(text),
            Outcome::Error => Self::Error(text),
        })
    }

    /// The same of a call that was not executed.
    pub(super) fn void(answer: &Frame) -> Option<Self> {
        match Self::ended(answer)? {
            Self::Result(text) => Some(Self::Void(text)),
            _ => None,
        }
    }

    /// The same of a call that was taken back.
    pub(super) fn cancelled(answer: &Frame) -> Option<Self> {
        match Self::ended(answer)? {
            Self::Result(text) => Some(Self::Cancelled(text)),
            _ => None,
        }
    }

    /// The answer that was noted, if one was.
    pub(super) fn answer(&self) -> Option<Frame> {
        match self {
            Self::Result(text) | Self::Cancelled(text) | Self::Void(text) => {
                Some(frame::response("0", &[text.get()]))
            }
            Self::Error(text) => {
                let unlimited = frame::Limits { length: usize::MAX, depth: usize::MAX };
                frame::parse(&frame::error_reply("0", text.get()), unlimited).ok()
            }
            Self::Running(_) | Self::Large(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{By, LARGEST, Note, Stage};
    use crate::budget::Owner;
    use crate::durable::{Call, Identity};
    use crate::principal::Principal;
    use linetender_wire::frame;
    use std::time::Duration;

    #[test]
    fn notes_survive_being_written() {
        let identity = Identity::of(&Principal::user(1), "a", "k", r#"{"name":"x"}"#).unwrap();
        let (owner, kept) = (Owner::default(), Duration::from_secs(7));
        let call = Call { identity: identity.clone(), owner, server: "a".into(), kept, bytes: 0, since: 5 };
        let answers = [
            frame::response("7", &[r#"{"content":[],"n":1.50}"#]),
            frame::parse(
                &frame::error_reply("7", r#"{"code":-1,"message":"no"}"#),
                frame::Limits { length: usize::MAX, depth: 9 },
            )
            .unwrap(),
        ];
        for answer in answers {
            let note = Note::of(&call, &Stage::ended(&answer).unwrap());
            let read = Note::read(&note).unwrap();
            assert_eq!((&read.who, &read.arguments), (&identity.who, &identity.arguments));
            assert_eq!((read.server.as_str(), read.since, read.kept), ("a", 5, 7000));
            assert_eq!(read.stage.answer().unwrap().with_id("7").text(), answer.text());
        }
        let by = By { node: u64::MAX, run: 1 };
        let running = Note::read(&Note::of(&call, &Stage::Running(by))).unwrap();
        assert!(matches!(running.stage, Stage::Running(read) if read == by));
        assert!(Note::read(br#"{"later":1}"#).is_none());
        let large = frame::response("7", &["\"", &"x".repeat(LARGEST), "\""]);
        assert!(matches!(Stage::ended(&large), Some(Stage::Large(bytes)) if bytes > LARGEST as u64));
    }
}

//! What is noted of a call in the directory.

use linetender_wire::frame::{self, Frame, Message, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::key::Identity;

/// The largest note. NATS takes 1 MiB, if nobody has set it otherwise.
const LARGEST: usize = 960 * 1024;

/// What is noted.
#[derive(Debug, Deserialize)]
pub(super) struct Note {
    /// Whose call it is, and what was asked.
    pub(super) who: String,
    pub(super) arguments: String,
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
    /// It was answered, and the answer is too large to be noted: so many bytes.
    Large(u64),
    /// It is proven that it was not executed. It may be begun anew.
    Void,
}

/// Who runs a call.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct By {
    /// Which node: the number of its process.
    pub(super) node: u64,
    /// Which of all runs.
    pub(super) run: u64,
    /// Since when, by the clock of that node: milliseconds since 1970.
    pub(super) since: u64,
}

impl Note {
    pub(super) fn of(call: &Identity, stage: &Stage) -> Vec<u8> {
        #[derive(Serialize)]
        struct Written<'a> {
            who: &'a str,
            arguments: &'a str,
            stage: &'a Stage,
        }
        let note = Written { who: &call.who, arguments: &call.arguments, stage };
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

    /// The answer that was noted, if one was.
    pub(super) fn answer(&self) -> Option<Frame> {
        match self {
            Self::Result(text) => Some(frame::response("0", &[text.get()])),
            Self::Error(text) => {
                let unlimited = frame::Limits { length: usize::MAX, depth: usize::MAX };
                frame::parse(&frame::error_reply("0", text.get()), unlimited).ok()
            }
            Self::Running(_) | Self::Large(_) | Self::Void => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{By, LARGEST, Note, Stage};
    use crate::durable::key::Identity;
    use crate::principal::Principal;
    use linetender_wire::frame;

    #[test]
    fn notes_survive_being_written() {
        let call = Identity::of(&Principal::user(1), "a", "k", r#"{"name":"x"}"#).unwrap();
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
            assert_eq!((read.who.as_str(), read.arguments.as_str()), (&*call.who, &*call.arguments));
            assert_eq!(read.stage.answer().unwrap().with_id("7").text(), answer.text());
        }
        let by = By { node: u64::MAX, run: 1, since: 2 };
        let running = Note::read(&Note::of(&call, &Stage::Running(by))).unwrap();
        assert!(matches!(running.stage, Stage::Running(read) if read == by));
        assert!(matches!(Note::read(&Note::of(&call, &Stage::Void)).unwrap().stage, Stage::Void));
        assert!(Note::read(br#"{"later":1}"#).is_none());
        let large = frame::response("7", &["\"", &"x".repeat(LARGEST), "\""]);
        assert!(matches!(Stage::ended(&large), Some(Stage::Large(bytes)) if bytes > LARGEST as u64));
    }
}

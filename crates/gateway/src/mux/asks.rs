//! What servers ask the agent. Several use the same numbers, so each question gets one of ours.

use std::collections::HashMap;

use bytes::Bytes;
use linetender::Code;
use linetender_wire::frame::{self, Frame, Members};

use super::acts::{self, Act};
use crate::splice::Splice;

/// The most questions that an agent may leave unanswered.
const OPEN: usize = 256;

/// Questions that the agent has not answered, by our number.
#[derive(Debug, Default)]
pub(super) struct Asks {
    open: HashMap<u64, (u64, Box<str>)>,
    last: u64,
}

impl Asks {
    /// A server asks: the agent is asked under our number.
    pub(super) fn ask(&mut self, from: u64, id: &str, frame: &Frame) -> Act {
        if self.open.len() >= OPEN {
            let error = Code::Overloaded.error("too many requests to the agent are pending");
            return Act::IfOpen(from, frame::error_reply(id, &error).into());
        }
        self.last += 1;
        self.open.insert(self.last, (from, id.into()));
        Act::Tell(frame.with_id(&self.last.to_string()).into())
    }

    /// The agent answers: whoever asked is told under its own.
    pub(super) fn answered(&mut self, frame: &Frame) -> Option<Act> {
        let (from, id) = self.open.remove(&frame.response_number()?)?;
        Some(Act::IfOpen(from, frame.with_id(&id).into()))
    }

    /// A server takes a question back.
    pub(super) fn taken_back(&mut self, from: u64, params: &str) -> Option<Bytes> {
        let id = acts::request_id(Some(params))?;
        let number = *self.open.iter().find(|(_, (of, asked))| *of == from && **asked == *id)?.0;
        self.open.remove(&number);
        let mut splice = Splice::of(params);
        splice.put_raw(Members::of(params)?.get("requestId")?, number.to_string());
        Some(frame::notification("notifications/cancelled", Some(&splice.done())))
    }

    /// A server is gone, and with it whoever asked: the agent need not answer.
    pub(super) fn forget(&mut self, from: u64) -> Vec<Act> {
        let gone = self.open.extract_if(|_, (of, _)| *of == from);
        let taken_back = |(number, _)| {
            let params = format!(
                r#"{{"requestId":{number},"reason":"linetender: the server that sent this request is gone"}}"#
            );
            Act::Tell(frame::notification("notifications/cancelled", Some(&params)).into())
        };
        gone.map(taken_back).collect()
    }
}

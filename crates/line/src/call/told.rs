//! What a line's witness is told of a call: that it came, how far it has got, and how it ended. One that is dropped has ended too.

use std::borrow::Cow;
use std::sync::Arc;

use linetender_core::{Delivery, Doubt, Proof};
use linetender_wire::frame::{Members, Routing, string};
use linetender_wire::handshake::Era;
use tokio::time::Instant;

use super::{Call, Reply};
use crate::basics::error::{CallError, CallErrorKind};
use crate::basics::rpc_error::RpcError;
use crate::book::Entry;
use crate::generation::Link;
use crate::outcome::{Outcome, Receipt, Stage, Times, UnderWay, Verdict, Witness};

/// How a call goes. Without a witness nothing is kept of it.
#[derive(Default)]
pub(super) struct Course {
    seen: Option<Seen>,
}

/// What is kept.
struct Seen {
    call: Arc<UnderWay>,
    stage: Stage,
    /// Since when it has been at this stage.
    since: Instant,
    times: Times,
    era: Option<Era>,
    tries: u32,
    /// Its last seat, which knows what became of it.
    entry: Option<Arc<Entry>>,
}

impl Course {
    /// It has got further, or must go back.
    pub(super) fn reaches(&mut self, stage: Stage) {
        if let Some(seen) = &mut self.seen {
            seen.reaches(stage, None);
        }
    }

    /// It is given to a generation.
    pub(super) fn tries(&mut self, link: &Link) {
        if let Some(seen) = &mut self.seen {
            seen.reaches(Stage::AtServer, Some(link.generation.number()));
            seen.era = Some(link.era());
            seen.tries += 1;
        }
    }

    /// It has a seat there.
    pub(super) fn sits(&mut self, entry: &Arc<Entry>) {
        if let Some(seen) = &mut self.seen {
            seen.entry = Some(Arc::clone(entry));
        }
    }
}

impl Seen {
    fn reaches(&mut self, stage: Stage, generation: Option<u64>) {
        let now = Instant::now();
        let spent = now.duration_since(self.since);
        match self.stage {
            Stage::Queued => self.times.queue += spent,
            Stage::Waiting => self.times.line += spent,
            Stage::AtServer => self.times.server += spent,
        }
        (self.stage, self.since) = (stage, now);
        self.call.reaches(stage, generation);
    }
}

/// A call that a witness sees.
pub(super) struct Told<'a> {
    witness: &'a dyn Witness,
    params: Option<&'a str>,
    pub(super) course: Course,
}

impl<'a> Told<'a> {
    /// A call that came.
    ///
    /// # Errors
    /// If it must not be made: why.
    pub(super) fn came(call: &Call<'a>, witness: &'a dyn Witness) -> (Self, Result<(), String>) {
        let since = call.options.arrived.map_or_else(Instant::now, |arrived| call.shared.clock.at(arrived));
        let tool = call.tool.map(Box::from).or_else(|| tool_of(call.method, call.params));
        let principal = call.options.principal.clone();
        let under_way = UnderWay::new(crate::outcome::next_number(), call.method, tool, principal, since);
        let may = witness.came(&under_way);
        let seen = Seen {
            call: under_way,
            stage: Stage::Queued,
            since,
            times: Times::default(),
            era: None,
            tries: 0,
            entry: None,
        };
        (Self { witness, params: call.params, course: Course { seen: Some(seen) } }, may)
    }

    /// It has ended, and the caller is told once that is written down, where it has to be.
    pub(super) async fn ended(
        mut self,
        call: &Call<'_>,
        result: Result<Reply, CallError>,
    ) -> Result<Reply, CallError> {
        let (verdict, code, bytes) = match &result {
            Ok(reply) => (
                answered(call.method, reply),
                reply.error().and_then(|error| RpcError::of(error).code()),
                reply.len(),
            ),
            Err(error) => {
                let verdict = Verdict::failed(error.kind, error.phase, error.delivery);
                (verdict, Some(i64::from(error.code().number())), 0)
            }
        };
        match self.tell(verdict, code, bytes) {
            None => result,
            Some(receipt) => match receipt.await {
                Ok(()) => result,
                Err(cause) => Err(call.unrecorded(cause, verdict.delivery())),
            },
        }
    }

    fn tell(&mut self, verdict: Verdict, code: Option<i64>, bytes: usize) -> Option<Receipt> {
        let mut seen = self.course.seen.take()?;
        seen.reaches(seen.stage, None);
        let outcome = Outcome {
            verdict,
            code,
            own: false,
            era: seen.era,
            generation: seen.call.generation(),
            tries: seen.tries,
            params: self.params,
            bytes: (self.params.map_or(0, str::len), bytes),
            times: seen.times,
        };
        self.witness.ended(&seen.call, &outcome)
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        let Some(seen) = &self.course.seen else { return };
        let never_sent = Delivery::NotExecuted(Proof::Queued);
        let known = seen
            .entry
            .as_ref()
            .map_or(never_sent, |entry| entry.verdict().unwrap_or(Delivery::Unknown(Doubt::Cancelled)));
        // Its caller is told of a panic of ours as of a call that may have run.
        let verdict =
            if std::thread::panicking() { Verdict::Unknown(Doubt::Lost) } else { Verdict::Cancelled(known) };
        // Nobody waits for the receipt.
        drop(self.tell(verdict, None, 0));
    }
}

impl Call<'_> {
    /// The error of a call of which nothing could be written down that has to be.
    pub(super) fn unrecorded(&self, cause: String, delivery: Delivery) -> CallError {
        let error = self.error_before(CallErrorKind::NotRecorded, cause);
        match delivery {
            Delivery::NotExecuted(_) => error,
            delivery => {
                CallError { phase: crate::basics::error::Phase::AtServer, delivery, stderr: None, ..error }
            }
        }
    }
}

/// The tool that a request calls.
pub(crate) fn tool_of(method: &str, params: Option<&str>) -> Option<Box<str>> {
    (method == "tools/call").then(|| params.and_then(tool_name)).flatten().map(Into::into)
}

/// The name of the tool that a raw `tools/call` is about. Where the server may read another, none: what is known of a tool
/// permits that it is called again.
pub(crate) fn tool_name(params: &str) -> Option<String> {
    Routing::of("tools/call", Some(params)).ok()?.name.and_then(string).map(Cow::into_owned)
}

/// Of an answer: a tool that ran may say that it failed.
fn answered(method: &str, reply: &Reply) -> Verdict {
    let result = reply.result();
    // Results are long, and few of them have the word in them.
    let perhaps = method == "tools/call" && memchr::memmem::find(result.as_bytes(), b"\"isError\"").is_some();
    let failed = || Members::of(result)?.get("isError").map(|is_error| is_error.get() == "true");
    if perhaps && failed() == Some(true) { Verdict::ToolError } else { Verdict::Answered }
}

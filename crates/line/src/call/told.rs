//! What a line's witness is told of a call: that it came, how far it has got, and how it ended. One that is dropped has ended too.

use std::sync::Arc;

use linetender_core::{Delivery, Doubt, Evidence, RetryOn, RetryReason};
use linetender_wire::frame::Members;
use linetender_wire::handshake::{Era, MODERN};
use tokio::time::Instant;

use super::{Call, Reply};
use crate::basics::error::{CallError, CallErrorKind};
use crate::basics::params::{tool_of, with_trace};
use crate::basics::rpc_error::RpcError;
use crate::book::Entry;
use crate::generation::Live;
use crate::outcome::{Outcome, Receipt, Retry, Stage, Times, UnderWay, Verdict, Witness};

/// Generations of a call that are kept in mind: it is given to more only if each of them ends at once.
const GENERATIONS: usize = 8;

/// The longest name of a revision that is kept.
const REVISION: usize = 32;

/// How a call goes. Without a witness only its attempts are counted.
#[derive(Default)]
pub(super) struct Course<'a> {
    attempts: u32,
    seen: Option<Seen>,
    witness: Option<&'a dyn Witness>,
}

/// What is kept.
struct Seen {
    call: Arc<UnderWay>,
    stage: Stage,
    /// Since when it has been at this stage.
    since: Instant,
    times: Times,
    era: Option<Era>,
    attempts: u32,
    retried: RetryOn,
    /// The generations it was given to, the newest last.
    generations: ([u64; GENERATIONS], usize),
    /// Its last seat, which knows what became of it.
    entry: Option<Arc<Entry>>,
    /// If it is traced.
    traced: Option<Traced>,
}

/// What is kept of a call that belongs to a trace.
struct Traced {
    /// Its params with our context in them, if that can be said in them.
    params: Option<String>,
    /// The revision of the last generation that it was given to.
    revision: Option<String>,
}

impl Course<'_> {
    /// It has got further, or must go back.
    pub(super) fn reaches(&mut self, stage: Stage) {
        if let Some(seen) = &mut self.seen {
            seen.reaches(stage, None);
        }
    }

    /// It is given to a generation.
    pub(super) fn tries(&mut self, link: &Live) {
        if let Some(seen) = &mut self.seen {
            seen.reaches(Stage::AtServer, Some(link.generation.number()));
            seen.era = Some(link.era());
            seen.met(link.generation.number());
            if let Some(traced) = &mut seen.traced {
                traced.revision = revision(link);
            }
        }
    }

    /// Its params as they go on, if they are others than they came with.
    pub(super) fn params(&self) -> Option<&str> {
        self.seen.as_ref()?.traced.as_ref()?.params.as_deref()
    }

    /// How often the call was sent.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// It has a seat there. A call that was bound to another generation before it was sent has made no attempt.
    pub(super) fn sits(&mut self, entry: &Arc<Entry>) {
        self.attempts = self.attempts.max(1);
        if let Some(seen) = &mut self.seen {
            seen.attempts = self.attempts;
            seen.entry = Some(Arc::clone(entry));
        }
    }

    /// linetender sends it again: the log and the witness are told.
    pub(super) fn retries(&mut self, call: &Call<'_>, reason: RetryReason, from: u64, to: u64) {
        self.attempts += 1;
        let attempt = self.attempts;
        let (server, method, tool) = (&*call.shared.server.name, call.method, call.tool);
        tracing::info!(server, method, tool, reason = reason.name(), from, to, attempt, "call sent again");
        if let Some(seen) = &mut self.seen {
            seen.attempts = attempt;
            seen.retried = seen.retried.with(reason);
            if let Some(witness) = self.witness {
                witness.retried(&seen.call, Retry { reason, from, to, attempt });
            }
        }
    }
}

/// Records that an attempt was redirected and sent to another place, once it is over, however it ends.
pub(super) struct Redirects<'a, 'c> {
    pub(super) call: &'a Call<'a>,
    pub(super) course: &'a mut Course<'c>,
    pub(super) entry: Arc<Entry>,
    pub(super) generation: u64,
}

impl Drop for Redirects<'_, '_> {
    fn drop(&mut self) {
        for _ in 0..self.entry.redirects() {
            self.course.retries(self.call, RetryReason::Protocol, self.generation, self.generation);
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

    /// It is given to this generation.
    fn met(&mut self, generation: u64) {
        let (met, count) = &mut self.generations;
        if met[..*count].last() == Some(&generation) {
            return;
        }
        if *count == GENERATIONS {
            met.rotate_left(1);
            *count -= 1;
        }
        met[*count] = generation;
        *count += 1;
    }
}

/// The revision of MCP that is spoken on a connection.
fn revision(link: &Live) -> Option<String> {
    let greeting = &link.greeting;
    match greeting.era {
        Era::Modern => Some(MODERN.to_owned()),
        Era::Legacy => {
            let said = Members::of(&greeting.result)?.string("protocolVersion")?;
            (said.len() <= REVISION).then(|| said.into_owned())
        }
    }
}

/// A call that a witness sees.
pub(super) struct Told<'a> {
    witness: &'a dyn Witness,
    params: Option<&'a str>,
    pub(super) course: Course<'a>,
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
        let under_way =
            UnderWay::new(crate::outcome::next_number(), call.method, tool, principal, since, false);
        let may = witness.came(&under_way, call.params);
        let traced = under_way
            .trace()
            .map(|context| Traced { params: with_trace(call.params, context), revision: None });
        let seen = Seen {
            call: under_way,
            stage: Stage::Queued,
            since,
            times: Times::default(),
            era: None,
            attempts: 0,
            retried: RetryOn::NOTHING,
            generations: ([0; GENERATIONS], 0),
            entry: None,
            traced,
        };
        let course = Course { attempts: 0, seen: Some(seen), witness: Some(witness) };
        (Self { witness, params: call.params, course }, may)
    }

    /// It has ended, and the caller is told once that is written down, where it has to be.
    pub(super) async fn ended(
        mut self,
        call: &Call<'_>,
        result: Result<Reply, CallError>,
    ) -> Result<Reply, CallError> {
        let (verdict, code, bytes) = match &result {
            Ok(reply) => (
                match reply.refusal {
                    Some(refusal) => Verdict::Refused(refusal),
                    None => answered(call.method, reply),
                },
                reply.error().and_then(|error| RpcError::of(error).code()),
                reply.len(),
            ),
            Err(error) => (error.delivery.into(), Some(i64::from(error.code().number())), 0),
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
            generations: &seen.generations.0[..seen.generations.1],
            id: seen.entry.as_ref().map(|entry| entry.id),
            revision: seen.traced.as_ref().and_then(|traced| traced.revision.as_deref()),
            attempts: seen.attempts,
            retried: seen.retried,
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
        let never_sent = Delivery::NotExecuted(Evidence::Queued);
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

/// Of an answer: a tool that ran may say that it failed.
fn answered(method: &str, reply: &Reply) -> Verdict {
    let result = reply.result();
    // Results are long, and few of them have the word in them.
    let perhaps = method == "tools/call" && memchr::memmem::find(result.as_bytes(), b"\"isError\"").is_some();
    let failed = || Members::of(result)?.get("isError").map(|is_error| is_error.get() == "true");
    if perhaps && failed() == Some(true) { Verdict::ToolError } else { Verdict::Answered }
}

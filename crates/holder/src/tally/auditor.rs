//! From how a request ended to its line in the audit.

use std::sync::Arc;
use std::time::Duration;

use linetender::{Delivery, Era, Outcome, Receipt, RetryReason, UnderWay, Verdict};
use linetender_wire::frame::Members;

use crate::audit::{self, Arguments, Audit, Record};

/// Writes every request down.
#[derive(Clone, Debug)]
pub struct Auditor {
    audit: Audit,
    door: &'static str,
    keep: KeepArguments,
}

/// What is written of arguments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeepArguments {
    /// Their hash.
    #[default]
    Hash,
    /// They themselves. They may hold secrets.
    Full,
    /// Nothing.
    Nothing,
}

impl Auditor {
    /// Writes what comes through `door` to this audit.
    pub const fn new(audit: Audit, door: &'static str, keep: KeepArguments) -> Self {
        Self { audit, door, keep }
    }

    pub(crate) const fn audit(&self) -> &Audit {
        &self.audit
    }

    pub(super) fn may(&self) -> Result<(), String> {
        self.audit.check()
    }

    pub(super) fn record(
        &self,
        server: &Arc<str>,
        call: &UnderWay,
        outcome: &Outcome<'_>,
    ) -> Option<Receipt> {
        // What linetender answers by itself is a greeting or a list: no server did anything for it.
        if outcome.own && outcome.verdict == Verdict::Answered {
            return None;
        }
        let receipt = self.audit.write(self.line(server, call, outcome))?;
        Some(Box::pin(async move { receipt.await.map(drop).map_err(|error| error.to_string()) }))
    }

    fn line(&self, server: &Arc<str>, call: &UnderWay, outcome: &Outcome<'_>) -> Record {
        let delivery = outcome.verdict.delivery();
        let reason = delivery.reason();
        let (not_executed_reason, refused_reason, unknown_reason) = match delivery {
            Delivery::NotExecuted(_) => (reason, None, None),
            Delivery::Refused(_) => (None, reason, None),
            Delivery::Unknown(_) => (None, None, reason),
            Delivery::Answered => (None, None, None),
        };
        Record {
            at: Record::now(),
            call: call.number,
            door: self.door.to_owned(),
            principal: call.principal.as_deref().map(str::to_owned),
            server: server.to_string(),
            generation: outcome.generation,
            era: outcome.era.map_or("", era).to_owned(),
            method: call.method.to_string(),
            tool: call.tool.as_deref().map(str::to_owned),
            arguments: self.arguments(outcome.params),
            verdict: match outcome.verdict {
                Verdict::Answered => audit::Verdict::Answered,
                Verdict::ToolError => audit::Verdict::ToolError,
                Verdict::Refused(_) => audit::Verdict::Refused,
                Verdict::NotExecuted(_) => audit::Verdict::NotExecuted,
                Verdict::Unknown(_) => audit::Verdict::Unknown,
                Verdict::Cancelled(_) => audit::Verdict::Cancelled,
            },
            not_executed_reason,
            refused_reason,
            unknown_reason,
            attempts: outcome.attempts,
            retried: outcome.retried.iter().map(RetryReason::name).collect(),
            error: outcome.code,
            request_bytes: outcome.bytes.0 as u64,
            response_bytes: outcome.bytes.1 as u64,
            queue_ms: millis(outcome.times.queue),
            line_ms: millis(outcome.times.line),
            server_ms: millis(outcome.times.server),
            ..Record::default()
        }
    }

    /// Of a call to a tool or a prompt, its arguments; of anything else, its params.
    fn arguments(&self, params: Option<&str>) -> Arguments {
        if self.keep == KeepArguments::Nothing {
            return Arguments::default();
        }
        let Some(params) = params else { return Arguments::default() };
        let arguments = Members::of(params).and_then(|params| params.get("arguments"));
        let arguments = arguments.map_or(params, |arguments| arguments.get()).as_bytes();
        match self.keep {
            KeepArguments::Full => Arguments::full(arguments),
            KeepArguments::Hash | KeepArguments::Nothing => Arguments::hash(arguments),
        }
    }
}

const fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

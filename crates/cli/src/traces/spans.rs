//! Spans: one per call, by the semantic conventions that OpenTelemetry has for MCP, and one per generation of a line. A call has a
//! link to each generation that it was given to.
//!
//! Nothing of arguments or results is in a span.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use linetender::{
    Outcome, RetryReason, TraceContext, Transport, UnderWay, Verdict, Why, hide_secrets, visible,
};
use linetender_holder::tally::{Life, LineTracer, Tracer};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

// OpenTelemetry, "Semantic conventions for Model Context Protocol (MCP)", Development.
const METHOD: &str = "mcp.method.name";
const REVISION: &str = "mcp.protocol.version";
const TOOL: &str = "gen_ai.tool.name";
const OPERATION: &str = "gen_ai.operation.name";
const REQUEST: &str = "jsonrpc.request.id";
const STATUS_CODE: &str = "rpc.response.status_code";
const ERROR: &str = "error.type";
const TRANSPORT: &str = "network.transport";
const PROTOCOL: &str = "network.protocol.name";
const HOST: &str = "server.address";
const PORT: &str = "server.port";
// Ours.
const SERVER: &str = "linetender.server";
const VERDICT: &str = "linetender.verdict";
const REASON: &str = "linetender.verdict.reason";
const GENERATION: &str = "linetender.generation";
const ATTEMPTS: &str = "linetender.attempts";
const RETRIED: &str = "linetender.retried";
const QUEUED: &str = "linetender.queue.duration";
const WAITED: &str = "linetender.line.duration";
const AT_SERVER: &str = "linetender.server.duration";
const CAUSE: &str = "linetender.cause";
const PLANNED: &str = "linetender.planned";

/// The longest text in a span, in characters: methods and tools are named by agents and servers.
const LONGEST: usize = 128;

/// Generations of a line that calls can still be linked to.
const GENERATIONS: usize = 16;

/// Makes the spans of a process.
#[derive(Debug)]
pub(super) struct Spans(SdkTracer);

/// Makes those of one line.
#[derive(Debug)]
struct LineSpans {
    tracer: SdkTracer,
    /// What each of them says of the server.
    about: Vec<KeyValue>,
    /// Those of calls that have not ended, by their numbers.
    calls: Mutex<HashMap<u64, Begun>>,
    generations: Mutex<VecDeque<Generation>>,
}

#[derive(Debug)]
struct Begun {
    span: Span,
    at: SystemTime,
}

/// A generation, for as long as calls can be linked to it.
#[derive(Debug)]
struct Generation {
    number: u64,
    context: SpanContext,
    /// Until it is over.
    span: Option<Span>,
}

impl Spans {
    pub(super) const fn of(tracer: SdkTracer) -> Self {
        Self(tracer)
    }
}

impl Tracer for Spans {
    fn line(&self, server: &Arc<str>, transport: Transport<'_>) -> Arc<dyn LineTracer> {
        let mut about = vec![KeyValue::new(SERVER, shown(server))];
        match transport {
            Transport::Pipe => about.push(KeyValue::new(TRANSPORT, "pipe")),
            Transport::Tcp { host, port } => about.extend([
                KeyValue::new(TRANSPORT, "tcp"),
                KeyValue::new(PROTOCOL, "http"),
                KeyValue::new(HOST, shown(host)),
                KeyValue::new(PORT, i64::from(port)),
            ]),
            _ => about.extend([KeyValue::new(TRANSPORT, "unix"), KeyValue::new(PROTOCOL, "http")]),
        }
        let (calls, generations) = (Mutex::default(), Mutex::default());
        Arc::new(LineSpans { tracer: self.0.clone(), about, calls, generations })
    }
}

impl LineTracer for LineSpans {
    fn came(&self, call: &UnderWay, caller: Option<TraceContext>) -> Option<TraceContext> {
        let at = wall_clock().checked_sub(call.since.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        let method = shown(&call.method);
        let tool = call.tool.as_deref().map(shown);
        let name = tool.as_ref().map_or_else(|| method.clone(), |tool| format!("{method} {tool}"));
        let mut attributes = self.about.clone();
        attributes.push(KeyValue::new(METHOD, method));
        if let Some(tool) = tool {
            attributes.extend([KeyValue::new(TOOL, tool), KeyValue::new(OPERATION, "execute_tool")]);
        }
        // To the server linetender is a client; what it answers itself, it serves.
        let kind = if call.own { SpanKind::Server } else { SpanKind::Client };
        let builder =
            SpanBuilder::from_name(name).with_kind(kind).with_start_time(at).with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, &parent(caller));
        let ours = told(span.span_context());
        self.calls().insert(call.number, Begun { span, at });
        ours
    }

    fn ended(&self, call: &UnderWay, outcome: &Outcome<'_>) {
        let Some(Begun { mut span, at }) = self.calls().remove(&call.number) else { return };
        if !span.is_recording() {
            return;
        }
        span.set_attributes(attributes(outcome));
        for generation in outcome.generations {
            let context = self.context_of(*generation);
            span.add_link(context, vec![KeyValue::new(GENERATION, signed(*generation))]);
        }
        if let Some(kind) = error_type(outcome) {
            span.set_attribute(KeyValue::new(ERROR, kind));
            span.set_status(Status::error(outcome.verdict.name()));
        }
        span.end_with_timestamp(at + call.since.elapsed());
    }

    fn generation(&self, number: u64, life: Life<'_>) {
        let mut generations = self.generations();
        let generation = self.generation_of(&mut generations, number);
        let Some(span) = &mut generation.span else { return };
        match life {
            Life::Dialing => {}
            Life::Up => span.add_event("up", Vec::new()),
            Life::Ended(why) => {
                end(span, why);
                generation.span = None;
            }
        }
    }
}

impl LineSpans {
    /// The span of a generation, which begins when it is first heard of.
    fn generation_of<'a>(&self, kept: &'a mut VecDeque<Generation>, number: u64) -> &'a mut Generation {
        let at = kept.iter().position(|generation| generation.number == number).unwrap_or_else(|| {
            if kept.len() >= GENERATIONS {
                kept.pop_front();
            }
            let mut about = self.about.clone();
            about.push(KeyValue::new(GENERATION, signed(number)));
            let builder = SpanBuilder::from_name("generation")
                .with_kind(SpanKind::Internal)
                .with_start_time(wall_clock())
                .with_attributes(about);
            // A trace of its own: it serves many calls, and none of them began it.
            let span = self.tracer.build_with_context(builder, &Context::new());
            kept.push_back(Generation { number, context: span.span_context().clone(), span: Some(span) });
            kept.len() - 1
        });
        &mut kept[at]
    }

    fn context_of(&self, number: u64) -> SpanContext {
        self.generation_of(&mut self.generations(), number).context.clone()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Begun>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generations(&self) -> MutexGuard<'_, VecDeque<Generation>> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a span says of how its call ended.
fn attributes(outcome: &Outcome<'_>) -> Vec<KeyValue> {
    let Outcome { verdict, code, generation, id, revision, attempts, retried, times, .. } = outcome;
    let mut said = vec![
        KeyValue::new(VERDICT, verdict.name()),
        KeyValue::new(ATTEMPTS, i64::from(*attempts)),
        KeyValue::new(QUEUED, times.queue.as_secs_f64()),
        KeyValue::new(WAITED, times.line.as_secs_f64()),
        KeyValue::new(AT_SERVER, times.server.as_secs_f64()),
    ];
    said.extend(verdict.delivery().reason().map(|reason| KeyValue::new(REASON, reason)));
    let retried: Vec<_> = retried.iter().map(RetryReason::name).collect();
    if !retried.is_empty() {
        said.push(KeyValue::new(RETRIED, retried.join(",")));
    }
    said.extend(code.map(|code| KeyValue::new(STATUS_CODE, code.to_string())));
    said.extend(generation.map(|generation| KeyValue::new(GENERATION, signed(generation))));
    said.extend(id.map(|id| KeyValue::new(REQUEST, id.to_string())));
    said.extend(revision.map(|revision| KeyValue::new(REVISION, shown(revision))));
    said
}

/// The class of error that a call ended with, if it did. A caller that goes away is none.
fn error_type(outcome: &Outcome<'_>) -> Option<String> {
    match (outcome.verdict, outcome.code) {
        (Verdict::Cancelled(_), _) => None,
        (Verdict::ToolError, _) => Some("tool_error".to_owned()),
        (_, Some(code)) => Some(code.to_string()),
        (Verdict::Answered, None) => None,
        (verdict, None) => Some(verdict.name().replace(' ', "_")),
    }
}

/// Ends the span of a generation.
fn end(span: &mut Span, why: Option<&Why>) {
    if let Some(why) = why {
        if let Some(leaf) = why.leaves.first() {
            span.set_attribute(KeyValue::new(CAUSE, leaf.name()));
        }
        span.set_attribute(KeyValue::new(PLANNED, why.planned));
        if !why.planned {
            span.set_status(Status::error(shown(&hide_secrets(&why.text))));
        }
    }
    span.end_with_timestamp(wall_clock());
}

/// The span that a call is a part of, as its caller says.
fn parent(caller: Option<TraceContext>) -> Context {
    let Some(caller) = caller else { return Context::new() };
    let state = caller.state.as_deref().and_then(|state| TraceState::from_str(state).ok());
    Context::new().with_remote_span_context(SpanContext::new(
        TraceId::from_bytes(caller.trace.to_be_bytes()),
        SpanId::from_bytes(caller.span.to_be_bytes()),
        TraceFlags::new(caller.flags),
        true,
        state.unwrap_or_default(),
    ))
}

/// A span, as the server is told of it.
fn told(context: &SpanContext) -> Option<TraceContext> {
    let trace = u128::from_be_bytes(context.trace_id().to_bytes());
    let span = u64::from_be_bytes(context.span_id().to_bytes());
    let state = context.trace_state().header();
    TraceContext::new(trace, span, context.trace_flags().to_u8(), Some(&state))
}

/// A text of somebody else, as it stands in a span.
fn shown(text: &str) -> String {
    let head: String = text.chars().take(LONGEST).collect();
    visible::line(&head).into_owned()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "spans of several programs are put beside each other by it")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

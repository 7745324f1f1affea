//! Spans of requests and of generations, for whoever makes some of them. What a span is, is known there alone.

use std::fmt;
use std::sync::Arc;

use linetender::{Outcome, TraceContext, Transport, UnderWay, Why};

/// Makes spans.
pub trait Tracer: fmt::Debug + Send + Sync {
    /// Those of one line to this server.
    fn line(&self, server: &Arc<str>, transport: Transport<'_>) -> Arc<dyn LineTracer>;
}

/// Makes the spans of one line. Nothing here may block: it is called by the requests themselves.
pub trait LineTracer: fmt::Debug + Send + Sync {
    /// A request has come, and belongs to this trace, if its caller says so. What is returned is told to the server in its place.
    fn came(&self, call: &UnderWay, caller: Option<TraceContext>) -> Option<TraceContext>;

    /// It has ended. Every one that came does.
    fn ended(&self, call: &UnderWay, outcome: &Outcome<'_>);

    /// A generation of the line has got this far. Each stage is told once, in this order; some may be left out.
    fn generation(&self, number: u64, life: Life<'_>);
}

/// How far a generation has got.
#[derive(Clone, Copy, Debug)]
pub enum Life<'a> {
    /// The server is being started, or connected to.
    Dialing,
    /// It serves.
    Up,
    /// It is over, and this is why, if that is known.
    Ended(Option<&'a Why>),
}

//! The machine that decides: what a line is, when it is dead, what to do next, and what may be re-sent.
//!
//! An MCP server crashes, hangs, restarts, loses its sessions. Whoever supervises it has to answer the
//! same four questions each time, and every project that answered them inside its I/O code got one of
//! them wrong. Here they are four values that do no I/O at all:
//!
//! - [`Machine`]: the lifecycle of one line. Only the line's tender touches it. It never stores a call.
//! - [`Gate`]: the `Copy` verdict that the machine publishes on every change, so that a call can be
//!   admitted without asking the tender.
//! - [`Record`]: the delivery of one call, a pure step function; it knows what was proven about the call
//!   and whether it may be sent again.
//! - [`RetryBudget`]: how many calls of unknown outcome may be sent again in total.
//!
//! # The sans-IO contract
//!
//! This crate sees no clock, no randomness, no environment, no text and no bytes. Time is a number that is
//! handed in ([`Instant`]), jitter comes from a seed, sleep is an input. A driver does this for ever:
//!
//! 1. wait for an event, a command, a knock, or for the time that [`Machine::poll_timeout`] names;
//! 2. show the machine the generation's [`Vitals`], after reading whatever input is already readable: an
//!    answer that has arrived always wins against a timer;
//! 3. hand the input to the matching `handle_*` method;
//! 4. run what [`Machine::poll_effect`] returns, in that order, until it returns `None`.
//!
//! ```
//! use core::time::Duration;
//!
//! use linetender_core::{Command, Effect, Event, Gate, Instant, Machine, Policy, State};
//!
//! let now = Instant::ORIGIN;
//! let mut machine: Machine<&str> = Machine::new(Policy::default(), 7, now);
//! machine.handle_command(now, Command::Open);
//! # assert!(matches!(machine.poll_effect(), Some(Effect::Notice(Gate::Hold { .. }))));
//! # let mut first = None;
//! while let Some(effect) = machine.poll_effect() {
//!     if let Effect::Dial { generation } = effect {
//!         // … spawn the server, shake hands …
//! #       first = Some(generation);
//!     }
//! }
//! # let generation = first.unwrap();
//! machine.handle_event(now, generation, Event::Started);
//! machine.handle_event(now + Duration::from_millis(5), generation, Event::Dialled);
//! assert!(matches!(machine.state(), State::Up(_)));
//! assert_eq!(machine.gate(), Gate::Go { generation });
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod backoff;
mod budget;
mod cause;
mod class;
mod context;
mod delivery;
mod gate;
mod generation;
mod jitter;
pub mod lease;
mod machine;
mod order;
mod policy;
mod record;
mod resend;
mod retry;
mod time;

pub use budget::{Account, Budget, Cost};
pub use cause::{Cause, Conclusion, Detail, Leaf, Leaves, Note, NoteKind, Plan};
pub use class::{Charge, Class, Route, Row};
pub use context::{CallEffect, ContextId, ContextUse, NOTICE_LASTS};
pub use delivery::{Delivery, Doubt, Evidence, LossReport, Repair, ServerRefusal};
pub use gate::{Admission, Gate, Held, NextTry, Refusal, Wake};
pub use generation::Generation;
pub use jitter::Jitter;
pub use machine::{
    After, Command, CommandOutcome, DialPhase, Dialing, Effect, Ending, EndingStep, Event, Heard, Live,
    Machine, Origin, Pulse, Rest, State, StateKind, Vitals,
};
pub use order::{Misstep, Settle, Step, Walk};
pub use policy::{
    BackoffPolicy, BudgetPolicy, CallPolicy, ClosePolicy, DialPolicy, Invalid, LONGEST, Limits, ParkPolicy,
    Policy, ProbePolicy, RetryPolicy, ServerState, Settings, Tree,
};
pub use record::{Extent, Late, Method, Phase, Record, RecordStep, Safety};
pub use resend::{Declared, Next, Obstacle, Rules, TRIES_MOST};
pub use retry::{RetryBudget, RetryOn, RetryReason};
pub use time::Instant;

//! Servers that misbehave on purpose, and a book of what they really did.
//!
//! `badserver` is an MCP server over stdio in either era. Each of its tools is a fault ([`badserver::TOOLS`]); faults at
//! start are flags. It writes down what it read and what it ran, so that a verdict can be held against the truth.
//! [`webserver`] is the same over HTTP, and [`proxy`] breaks what lies between. [`conformance`] is a client for the
//! official suite, whose servers behave. [`drills`] puts anything that stands before a server through [scenarios](scenario),
//! and says what came of it ([`results`]); the [`board`] says it to people.

pub mod adapter;
mod arguments;
pub mod badserver;
pub mod board;
mod book;
mod checker;
mod client;
pub mod conformance;
mod dice;
pub mod doors;
pub mod drills;
mod exact;
mod failure;
pub mod figures;
pub mod gates;
mod history;
mod offers;
mod process;
pub mod proxy;
mod real;
pub mod results;
pub mod scenario;
pub mod soak;
pub mod webserver;

pub use book::Book;
pub use checker::{Bounds, Finding, check, check_runs};
pub use failure::Failure;
pub use history::{Asked, History, Recorder};

//! Servers that misbehave on purpose, and a book of what they really did.
//!
//! `badserver` is an MCP server over stdio in either era. Each of its tools is a fault ([`badserver::TOOLS`]); faults at
//! start are flags. It writes down what it read and what it ran, so that a verdict can be held against the truth.
//! [`webserver`] is the same over HTTP, and [`proxy`] breaks what lies between. [`conformance`] is a client for the
//! official suite, whose servers behave.

pub mod badserver;
mod book;
mod checker;
pub mod conformance;
pub mod doors;
mod exact;
mod failure;
pub mod figures;
pub mod gates;
mod history;
mod offers;
pub mod proxy;
pub mod soak;
pub mod webserver;

pub use book::Book;
pub use checker::{Bounds, Finding, check};
pub use failure::Failure;
pub use history::{Asked, History, Recorder};

//! Servers that misbehave on purpose, and a book of what they really did.
//!
//! [`stdio`] is an MCP server on pipes in either era: the binary `badserver`. Each of its tools is a fault
//! ([`stdio::TOOLS`]); faults at start are flags. It writes down what it read and what it ran, so that a verdict can be held
//! against the truth ([`check`]). [`webserver`] is the same over HTTP, and [`proxy`] breaks what lies between.
//! Tests start the binary of their own build with [`program`]. [`agent`] is who stands on the other side, over HTTP.

pub mod agent;
mod arguments;
mod book;
mod checker;
mod exact;
mod failure;
mod history;
mod itself;
mod offers;
pub mod process;
mod program;
pub mod proxy;
pub mod stdio;
pub mod webserver;

pub use arguments::schema;
pub use book::{Attempt, Book, ContextRun, wall_clock};
pub use checker::{BELIEVED, BELIEVED_AT_MOST, Bounds, Finding, check, check_attempts, ran_again_by_refusal};
pub use failure::Failure;
pub use history::{Asked, History};
pub use program::{AS_SERVER, program, run_if_asked};

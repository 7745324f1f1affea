//! The drill: anything that stands before a server, put through [scenarios](scenario) by servers that misbehave on purpose
//! (`linetender-badserver`).
//!
//! [`drills`] plays them, and says what came of it ([`results`]); the [`board`] says it to people. [`soak`] does to lines at
//! length what a scenario does once, [`fleet`] to several gateways, [`mod@bench`] measures. [`conformance`] is a client for the official suite, whose servers
//! behave.

pub mod adapter;
pub mod bench;
pub mod board;
pub mod conformance;
mod dice;
pub mod drills;
pub mod figures;
// It makes network namespaces.
#[cfg(unix)]
pub mod fleet;
mod real;
mod recorder;
pub mod results;
pub mod scenario;
pub mod soak;

pub use recorder::Recorder;

//! An `rmcp` client on our transport, against servers that die, ask back, and talk nonsense.

#![allow(missing_docs, unreachable_pub, clippy::disallowed_methods, reason = "tests against real processes")]

mod calls;
mod deaths;
mod eras;
mod kit;
mod questions;
mod unreadable;

//! `linetender drill`: our own doors keep every row, and a target that does not is found out.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

mod green;
mod kit;
mod red;
mod routes;

//! Agents that are known: `linetender serve` with `[gateway.auth]`, and whoever comes to its door.

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

mod issuer;
mod kit;
mod matrix;
mod rules;

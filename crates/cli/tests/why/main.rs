//! `linetender why`, of real servers that fail in real ways, as a person reads it. Read every snapshot as somebody who was woken at
//! night and has never heard of linetender: does it say what happened, and what to do?

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

#[path = "../agent/mod.rs"]
mod agent;

mod command;
mod http;
mod kit;
mod stdio;

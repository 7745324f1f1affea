//! Shims as holders of lines: what they write down, and what whoever asks is told.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

mod flags;
mod follows;
mod foreign;
mod journals;
mod kit;
mod orders;
mod statuses;

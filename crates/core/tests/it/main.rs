//! The machine as its driver sees it: public API only, virtual time only.

#![allow(unreachable_pub, reason = "nobody can reach into a test")]

mod abandoned;
mod budgets;
mod call_path;
mod cells;
mod commands;
mod deaths;
mod holding;
mod house;
mod kit;
mod model;
mod origin;
mod parking;
mod policy;
mod probes;
mod refused;
mod starts;

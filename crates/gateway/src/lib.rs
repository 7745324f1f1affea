//! Many agents in front, many lines behind.
//!
//! One process per server instead of one per agent, at one address: [`config`] says which servers, [`Gateway`] holds their
//! lines, an agent's mux says which of them a message is for, and the fronts carry it in and out.

mod apps;
mod bearers;
mod budget;
pub mod config;
mod cut;
mod durable;
mod ends;
mod failed;
pub mod front;
mod gateway;
mod grant;
// It needs sockets by which descriptors are handed over.
#[cfg(unix)]
pub mod keeper;
mod kept;
pub mod kin;
mod listing;
mod mismatches;
mod mux;
mod names;
mod offer;
mod own_lines;
mod peer;
mod principal;
mod splice;
pub mod stdio;
mod system;
mod tasks;
pub mod units;
pub mod yaml;

pub use bearers::{Bearers, Known, Refused, Shown, Verdict};
pub use durable::Shared;
pub use gateway::Gateway;

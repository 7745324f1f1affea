//! Benchmarks from the agent's side: what a call costs through whatever stands before a server.

pub mod gateways;
pub mod shims;

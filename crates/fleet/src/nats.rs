//! A fleet on NATS: `JetStream` holds the [directory], its plain messages carry everything that goes from node to node.

#[cfg(test)]
#[path = "../tests/cluster/mod.rs"]
mod cluster;
mod directory;
mod line;
mod members;
mod node;
mod orders;
mod stream;

pub use directory::{Nats, Options};
pub use members::Member;
pub use node::{Gone, House, Joined, LineReport, NodeStream, Report, Seat};
pub use stream::{Input, Output};

/// A random number. Without chance everybody has the same.
fn chance() -> u64 {
    let mut bytes = [0; 8];
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

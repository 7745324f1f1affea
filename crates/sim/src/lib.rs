//! Random worlds in virtual time, in which everything of ours is real and everything else is simulated.
//!
//! The tender, the ledgers, the framing, the writer and reader of a pipe and the HTTP client are the code that ships; the
//! clock is the runtime's paused one, one thread does everything, and every choice follows from the world's seed. Below
//! the [platform](linetender_wire::stdio::platform) seam a pipe counts what a dead server left unread. The servers write
//! down what they really did, and the [laws](crate::Finding) hold what callers were told against it.
//!
//! `cargo run -p linetender-sim -- --seeds 0..1000` sweeps; `--seeds 17 --trace` plays one world and tells what happens.

mod book;
mod caller;
mod coverage;
mod crowd;
mod day;
mod habits;
mod keys;
mod laws;
mod log;
mod mcp;
mod net;
mod pipe;
mod platform;
mod process;
mod rng;
mod saboteur;
mod scene;
mod server;
mod sweep;
mod tasks;
#[cfg(test)]
mod waits;
mod web;
mod witness;
mod world;

pub use coverage::Coverage;
pub use day::{Day, Declared, Tally, play_day};
pub use laws::Finding;
pub use sweep::{Swept, sweep};
pub use witness::Sent;
pub use world::{Played, play};

/// Seeds of worlds in which a law was broken once. Each is played in every run; docs/internals/found.md says what it was.
pub const REGRESSIONS: [u64; 1] = [151];

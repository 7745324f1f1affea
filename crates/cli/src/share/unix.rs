//! `linetender run --share`: one process of this user, the keeper, runs each server once for all agents that want the same one.
//!
//! `run` is then an agent's pipe and a [way](linetender::hop::Way) to the keeper. Whatever happens to the keeper is the end of a
//! generation: calls get their verdicts, and the next generation reaches the next keeper, which this process starts if nobody has.

mod keeper;
mod order;
mod private;
mod reach;

pub(crate) use keeper::keeper;
pub(crate) use reach::{NoKeeper, ToKeeper};

/// The keeper's socket in the runtime folder, and the lock that it and the reapers of its servers hold.
const SOCKET: &str = "keeper.sock";
const LOCK: &str = "keeper.lock";

/// Held by whoever starts a keeper, so that thirty windows start one.
const STARTS: &str = "keeper.start";

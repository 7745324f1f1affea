//! The locks of the call path, so that a model checker can stand in for them.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p linetender --lib races` plays register, seal, answer and drop against each
//! other in thousands of orders.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

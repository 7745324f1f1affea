//! The drawings. Each target has a lane of its own, with its name beside it as ordinary text.
//!
//! Places are per cent of the lane's width and sizes are pixels, so a drawing is as wide as its screen while its
//! text and dots stay readable on a phone; a `viewBox` would shrink both.

mod axis;
mod lane;
mod stacks;
mod strips;
mod timeline;

pub(super) use stacks::stacks;
pub(super) use strips::strips;
pub(super) use timeline::timelines;

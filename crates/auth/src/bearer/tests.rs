//! The whole verification, with keys of our own and in virtual time.

mod foreign;
mod jwts;
mod keys;
pub(super) mod kit;
#[cfg(unix)]
mod statics;

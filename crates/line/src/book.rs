//! The book of one generation's calls.
//!
//! In: a call with its record, from whoever makes it; the server's words, from the generation's ear; the end, from the tender. Out:
//! one reply to each call, and a few numbers about all of them ([`Ledger::vitals`]).

mod entry;
mod ledger;
mod question;
#[cfg(all(test, shuttle))]
mod races;
mod usage;

pub(crate) use entry::{Entry, Heed, Lost, Reply};
pub(crate) use ledger::{Ledger, NoSeat};
pub(crate) use question::OpenQuestion;

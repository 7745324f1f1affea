//! The hop: frames to a line that another process owns.
//!
//! Whoever asks is a generation like any other ([`Hop`]): it takes frames, yields frames and ends with a cause. Whoever owns
//! the line ([`serve`]) hears them as those of one agent. Deadlines, cancellations, progress and questions are MCP's own
//! messages, and need nothing of the hop. What the hop adds is one fact: **handed over, or not**. The owner acknowledges what
//! it has read *before* it acts on it; so when it is gone, whatever it had not acknowledged was never run, and is safe to send
//! to the next owner. What it had acknowledged may have run.
//!
//! A carrier is a stream of bytes in both directions. On this machine that is a pair of pipes that the asker hands over by a Unix
//! socket, or the socket itself: the kernel says who is at the other end, whether it lives, and keeps what it wrote before its end.
//! Between machines an owner that cannot be heard any more may live, and act on what it was sent: there the carrier says itself what
//! cannot have arrived ([`Far::taken`]), and whose line it is says a fence in the order.
//!
//! On the wire both directions are lines. First an order, which says whose line is wanted, and the answer to it ([`Taken`]). Then
//! messages, and lines that are none:
//!
//! | from | line | means |
//! |---|---|---|
//! | owner | `=N` | the first N bytes after the order were read, and are acted on from now on; with an [`Offer`], it counts there instead |
//! | owner | `!WHY` | move on: make the next connection when your calls have ended |
//! | owner | `~` | nothing more is read from now on: what is not acknowledged goes to the next owner |
//! | owner | `.` | this owner goes, on purpose; the end of the stream follows |
//! | asker | `?` | are you there? (an acknowledgement is the answer) |

mod ask;
mod asker;
mod carrier;
#[cfg(unix)]
mod near;
#[cfg(not(unix))]
#[path = "hop/no_near.rs"]
mod near;
mod owed;
mod owner;

pub use ask::{Answer, Taken};
pub use asker::{Found, Hop, Owner, OwnerEnd, Reached, Way};
pub use carrier::Far;
#[cfg(unix)]
pub use near::{Offer, Offered, ask, asked, serve};
pub use owner::{Stand, serve_far};

/// The first byte of a line that is no message.
const ACKNOWLEDGED: u8 = b'=';
const MOVE: u8 = b'!';
const HANDS: u8 = b'~';
const GOES: u8 = b'.';
const THERE: &str = "?";
